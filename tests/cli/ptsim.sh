#!/bin/sh
# ptsim: a schedule alone (golden figures), a plan (invariants, because constants are refitted),
# outputs, and bad input.
. "${top_srcdir:-.}/tests/cli/lib.sh"
sim=$top_builddir/ptsim
plan=$top_builddir/ptplan
times="--forward 18.522ms --backward 18.086ms --weight 9.337ms --comm 0.601ms"

every_schedule() {
    for s in gpipe 1f1b interleaved zb-h1 zb-h2 zb-v v-half v-min zb-auto; do
        vpp=
        [ "$s" != interleaved ] || vpp="--vpp 2"
        # shellcheck disable=SC2086 # lists of options
        "$sim" --pp 4 --micro-batches 12 --schedule $s $vpp $times --format csv
    done
}
golden ptsim-schedules.txt every_schedule
# shellcheck disable=SC2086
golden ptsim-text.txt "$sim" --pp 4 --micro-batches 8 --schedule zb-h2 $times
printf 'stage,fwd_ms,bwd_ms\n0,10,20\n1,12.5,25\n2,9,30\n' >"$tmp/times.csv"
golden ptsim-stages.txt "$sim" --pp 3 --micro-batches 6 --schedule 1f1b --csv \
    --forward-times "$tmp/times.csv"
printf '10ms\n12.5ms\n9ms\n' >"$tmp/forward"
printf '20ms\n25ms\n30ms\n' >"$tmp/backward"
golden ptsim-stages.txt "$sim" --pp 3 --micro-batches 6 --schedule 1f1b --csv \
    --forward-times "$tmp/forward" --backward-times "$tmp/backward"

# Twice the same, to the byte, and a list scheduler that does not depend on the machine.
# shellcheck disable=SC2086
for f in a b; do
    "$sim" --pp 8 --micro-batches 32 --schedule zb-auto --max-in-flight 16 $times \
        --format json --trace "$tmp/$f.trace" --memory-timeline "$tmp/$f.memory" >"$tmp/$f.json"
done
cmp "$tmp/a.json" "$tmp/b.json"
cmp "$tmp/a.trace" "$tmp/b.trace"
cmp "$tmp/a.memory" "$tmp/b.memory"

# What is wrong is said, with the nearest right values, and nothing is printed.
says() {
    # shellcheck disable=SC2086 # a list of options
    fails "$1" "$sim" $3
    grep -q -- "$2" "$tmp/err" || { echo "'$3' does not say '$2':"; cat "$tmp/err"; exit 1; }
}
some="--forward 1s --backward 2s"
says 2 'nearest are 16 and 24' "--pp 8 --micro-batches 20 --schedule interleaved --vpp 2 $some"
says 2 'missing' "--pp 8 --schedule 1f1b $some"
says 2 '1f1b' "--pp 8 --micro-batches 8 --schedule 1f2b $some"
says 2 'it has 2' "--pp 8 --micro-batches 8 --schedule zb-v --vpp 4 $some"
says 2 'at least 1' "--pp 8 --micro-batches 8 --schedule zb-auto --max-in-flight 0.5 $some"
says 2 '3 rows of times for 4 stages' \
    "--pp 4 --micro-batches 8 --schedule 1f1b --forward-times $tmp/times.csv"
says 2 'no header' "--pp 3 --micro-batches 8 --schedule 1f1b --forward-times /dev/null"
printf 'stage,backward\n0,1\n1,2\n2,3\n' >"$tmp/bad.csv"
says 2 "no column 'forward'" "--pp 3 --micro-batches 8 --schedule 1f1b --forward-times $tmp/bad.csv"
printf 'forward\n1\n-2\n3\n' >"$tmp/bad.csv"
says 2 'bad.csv:3' "--pp 3 --micro-batches 8 --schedule 1f1b --forward-times $tmp/bad.csv"
says 2 'no-such-plan.json' "no-such-plan.json"
says 2 'one plan at a time' "a.json b.json"
says 2 'need a plan' "--pp 3 --micro-batches 8 --schedule 1f1b $some --jitter 5%"
says 2 'svg or .png' "--pp 3 --micro-batches 8 --schedule 1f1b $some --gantt $tmp/x.jpg"
printf '{"version": 1' >"$tmp/cut.json"
says 2 'cut.json' "$tmp/cut.json"

