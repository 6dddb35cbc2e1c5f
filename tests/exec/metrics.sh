#!/bin/sh
# The metrics file: its columns, those of each rank on demand, and what a full disk does.
. "${top_srcdir:-.}/tests/cli/lib.sh"
exe=$top_builddir/ptexec
fixed=step,tokens,loss,grad_norm,lr,step_time_s,tokens_per_s,peak_mem_bytes
cat "$top_srcdir"/exec/*.c >"$tmp/text"
"$top_builddir/tests/exec/mkplan" "$tmp/plan.json" pp=2 dp=2 zero=1
"$top_builddir/tests/exec/mkplan" "$tmp/tp.json" tp=2 dp=2
args="--data text:$tmp/text --steps 3 --seed 3"
# What does not depend on the clock, as the memory of messages under way does.
steady() { cut -d, -f1-5 "$1"; }
norms() { cut -d, -f1-5,12,16,20,24 "$1"; }

columns=$fixed
for r in 0 1 2 3; do
    columns=$columns,rank${r}_step_time_s,rank${r}_wait_s,rank${r}_peak_mem_bytes
    columns=$columns,rank${r}_grad_norm_local
done
for plan in tp plan; do
    # A file that is there is replaced, however long it is.
    cat "$tmp/text" >"$tmp/plain.csv"
    # shellcheck disable=SC2086 # words
    "$exe" "$tmp/$plan.json" $args -q --metrics "$tmp/plain.csv"
    [ "$(head -n 1 "$tmp/plain.csv")" = "$fixed" ]
    [ "$(wc -l <"$tmp/plain.csv")" -eq 4 ]
    # shellcheck disable=SC2086
    "$exe" "$tmp/$plan.json" $args -q --metrics "$tmp/own.csv" --per-rank
    [ "$(head -n 1 "$tmp/own.csv")" = "$columns" ]
    [ "$(wc -l <"$tmp/own.csv")" -eq 4 ]
    steady "$tmp/own.csv" >"$tmp/a"
    steady "$tmp/plain.csv" | diff - "$tmp/a"
    # Squares of the local norms make the whole one; waiting is a part of the step; rank 0
    # is the one of the fixed columns.
    awk -F, 'NR > 1 {
        if (NF != 24) { print "columns: " NF; bad = 1 }
        for (r = 0; r < 4; r++) {
            c = 9 + 4 * r
            if (!($c > 0 && $(c + 1) > 0 && $(c + 1) < $c && $(c + 2) > 0 && $(c + 3) > 0))
                { print "rank " r ": " $c, $(c + 1), $(c + 2), $(c + 3); bad = 1 }
            sum[NR] += $(c + 3) ^ 2
        }
        d = sum[NR] / $4 ^ 2 - 1
        if (d > 1e-12 || d < -1e-12) { print "norms: " sum[NR], $4 ^ 2; bad = 1 }
        if ($9 != $6 || $11 != $8) { print "rank 0 differs"; bad = 1 }
    } END { exit bad || NR != 4 }' "$tmp/own.csv"
done
norms "$tmp/own.csv" >"$tmp/own"

# A set of columns comes after the evaluations, where there are any.
# shellcheck disable=SC2086
"$exe" "$tmp/plan.json" $args -q --metrics "$tmp/eval.csv" --per-rank --eval-every 2 \
    --eval-batches 1 --eval-data "text:$tmp/text"
head -n 1 "$tmp/eval.csv" | grep -q "^$fixed,eval_loss,rank0_step_time_s,"

fails 2 "$exe" "$tmp/plan.json" --data "text:$tmp/text" --per-rank
grep -q -e '--per-rank adds columns to --metrics' "$tmp/err"

# launched RANK-WITHOUT-THE-OPTION: over TCP, by torchrun's variables. Status of rank 0 in st.
port=$((31000 + $$ % 10000))
launched() {
    port=$((port + 1))
    for r in 0 1 2 3; do
        option=--per-rank
        if [ "$r" -eq "$1" ]; then option=; fi
        # shellcheck disable=SC2086
        env RANK=$r WORLD_SIZE=4 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$exe" "$tmp/plan.json" $args --metrics "$2" $option >"$tmp/out.$r" 2>"$tmp/err.$r" &
        eval "pid$r=$!"
    done
    st=0
    # shellcheck disable=SC2154 # set by eval
    wait "$pid0" || st=$?
    # shellcheck disable=SC2154
    wait "$pid1" "$pid2" "$pid3" || true
}
launched 4 "$tmp/tcp.csv"
[ $st -eq 0 ] || { cat "$tmp"/err.*; exit 1; }
norms "$tmp/tcp.csv" | diff "$tmp/own" -
launched 2 "$tmp/tcp.csv"
[ $st -eq 2 ]
grep -q 'rank 2 on .* has another set of training options than rank 0' "$tmp/err.0"

# A disk that fills: a sentence and status 4, but the run ends after a whole step, and what it
# measured is not lost. On the last step too.
if [ ! -w /dev/full ]; then
    echo "no /dev/full: that part not run"
    exit 0
fi
# Nor does it train on without a record, which would take the longer run hours.
for steps in 1 10000000; do
    st=0
    timeout -k 5 60 "$exe" "$tmp/plan.json" --data "text:$tmp/text" --steps $steps --metrics /dev/full \
        --dump "$tmp/dump" >"$tmp/out" 2>"$tmp/err" || st=$?
    [ $st -eq 4 ] || { echo "exit $st, want 4"; cat "$tmp/err"; exit 1; }
    [ "$(cat "$tmp/err")" = "ptexec: /dev/full: cannot write the metrics: No space left on device" ]
    grep -q '^step time  *[0-9.]' "$tmp/out"
    [ -d "$tmp/dump/final" ]
    rm -rf "$tmp/dump"
done
launched 4 /dev/full
[ $st -eq 4 ]
grep -q '/dev/full: cannot write the metrics: No space left' "$tmp/err.0"
grep -q '^step time  *[0-9.]' "$tmp/out.0"
[ ! -s "$tmp/err.1" ]
echo "metrics are what they should be"
