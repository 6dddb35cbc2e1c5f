#!/bin/sh
# --report: tables, scripts, pictures where gnuplot is, and a page that loads nothing.
. "${top_srcdir:-.}/tests/cli/lib.sh"
ptplan=$top_builddir/ptplan
complain() {
    echo "$*"
    exit 1
}
"$ptplan" --params 13B --gpus 32 --mem 80G --tokens 300B --report "$tmp/r" >"$tmp/out" 2>"$tmp/err"
for table in stages plans traffic pareto scaling; do
    [ "$(wc -l <"$tmp/r/$table.csv")" -ge 2 ] || complain "$table.csv is empty"
done
lines=$(wc -l <"$tmp/out")
head -n "$lines" "$tmp/r/summary.txt" | cmp - "$tmp/out" || complain "summary.txt differs"
if grep -Eo '(src|href)="(https?:)?//' "$tmp/r/report.html"; then
    complain "the page loads from the network"
fi
# The front falls: less memory is never faster.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { if ($c["mem_device_GiB"] > memory && NR > 2) bad = 1
      if ($c["step_time_s"] < step) bad = 1
      memory = $c["mem_device_GiB"]; step = $c["step_time_s"] }
    END { exit bad }' "$tmp/r/pareto.csv" || complain "pareto.csv is no front"
if command -v gnuplot >/dev/null; then
    for name in memory step pareto scaling; do
        [ -s "$tmp/r/$name.png" ] || complain "no picture $name"
        grep -q '</svg>' "$tmp/r/$name.svg" || complain "$name.svg is cut"
    done
    [ ! -s "$tmp/r/gnuplot.log" ] || { cat "$tmp/r/gnuplot.log"; exit 1; }
    [ "$(grep -c 'data:image/svg' "$tmp/r/report.html")" -eq 4 ] || complain "pictures are not inline"
fi
# Without gnuplot: everything but the pictures, and a sentence.
mkdir "$tmp/empty"
PATH=$tmp/empty "$ptplan" --params 13B --gpus 32 --mem 80G --report "$tmp/r2" >"$tmp/out" 2>"$tmp/err"
grep -q 'gnuplot is not installed' "$tmp/err" || complain "no word about gnuplot"
[ -s "$tmp/r2/plans.csv" ] && [ -s "$tmp/r2/report.html" ] && [ ! -e "$tmp/r2/step.svg" ]
