#!/bin/sh
# Who may include what: each foreign library behind one file, and no program beside another.
. "${top_srcdir:-.}/tests/lint/lib.sh"

for header in glpk.h csv.h jansson.h mpi.h nccl.h cblas.h; do
    # shellcheck disable=SC2046 # file names without blanks
    users=$(grep -lE "^#include <$header>" $(sources) || true)
    [ "$(printf '%s\n' "$users" | grep -c .)" -le 1 ] ||
        complain "<$header> belongs to one file, but is included by:
$users"
done

for file in $(sources); do
    folder=${file%%/*}
    case $file in *cuda* | *.cu | tests/*) ;; *)
        if grep -nE '^#include [<"](cuda|cublas)' "$file"; then
            complain "$file: only the CUDA files include CUDA's headers"
        fi
        ;;
    esac
    if grep -nE '^#include "\.' "$file"; then
        complain "$file: write includes from the root, \"libpt/plan.h\""
    fi
    case $folder in libpt | planner | sim | exec | queue) ;; *) continue ;; esac
    for other in planner sim exec queue; do
        [ "$other" != "$folder" ] || continue
        # A program that composes two does so in its main.c, through the other's one header.
        n=$(grep -cE "^#include \"$other/" "$file" || true)
        case $file in
        */main.c) [ "$n" -le 1 ] || complain "$file: includes $n headers of $other" ;;
        *) [ "$n" -eq 0 ] || complain "$file: must not include $other" ;;
        esac
    done
done
exit "$bad"
