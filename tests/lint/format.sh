#!/bin/sh
# The tree is as clang-format leaves it. Versions differ in what they do, so one decides: 14.
. "${top_srcdir:-.}/tests/lint/lib.sh"
for clang_format in clang-format-14 clang-format none; do
    if command -v "$clang_format" >/dev/null; then break; fi
done
need "$clang_format"
case $("$clang_format" --version) in *"version 14."*) ;; *)
    echo "not clang-format 14"
    exit 77
    ;;
esac
# shellcheck disable=SC2046 # file names without blanks
"$clang_format" --dry-run --Werror $(sources | grep -v '\.cu$') || complain "run clang-format -i"
exit "$bad"
