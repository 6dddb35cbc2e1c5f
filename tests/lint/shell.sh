#!/bin/sh
# Every script passes shellcheck.
. "${top_srcdir:-.}/tests/lint/lib.sh"
need shellcheck
# shellcheck disable=SC2046 # file names without blanks
scripts=$(awk 'FNR == 1 && /^#!.*\/(env )?(ba)?sh/ { print FILENAME }' $(texts))
[ -n "$scripts" ]
# SC1091: lib.sh is found at run time.  SC2154: its variables come from there.
# shellcheck disable=SC2086
shellcheck -e SC1091,SC2154 $scripts || bad=1
# A bare Debian has neither: a test that wants one asks for it first, and is skipped without.
for tool in python3 pgrep jq bc gnuplot; do
    # shellcheck disable=SC2086
    for script in $(grep -lE "(^|[|(;&] *)$tool " $scripts || true); do
        grep -q "command -v $tool" "$script" || complain "$script: uses $tool without asking for it"
    done
done
exit "$bad"
