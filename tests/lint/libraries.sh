#!/bin/sh
# A library reports through struct pt_error: it does not print, stop the program or keep state.
. "${top_srcdir:-.}/tests/lint/lib.sh"

for file in $(sources); do
    case $file in */main.c | *.cu | tests/* | sim/evq.c) continue ;; esac
    if grep -nE '\b(exit|_exit|abort|assert)\(' "$file"; then
        complain "$file: a library does not stop the program"
    fi
    case $file in libpt/error.c) continue ;; esac
    if grep -nE 'fprintf\(stderr|perror\(' "$file"; then
        complain "$file: a library does not write to stderr; fill struct pt_error"
    fi
    if sed 's/"[^"]*"//g' "$file" | grep -nE '\b(rand|srand|random|drand48|setlocale|strtok|gets|sprintf|atoi|atof)\('; then
        complain "$file: uses a function that is not allowed here"
    fi
    # clang counts the promotion of these floats among its warnings, gcc does not.
    case $file in libpt/* | planner/* | sim/*)
        if grep -nwE 'INFINITY|NAN' "$file"; then
            complain "$file: INFINITY and NAN are float; write HUGE_VAL or nan(\"\")"
        fi
        ;;
    esac
    # File-scope variables that are not const: "static int n;", "static char buf[9];".
    if grep -nE '^static [a-z_ ]+\**[a-z_0-9]+(\[[^]]*\])*( = .*)?;$' "$file" |
        grep -vE '\bconst\b'; then
        complain "$file: a mutable global outside main.c"
    fi
done
exit "$bad"
