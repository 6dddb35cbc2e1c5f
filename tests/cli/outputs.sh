#!/bin/sh
# What ptplan prints and writes: the formats agree with each other, one screen is one screen, the
# plan is a plan, and a failed output is exit 4.
. "${top_srcdir:-.}/tests/cli/lib.sh"
ptplan=$top_builddir/ptplan
case="--params 10B --gpus 16 --mem 80G"

complain() {
    echo "$*"
    exit 1
}
# column NAME FILE: of the first record; the reason may hold commas, so from the end where it must
column() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i - NF }
        NR == 2 { print $(NF + at) }' "$2"
}

# shellcheck disable=SC2086 # options
{
    "$ptplan" $case -o "$tmp/plan.json" >"$tmp/text"
    "$ptplan" $case --format csv --top 3 >"$tmp/csv"
    "$ptplan" $case --format json --top 3 >"$tmp/json"
    "$ptplan" $case -o - >"$tmp/stdout.json"
}
cmp "$tmp/plan.json" "$tmp/stdout.json" || complain "-o - writes another plan than -o FILE"

# One screen: 80 columns but for the log line, and no trailing blanks.
lines=$(wc -l <"$tmp/text")
[ "$lines" -le 50 ] || complain "the summary has $lines lines"
grep -v '^\[parallel\]' "$tmp/text" | awk 'length > 80 { print; bad = 1 } END { exit bad }' ||
    complain "lines above 80 columns"
if grep -n ' $' "$tmp/text"; then complain "blanks at the end of a line"; fi
grep -q '^step time ' "$tmp/text" || complain "no step time"
for word in allocated reserved device limit MFU HFU proved runner-up assumed; do
    grep -q "$word" "$tmp/text" || complain "the summary does not say $word"
done
grep -Eq '^\[parallel\] pipe_stages=[0-9]+, micro_batch=[0-9]+, offload=none, bubble_ratio=[0-9]+% step_time=[0-9.]+s, peak_mem=[0-9]+G/card$' \
    "$tmp/text" || complain "no log line"

# Three rows, best first; the same numbers in JSON.
[ "$(wc -l <"$tmp/csv")" -eq 4 ] || complain "not three records in CSV"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "step_time_s") at = i }
    NR > 1 { if ($at < last) bad = 1; last = $at } END { exit bad }' "$tmp/csv" ||
    complain "plans are not in order"
grep -q "\"step_time_s\": $(column step_time_s "$tmp/csv" | cut -c1-8)" "$tmp/json" ||
    complain "JSON and CSV differ"
# The parts add up to the step.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
    NR > 1 { sum = 0
        n = split("compute recompute tp cp ep pp bubble dp optimizer offload other", part, " ")
        for (i = 1; i <= n; i++) sum += $c[part[i] "_s"]
        if (sum - $c["step_time_s"] > 1e-6 || $c["step_time_s"] - sum > 1e-6) exit 1 }' \
    "$tmp/csv" || complain "the parts of a step do not add up to it"
# The last part is what the others leave: it must not have to be negative.
"$ptplan" --params 10B --gpus 16 --mem 80G --pp 4 --format csv --top 20 |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
        NR > 1 { n = split("compute recompute tp cp ep pp bubble dp optimizer offload other", part, " ")
            for (i = 1; i <= n; i++) if ($c[part[i] "_s"] < -1e-6) { print part[i], $0; bad = 1 } }
        END { exit bad }' || complain "a part of a step is negative"

# The same input gives the same bytes.
# shellcheck disable=SC2086
"$ptplan" $case -o "$tmp/again.json" >"$tmp/text2"
cmp "$tmp/text" "$tmp/text2" && cmp "$tmp/plan.json" "$tmp/again.json"

# A full disk.
if [ -c /dev/full ]; then
    for output in "" "--format csv" "--format json"; do
        st=0
        # shellcheck disable=SC2086
        "$ptplan" $case $output >/dev/full 2>"$tmp/err" || st=$?
        [ "$st" -eq 4 ] || complain "$output >/dev/full: exit $st"
    done
    # shellcheck disable=SC2086
    fails 4 "$ptplan" $case -o /dev/full
fi
# shellcheck disable=SC2086
fails 4 "$ptplan" $case -o "$tmp/no/such/plan.json"
# shellcheck disable=SC2086
fails 4 "$ptplan" $case --report "$tmp/no/such/report"

# Two outputs for one place.
# shellcheck disable=SC2086
{
    fails 2 "$ptplan" $case -o - --format csv
    fails 2 "$ptplan" $case --explain --format json
}

# Out of time: the best so far, its gap, exit 5.
st=0
"$ptplan" --params 1T --gpus 24576 --gpu H100 --global-batch 6144 --time-limit 1ms \
    >"$tmp/out" 2>"$tmp/err" || st=$?
[ "$st" -eq 5 ] || complain "--time-limit: exit $st"
grep -q 'time limit' "$tmp/err" || complain "no word about the time limit"

# HFU counts what is recomputed, layer by layer: not a third more for one layer of many.
"$ptplan" --model llama2-7B --gpus 8 --gpu RTX3090 --format csv --top 8 |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
        NR > 1 && $c["recompute"] == "full" {
            n++
            more = $c["hfu_pct"] / $c["mfu_pct"] - 1
            most = $c["recomputed_layers"] / 32 / 3
            if (more > 1.0001 * most || more < 0.9 * most) { print $c["label"], more, most; bad = 1 }
        }
        END { exit bad || n == 0 }' || complain "HFU does not follow the recomputed layers"
