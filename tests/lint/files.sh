#!/bin/sh
# The shape of files: length, guards, no notes to self, no paths of one machine.
. "${top_srcdir:-.}/tests/lint/lib.sh"

# shellcheck disable=SC2046 # file names without blanks
wc -l $(sources) | awk '$2 != "total" && $1 > 800 {
    print $2 ": " $1 " lines; split it (800 at most)"; bad = 1 } END { exit bad }' || bad=1

# One guard a header, its own. config.h holds the feature macros, which must come before the first
# system header.
# shellcheck disable=SC2046
awk '
    FNR == 1 { finish(); file = FILENAME; guard = ""; defined = 0; first = "" }
    /^#ifndef [A-Z0-9_]*_H$/ && guard == "" { guard = $2 }
    /^#define [A-Z0-9_]*_H$/ && $2 == guard { defined = 1 }
    /^#include/ && first == "" { first = $2 }
    END { finish(); exit bad }
    function wrong(what) { print file ": " what; bad = 1 }
    function finish() {
        if (file ~ /\.h$/ && !defined) wrong("has no include guard")
        if (file ~ /\.h$/ && defined && guard in seen) wrong(guard " guards " seen[guard] " too")
        if (file ~ /\.c$/ && first != "\"config.h\"") wrong("its first include is not config.h")
        if (guard != "") seen[guard] = file
    }' $(sources) || bad=1

notes='TO''DO|FIX''ME|XX''X|HA''CK:'
places='/wor''k/|\.\./shar''ed|/home/[a-z]'
# shellcheck disable=SC2046
if grep -nE "\\b($notes)\\b" $(texts); then complain "a note to self"; fi
# shellcheck disable=SC2046
if grep -nE "$places" $(texts); then complain "a path of one machine"; fi
# shellcheck disable=SC2046
if grep -nE '[[:blank:]]$' $(texts | grep -vE '\.(mk|am|m4|csv)$|^tests/(golden|data)/'); then
    complain "blanks at the end of a line"
fi
exit "$bad"
