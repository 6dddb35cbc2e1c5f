#!/bin/sh
# A library reports through struct pt_error: it does not print, stop the program or keep state.
. "${top_srcdir:-.}/tests/lint/lib.sh"

# The lines of the libraries, "file:line:text", strings emptied.
code=$(mktemp)
trap 'rm -f "$code"' EXIT
# shellcheck disable=SC2046 # file names without blanks
grep -n '' $(sources | grep -vE '^tests/|/main\.c$|\.cu$') | sed 's/"[^"]*"/""/g' >"$code"

# forbid REGEX WHY [FILES]: no line of the libraries (of those whose name matches FILES).
forbid() {
    if grep -E "^${3-}[^:]*:[0-9]*:.*$1" "$code"; then complain "$2"; fi
}
forbid '\<(exit|_exit|abort|assert)\(' "a library does not stop the program"
# Reporting is what libpt/error.c is for.
if grep -v '^libpt/error\.c:' "$code" | grep -E '\<fprintf\(stderr|\<perror\('; then
    complain "a library does not write to stderr; fill struct pt_error"
fi
forbid '\<(s?rand|random|drand48|setlocale|strtok|gets|sprintf|atoi|atof)\(' \
    "not allowed: hidden state, or no way to see an error"
# clang counts the promotion of these floats among its warnings, gcc does not.
forbid '\<(INFINITY|NAN)\>' 'INFINITY and NAN are float; write HUGE_VAL or nan("")' \
    '(libpt|planner|sim)/'
# Variables of a file that are not const: "static int n;", "static char buf[9];".
if grep -E ':[0-9]*:static [a-z_ ]+\**[a-z_0-9]+(\[[^]]*\])*( = .*)?;$' "$code" | grep -vw const; then
    complain "a mutable global outside main.c"
fi
exit "$bad"
