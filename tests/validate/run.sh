#!/bin/sh
# The accuracy of the predictions, four figures side by side; then the score by group.
# usage: run.sh [BUILD_DIR]  (default: the current folder)
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-.}
runs=$src/tests/data/validation/runs.csv
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
"$build/tests/validate/fit" "$src/profiles" "$runs" figures
echo
PT_PROFILE_DIR=$src/profiles "$build/ptplan" --evaluate "$runs" >"$tmp"
echo "shipped constants, on the rows that they were fitted on:"
"$build/tests/validate/score" "$runs" "$tmp"
