#!/bin/sh
# ptprof writes a table that ptplan reads and that changes its plan; its columns and rows are fixed.
. "${top_srcdir:-.}/tests/cli/lib.sh"
prof=$top_builddir/ptprof plan=$top_builddir/ptplan
"$prof" cpu --time 300ms -o "$tmp/a.csv"
"$prof" cpu --time 100ms >"$tmp/b.csv"
# Provenance and the curve are comments; then one header and the same rows in every file.
head -n 1 "$tmp/a.csv" | grep -q '^# ptprof [0-9.]* on .*, 20[0-9-]* [0-9:]* UTC$'
[ "$(grep -c '^# sgemm [0-9x]*: .* FLOP/s, by the constants ' "$tmp/a.csv")" -eq 12 ]
for f in a b; do
    grep -v '^#' "$tmp/$f.csv" | cut -d, -f1-3,6 >"$tmp/$f.rows"
done
[ "$(head -n 1 "$tmp/a.rows")" = scope,key,constant,unit ]
diff "$tmp/a.rows" "$tmp/b.rows"
# Rates are numbers that a processor can have.
grep -v '^#' "$tmp/a.csv" | awk -F, '
    NR == 1 { next }
    $5 + 0 < 0 || $5 != $4 || $5 !~ /^[0-9.e+-]+$/ { print "odd: " $0; bad = 1 }
    $3 == "fp32_flops" && ($5 < 1e7 || $5 > 1e14) { print "odd: " $0; bad = 1 }
    $3 ~ /bytes_per_s$/ && ($5 < 1e7 || $5 > 1e12) { print "odd: " $0; bad = 1 }
    $7 == "" { print "no word on how: " $0; bad = 1 }
    END { exit bad }'
# step SECONDS of a plan with a table.
step() {
    "$plan" --layers 4 --hidden 256 --heads 4 --vocab 1024 --seq-length 256 --gpu cpu --gpus 2 \
        --mem 2G --global-batch 8 --micro-batch 1 --pp 2 --calibration "$1" -o "$tmp/plan.json" \
        >/dev/null 2>&1
    sed -n '/^  "predictions"/,$s/^      "step_s": \(.*\),$/\1/p' "$tmp/plan.json"
}
sed 's/^machine,cpu,fp32_flops,.*/machine,cpu,fp32_flops,1e9,1e9,FLOP\/s,by hand/' "$tmp/a.csv" >"$tmp/slow.csv"
fast=$(step "$tmp/a.csv") slow=$(step "$tmp/slow.csv")
awk "BEGIN { exit !($slow > 5 * $fast && $fast > 0) }" || { echo "$fast s, then $slow s"; exit 1; }
fails 2 "$prof"
fails 2 "$prof" gpu
fails 4 "$prof" cpu --time 1ms -o "$tmp/no/such/folder.csv"
st=0
"$prof" cpu --time 1ms >/dev/full 2>"$tmp/err" || st=$?
[ $st -eq 4 ]
