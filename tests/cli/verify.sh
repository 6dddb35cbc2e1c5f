#!/bin/sh
# ptplan --verify: the simulator's step beside the closed form, and its order where they differ.
. "${top_srcdir:-.}/tests/cli/lib.sh"
run="$top_builddir/ptplan --params 10B --gpus 16 --mem 80G"
PT_PROFILE_DIR=$top_srcdir/profiles
export PT_PROFILE_DIR
$run >"$tmp/one"
grep -q 'simulated step .* the closed form' "$tmp/one"
$run --verify 0 >"$tmp/none"
if grep -q simulated "$tmp/none"; then echo "--verify 0 simulates"; exit 1; fi
# The table is in the order of its first column whenever it says so.
$run --pp 8 --schedule v-min,v-half,1f1b,zb-v --verify 8 >"$tmp/eight"
sed -n '/^verified by simulation/,$p' "$tmp/eight" >"$tmp/table"
[ "$(grep -c ' z[0-3] ' "$tmp/table")" -eq 8 ]
grep -q "verified by simulation" "$tmp/table"
awk '/whose order this is/ { sorted = 1 }
    / z[0-3] / { if (sorted && $2 + 0 < last) bad = 1; last = $2 + 0 } END { exit bad }' "$tmp/table"
fails 2 "$top_builddir/ptplan" --params 10B --gpus 16 --mem 80G --verify 65
