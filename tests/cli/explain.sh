#!/bin/sh
# --explain: a row per change. No change of the layout alone may beat the best plan, and more memory
# may not make it worse: the rows come from searches of their own, so this checks the search.
. "${top_srcdir:-.}/tests/cli/lib.sh"
for case in "--params 20B --gpus 16 --mem 80G" "--model mixtral-8x7B --gpus 32 --mem 80G"; do
    # shellcheck disable=SC2086 # options
    "$top_builddir/ptplan" $case --explain >"$tmp/out"
    sed '1,/^dimension /d' "$tmp/out" >"$tmp/rows"
    for dimension in tp pp dp cp micro-batch zero schedule recompute offload GPUs memory; do
        grep -q "^$dimension " "$tmp/rows" || { echo "$case: no row for $dimension"; cat "$tmp/out"; exit 1; }
    done
    awk 'length > 80 { print "too long: " $0; bad = 1 }
        match($0, /[+-][0-9.]+%/) {
            change = substr($0, RSTART, RLENGTH - 1) + 0
            if ($1 != "GPUs" && $1 != "memory" && $1 != "offload" && change < 0) { print "faster: " $0; bad = 1 }
            if ($1 == "memory" && $2 + 0 < $4 + 0 && change > 0) { print "slower: " $0; bad = 1 }
        }
        END { exit bad }' "$tmp/rows"
done
