#!/bin/sh
# Every property with many more seeds than make check has time for.
set -eu
: "${top_builddir:=.}"
n=0 bad=0
for program in "$top_builddir"/tests/prop/prop_*; do
    case $program in *.o | *.log | *.trs) continue ;; esac
    echo "== $program"
    PT_TIMES=10 "$program" || bad=1
    n=$((n + 1))
done
[ "$n" -gt 0 ] && exit "$bad"
