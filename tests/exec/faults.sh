#!/bin/sh
# What goes wrong ends cleanly: a sentence, the documented exit status, no process left over.
. "${top_srcdir:-.}/tests/cli/lib.sh"
exe=$top_builddir/ptexec
pid=
# A run of this test never outlives it, however the test ends.
cleanup() {
    if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM
head -c 100000 "$top_srcdir/exec/kernels.c" >"$tmp/text"
cat "$top_srcdir"/exec/*.c >>"$tmp/text"
"$top_builddir/tests/exec/mkplan" "$tmp/two.json" pp=2 dp=2 zero=1
"$top_builddir/tests/exec/mkplan" "$tmp/one.json"
left() {
    # ranks of this test that still run; [t]: not the grep itself
    grep -ls "$tmp/[t]wo.json" /proc/[0-9]*/cmdline || true
}
# Without pgrep, which a small system lacks. A name in parentheses may hold anything.
children() {
    cat /proc/[0-9]*/stat 2>/dev/null | sed -n "s/^\([0-9]*\) .*) [A-Za-z] $1 .*/\1/p" | sort -n
}
# run SECONDS-OF-HEADSTART SIGNAL WHICH: signals one process of a long run; sets st.
hit() {
    : >"$tmp/m.csv"
    "$exe" "$tmp/two.json" --data "text:$tmp/text" --steps 3000 -q --watchdog 2s \
        --metrics "$tmp/m.csv" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    n=0
    while [ "$(wc -l <"$tmp/m.csv")" -lt 3 ] && [ $n -lt 300 ]; do
        sleep 0.1
        n=$((n + 1))
    done
    victim=$pid
    if [ "$2" = rank ]; then victim=$(children "$pid" | tail -n 1); fi
    kill "-$1" "$victim"
    st=0
    wait "$pid" || st=$?
    pid=
    [ -z "$(left)" ] || { echo "left over after $1 of $2: $(left)"; exit 1; }
    rm -f "$tmp/m.csv"
}
# want STATUS WORDS: of the last run.
want() {
    [ "$st" -eq "$1" ] || { echo "exit $st, want $1"; cat "$tmp/err"; exit 1; }
    grep -q "$2" "$tmp/err" || { echo "no '$2' in:"; cat "$tmp/err"; exit 1; }
}
hit KILL rank
want 4 'rank 3 was killed by signal 9 (Killed) in [A-Z_]* of chunk 0, micro-batch'
# AddressSanitizer, where it is built in, would catch the signal and exit with words of its own.
ASAN_OPTIONS=${ASAN_OPTIONS-}:handle_segv=0
export ASAN_OPTIONS
hit SEGV rank
want 4 'rank 3 was killed by signal 11'
hit TERM supervisor
want 5 'stopped as asked after step'
hit INT supervisor
want 5 'stopped as asked after step'
hit STOP rank
want 4 'no rank made progress for 2 s'
grep -q '^rank 2: .*now: .*last: ' "$tmp/err"
# The supervisor itself is killed: nothing may stay behind.
"$exe" "$tmp/two.json" --data "text:$tmp/text" --steps 3000 -q &
pid=$!
sleep 0.5
kill -KILL "$pid"
wait "$pid" || true
pid=
sleep 0.5
[ -z "$(left)" ]
fails 2 "$exe" "$tmp/one.json" --data "text:$tmp/nowhere" -q
grep -q "nowhere: No such file" "$tmp/err"
fails 2 "$exe" "$tmp/one.json" -q
fails 2 "$exe" "$tmp/nowhere.json" --data "text:$tmp/text" -q
fails 2 "$exe" "$tmp/one.json" "$tmp/two.json" --data "text:$tmp/text"
fails 2 "$exe" "$tmp/one.json" --data "text:$tmp/text" --steps 5 --warmup 6
fails 2 "$exe" "$tmp/one.json" --data "text:$tmp/text" --lr-scaling sqrt
printf 'too short' >"$tmp/short"
fails 2 "$exe" "$tmp/one.json" --data "text:$tmp/short" -q
grep -q '9 tokens are too few' "$tmp/err"
"$top_builddir/tests/exec/mkplan" "$tmp/small.json" vocab=100
fails 2 "$exe" "$tmp/small.json" --data "text:$tmp/text" -q
grep -q "outside the model's vocabulary of 100" "$tmp/err"
if [ -w /dev/full ]; then
    fails 4 "$exe" "$tmp/one.json" --data "text:$tmp/text" -q --metrics /dev/full
    grep -q '/dev/full: cannot write the metrics' "$tmp/err"
    st=0
    "$exe" "$tmp/one.json" --data "text:$tmp/text" --steps 2 >/dev/full 2>"$tmp/err" || st=$?
    [ "$st" -eq 4 ]
fi
# A learning rate that blows up says so, with the step.
fails 1 "$exe" "$tmp/one.json" --data "text:$tmp/text" -q --steps 200 --lr 10 --clip 0 \
    --weight-decay 10 --warmup 0 --lr-schedule constant
grep -q 'step [0-9]*: the loss is' "$tmp/err"
echo "faults end as they should"
