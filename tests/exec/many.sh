#!/bin/sh
# Many more random layouts than make check draws.
cd "${top_builddir:-.}" || exit 1
PT_CASES=60 exec tests/exec/layouts
