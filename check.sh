#!/bin/sh
# Runs the tests of the build that ./bootstrap.sh made. Where one fails, its log is printed.
set -eu
cd "$(dirname "$0")"
build=b
if [ -f config.status ]; then build=.; fi
if [ ! -f "$build/config.status" ]; then
    echo "nothing is built yet; run ./bootstrap.sh first" >&2
    exit 2
fi
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
exec make -C "$build" --no-print-directory -j"$jobs" check VERBOSE=1
