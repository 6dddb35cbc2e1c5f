#!/bin/sh
# The shape of files: length, guards, no notes to self, no paths of one machine.
. "${top_srcdir:-.}/tests/lint/lib.sh"

for file in $(sources); do
    n=$(wc -l <"$file")
    [ "$n" -le 800 ] || complain "$file: $n lines; split it (800 at most)"
    case $file in
    *.h)
        guard=$(sed -n 's/^#ifndef \([A-Z0-9_]*_H\)$/\1/p' "$file" | head -n 1)
        if [ -z "$guard" ] || ! grep -q "^#define $guard\$" "$file"; then
            complain "$file: has no include guard"
        fi
        ;;
    *.c)
        # It holds the feature macros, which must come before the first system header.
        [ "$(grep -m 1 '^#include' "$file")" = '#include "config.h"' ] ||
            complain "$file: its first include is not config.h"
        ;;
    esac
done

# One guard in two files would silently drop one of them.
# shellcheck disable=SC2046
twice=$(sed -n 's/^#ifndef \([A-Z0-9_]*_H\)$/\1/p' $(sources) | sort | uniq -d)
[ -z "$twice" ] || complain "the same include guard in two files: $twice"

notes='TO''DO|FIX''ME|XX''X|HA''CK:'
places='/wor''k/|\.\./shar''ed|/home/[a-z]'
for file in $(texts); do
    if grep -nE "\\b($notes)\\b" "$file"; then complain "$file: a note to self"; fi
    if grep -nE "$places" "$file"; then complain "$file: a path of one machine"; fi
    case $file in *.mk | Makefile.am | *.m4 | *.csv | tests/golden/*) continue ;; esac
    if grep -nE '[[:blank:]]$' "$file"; then complain "$file: blanks at the end of a line"; fi
done
exit "$bad"
