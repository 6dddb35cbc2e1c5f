#!/bin/sh
# pt-profile(5) names every column of the profiles, and no other.
. "${top_srcdir:-.}/tests/cli/lib.sh"
page=$top_srcdir/man/pt-profile.5
# columns SECTION: the words of the section's .It Cm lines
columns() {
    awk -v section="$1" '/^\.Ss / { on = substr($0, 5) == section } /^\.Sh / { on = 0 }
        on && sub(/^\.It Cm /, "") { gsub(/ , /, "\n"); print }' "$page"
}
columns "Columns of every file" | sort >"$tmp/common"
bad=0
for name in gpus links nodes models stacks; do
    grep -v '^#' "$top_srcdir/profiles/$name.csv" | head -n 1 | tr ',' '\n' | sort |
        comm -23 - "$tmp/common" >"$tmp/file"
    columns "$name.csv" | sort >"$tmp/page"
    diff -u "$tmp/file" "$tmp/page" || { echo "$name.csv and its section differ"; bad=1; }
done
exit "$bad"
