#!/bin/sh
# Who may include what: each foreign library behind one file, and no program beside another.
. "${top_srcdir:-.}/tests/lint/lib.sh"

# "file:line:#include ..." of the whole tree, read once.
includes=$(mktemp)
trap 'rm -f "$includes"' EXIT
# shellcheck disable=SC2046 # file names without blanks
grep -nE '^#include' $(sources) >"$includes"

for header in glpk.h csv.h jansson.h mpi.h nccl.h cblas.h; do
    users=$(grep -F "#include <$header>" "$includes" | cut -d: -f1 || true)
    [ "$(printf '%s\n' "$users" | grep -c .)" -le 1 ] ||
        complain "<$header> belongs to one file, but is included by:
$users"
done
if grep -E '#include [<"](cuda|cublas)' "$includes" | grep -vE '^[^:]*cuda|^[^:]*\.cu:|^tests/'; then
    complain "only the CUDA files include CUDA's headers"
fi
if grep -F '#include ".' "$includes"; then
    complain "write includes from the root, \"libpt/plan.h\""
fi
# A program that composes two does so in its main.c, through one header of the other.
for folder in libpt planner sim exec prof queue; do
    for other in planner sim exec prof queue; do
        [ "$other" != "$folder" ] || continue
        # ptprof measures what ptexec runs: its kernels and its transport.
        [ "$folder/$other" != prof/exec ] || continue
        if grep "^$folder/" "$includes" | grep -F "#include \"$other/" | grep -v '/main\.c:'; then
            complain "$folder must not include $other"
        fi
        n=$(grep "^$folder/main\.c:" "$includes" | grep -cF "#include \"$other/" || true)
        [ "$n" -le 1 ] || complain "$folder/main.c: includes $n headers of $other"
    done
done
exit "$bad"
