#!/bin/sh
# Speed and size of the planner on one core, printed: CPU seconds of three cases with all
# dimensions free, layouts bounded a second, rows of runs evaluated a second, memory.
# usage: plan-speed.sh [FOLDER of ptplan; default: the build tree]
set -eu
command -v python3 >/dev/null || { echo "python3, which measures, is not here"; exit 77; }
ptplan=${1:-${top_builddir:-.}}/ptplan
runs=${top_srcdir:-.}/tests/data/validation/runs.csv
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# measure COMMAND...: its CPU seconds and megabytes in $cpu and $rss, its output in $tmp/out
measure() {
    python3 - "$tmp/out" "$@" >"$tmp/used" <<'PY'
import resource, subprocess, sys
with open(sys.argv[1], "w") as out:
    rc = subprocess.run(sys.argv[2:], stdout=out).returncode
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print("%.3f %.0f %d" % (u.ru_utime + u.ru_stime, u.ru_maxrss / 1024, rc))
PY
    read -r cpu rss rc <"$tmp/used"
}

plan() { # NAME GOAL OPTIONS...
    name=$1 goal=$2
    shift 2
    measure "$ptplan" "$@" --format json
    seen=$(python3 -c 'import json,sys
d = json.load(open(sys.argv[1]))
def find(x):
    if isinstance(x, dict):
        if "seen" in x: return x["seen"]
        x = list(x.values())
    if isinstance(x, list):
        for y in x:
            r = find(y)
            if r is not None: return r
print(find(d) or 0)' "$tmp/out")
    printf '%-22s %7s s of CPU (%s wanted)  %5s MB (200)  exit %s  %9s layouts, %s a second\n' \
        "$name" "$cpu" "$goal" "$rss" "$rc" "$seen" \
        "$(awk -v n="$seen" -v s="$cpu" 'BEGIN { printf "%.2fM", n / s / 1e6 }')"
}

plan "10B on 16 H100" 0.1 --params 10B --gpus 16 --mem 80G
plan "175B on 1024 A100" 1 --model gpt3-175B --gpu A100-80-SXM4 --gpus 1024 --global-batch 1536
plan "1T on 24576 H100" 5 --params 1T --gpu H100-80-SXM5 --gpus 24576 --global-batch 6144
if [ -r "$runs" ]; then
    i=0
    cp "$runs" "$tmp/runs.csv"
    while [ $i -lt 19 ]; do
        tail -n +2 "$runs" >>"$tmp/runs.csv"
        i=$((i + 1))
    done
    measure "$ptplan" --evaluate "$tmp/runs.csv"
    n=$(($(wc -l <"$tmp/runs.csv") - 1))
    printf '%-22s %7s s of CPU, %s rows a second (20000 wanted)  %5s MB  exit %s\n' \
        "evaluate $n rows" "$cpu" "$(awk -v n=$n -v s="$cpu" 'BEGIN { printf "%.0f", n / s }')" \
        "$rss" "$rc"
fi