[ -x "$plan" ] || exit 0
PT_PROFILE_DIR=$top_srcdir/profiles
export PT_PROFILE_DIR
"$plan" --params 10B --gpus 16 --mem 80G --pp 4 --tp 2 -o "$tmp/plan.json" >/dev/null
field() { # COLUMN: of the one row of csv on stdin
    awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) k = i }
        NR == 2 { print $k }'
}
near() { # A B TOLERANCE
    awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a / b - 1; exit !(a > 0 && d < t && -d < t) }' ||
        { echo "$1 is not near $2"; exit 1; }
}
"$sim" --format csv "$tmp/plan.json" >"$tmp/folded"
"$sim" --format csv --unfold "$tmp/plan.json" >"$tmp/all"
[ "$(field ranks <"$tmp/folded")" -eq 4 ]
[ "$(field ranks <"$tmp/all")" -eq 16 ]
near "$(field step_s <"$tmp/folded")" "$(field step_s <"$tmp/all")" 1e-9
near "$(field step_s <"$tmp/folded")" "$(field closed_form_step_s <"$tmp/folded")" 0.1
# Bytes: what is sent is received, and is the closed form's for a stage inside the pipeline.
"$sim" --csv "$tmp/plan.json" | awk -F, 'NR > 1 { sent += $11; got += $12 }
    END { exit !(sent > 0 && sent == got) }'
# A straggler costs time; the same seed gives the same bytes, another one does not.
slow=$("$sim" --format csv --straggler rank=3,slowdown=1.5 "$tmp/plan.json" | field step_s)
awk -v a="$slow" -v b="$(field step_s <"$tmp/all")" 'BEGIN { exit !(a > 1.05 * b) }'
for seed in 7 7 8; do
    "$sim" --format csv --jitter 5% --seed $seed --steps 3 "$tmp/plan.json" >"$tmp/j.$seed.new"
    if [ -f "$tmp/j.$seed" ]; then cmp "$tmp/j.$seed" "$tmp/j.$seed.new"; fi
    mv "$tmp/j.$seed.new" "$tmp/j.$seed"
done
if cmp -s "$tmp/j.7" "$tmp/j.8"; then echo "two seeds, one result"; exit 1; fi
says 2 'rank 16; the plan has ranks 0 to 15' "--straggler rank=16,slowdown=2 $tmp/plan.json"
says 2 'rank=N,slowdown=X' "--link-degrade rank=1 $tmp/plan.json"
says 2 'has its own' "--pp 4 $tmp/plan.json"
says 2 'needs --tokens' "--mtbf 1h $tmp/plan.json"
says 3 'no progress' "--tokens 300B --mtbf 1s --checkpoint-time 10s --seeds 1 $tmp/plan.json"
# The trace is JSON, and compares with itself at ratio 1.
"$sim" --trace "$tmp/t.json" --memory-timeline "$tmp/m.csv" "$tmp/plan.json" >/dev/null
if command -v python3 >/dev/null; then python3 -m json.tool "$tmp/t.json" >/dev/null; fi
"$sim" --compare "$tmp/t.json" "$tmp/plan.json" | awk '/^[A-Z_]+ / && $NF != "1.000" { exit 1 }
    /^FORWARD/ { n++ } END { exit n != 1 }'
says 2 'not a trace' "--compare $tmp/plan.json $tmp/plan.json"
[ "$(head -n 1 "$tmp/m.csv")" = rank,time_s,allocated_bytes ]
if [ -w /dev/full ]; then
    st=0
    "$sim" --trace /dev/full "$tmp/plan.json" >/dev/null 2>"$tmp/err" || st=$?
    [ "$st" -eq 4 ]
fi
if command -v gnuplot >/dev/null; then
    "$sim" --gantt "$tmp/g.svg" "$tmp/plan.json" >/dev/null
    grep -q '</svg>' "$tmp/g.svg"
fi
