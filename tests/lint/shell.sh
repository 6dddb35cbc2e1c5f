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
exit "$bad"
