#!/bin/sh
# Every script passes shellcheck.
. "${top_srcdir:-.}/tests/lint/lib.sh"
need shellcheck
for file in $(texts); do
    case $(head -c 20 "$file" | head -n 1) in
    '#!/bin/sh'* | '#!/bin/bash'* | '#!/usr/bin/env bash'* | '#!/usr/bin/env sh'*) ;;
    *) continue ;;
    esac
    # SC1091: lib.sh is found at run time.  SC2154: its variables come from there.
    shellcheck -e SC1091,SC2154 "$file" || complain "$file"
done
exit "$bad"
