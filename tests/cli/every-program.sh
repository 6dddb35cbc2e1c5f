#!/bin/sh
# What holds for every program: help and version on stdout, a wrong option on stderr with the
# nearest right one, and status 4 when the output cannot be written.
. "${top_srcdir:-.}/tests/cli/lib.sh"
n=0
for prog in ptplan ptsim ptexec ptq ptprof; do
    [ -x "$top_builddir/$prog" ] || continue
    run=$top_builddir/$prog
    "$run" --version >"$tmp/out"
    grep -q "^$prog (ptplan) [0-9]" "$tmp/out" || { echo "$prog --version says:"; cat "$tmp/out"; exit 1; }
    "$run" --help >"$tmp/out" 2>"$tmp/err"
    grep -q "^Usage: $prog " "$tmp/out"
    [ ! -s "$tmp/err" ]
    awk -v prog="$prog" 'length($0) > 80 { print prog " --help: a line of " length($0) ": " $0; bad = 1 }
        END { exit bad }' "$tmp/out"
    fails 2 "$run" --hepl
    grep -q 'did you mean --help?' "$tmp/err"
    fails 2 "$run" --no-such-option-at-all
    if [ -w /dev/full ]; then
        st=0
        "$run" --help >/dev/full 2>"$tmp/err" || st=$?
        [ "$st" -eq 4 ] || { echo "$prog --help >/dev/full exits $st, not 4"; exit 1; }
        grep -q 'standard output' "$tmp/err"
    fi
    # GLPK is under the GPL and these sources are not: one program alone links it.
    if [ "$prog" != ptplan ] && command -v ldd >/dev/null && ldd "$run" | grep libglpk; then
        echo "$prog links GLPK"
        exit 1
    fi
    n=$((n + 1))
done
[ "$n" -gt 0 ] || exit 77
