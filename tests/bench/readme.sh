#!/bin/sh
# Puts today's figures into README.md: every block between <!-- NAME --> and <!-- end --> is
# replaced by what the program prints now. Read the difference before you commit it: the sentences
# around the tables are not changed.
#
#   top_builddir=b tests/bench/readme.sh
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
if [ -n "${top_builddir-}" ]; then PATH=$(cd "$top_builddir" && pwd):$PATH; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

indent() { sed 's/^\(.\)/    \1/'; }
ptplan --params 10B --gpus 16 --mem 80G | indent >"$tmp/summary"
ptplan --params 24B --gpus 4 --mem 80G 2>&1 | fold -s -w 92 | sed 's/ *$//' | indent >"$tmp/capacity" || true
"$top/tests/bench/user-case.sh" >"$tmp/tables"
awk -v dir="$tmp" 'BEGIN { RS = ""; n = split("case-fit case-26 case-beside case-next case-bubble rule", name, " ") }
    NR <= n { print >(dir "/" name[NR]) }' "$tmp/tables"
awk -v dir="$tmp" '
    /^<!-- end -->$/ { skip = 0 }
    !skip { print }
    /^<!-- [a-z0-9-]+ -->$/ && $2 != "end" {
        file = dir "/" $2
        if ((getline line <file) < 0) { print "no figures for " $2 >"/dev/stderr"; exit 1 }
        print ""
        do print line; while ((getline line <file) > 0)
        print ""
        skip = 1
    }' "$top/README.md" >"$tmp/README.md"
cat "$tmp/README.md" >"$top/README.md"
