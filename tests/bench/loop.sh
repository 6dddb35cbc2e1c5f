#!/bin/sh
# Plan, train, compare: what the planner said against what the executor measured, over layouts on
# this machine. Run it in the build folder on an idle machine: ../tests/bench/loop.sh [SECONDS]
# Prints one row a layout, then the worst and the median, and the rank correlation of step times.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
: "${STEPS:=8}" "${MODEL:=--layers 8 --hidden 256 --heads 8 --vocab 1024 --seq-length 256}"
export PT_PROFILE_DIR="$src/profiles"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
./ptprof cpu --time "${1-10}s" -o "$tmp/machine.csv"
head -n 2 "$tmp/machine.csv"
cat "$src"/exec/*.c "$src"/libpt/*.c >"$tmp/text"
layouts="--gpus 1
--gpus 1 --recompute full
--gpus 1 --recompute selective
--gpus 1 --micro-batch 4
--gpus 1 --offload optimizer
--gpus 2 --pp 2 --schedule 1f1b
--gpus 2 --pp 2 --schedule gpipe
--gpus 2 --pp 2 --schedule zb-h1
--gpus 2 --pp 2 --vpp 2 --schedule interleaved
--gpus 2 --tp 2
--gpus 2 --tp 2 --sequence-parallel
--gpus 2 --dp 2 --zero 0
--gpus 2 --dp 2 --zero 1
--gpus 2 --dp 2 --zero 2
--gpus 2 --dp 2 --zero 3"
echo "layout,step_measured_s,step_planned_s,memory_measured,memory_planned,tp_measured,tp_planned,dp_measured,dp_planned,pp_measured,pp_planned" >"$tmp/table.csv"
echo "$layouts" | while IFS= read -r layout; do
    # shellcheck disable=SC2086 # options, one word each
    ./ptplan $MODEL --global-batch 16 --gpu cpu --mem 4G --calibration "$tmp/machine.csv" \
        --micro-batch 1 $layout -o "$tmp/plan.json" >/dev/null
    ./ptexec "$tmp/plan.json" --data "text:$tmp/text" --steps "$STEPS" --log-every 1000 >"$tmp/out"
    awk -v name="$layout" '
        function pair(a, b) { row = row "," a "," b }
        /^step time/ { pair($3, $4) }
        /^peak memory/ { pair($3, $4) }
        /^(tensor|data)-parallel bytes/ { pair($3, $4) }
        /^pipeline bytes/ { pair($3, $4) }
        END { print name row }' "$tmp/out" | tee -a "$tmp/table.csv"
done
# A median, and Spearman's rank correlation.
awk -F, '
    function off(a, b) { return a > b ? a / b - 1 : b / a - 1 }
    NR > 1 {
        n++; m[n] = $2; p[n] = $3; e[n] = off($2, $3)
        mem = off($4, $5); if (mem > worst) worst = mem
        bytes += ($6 != $7) + ($8 != $9) + ($10 != $11)
    }
    END {
        for (i = 1; i <= n; i++) {
            rm = rp = re = 1
            for (j = 1; j <= n; j++) { rm += m[j] < m[i]; rp += p[j] < p[i]; re += e[j] < e[i] }
            d += (rm - rp) ^ 2
            if (re == int((n + 1) / 2)) median = e[i]
        }
        printf "%d layouts: step time off by %.1f%% at the median, Spearman %.2f; memory off by %.2f%% at worst; %d volumes differ\n", \
            n, 100 * median, 1 - 6 * d / (n * (n * n - 1)), 100 * worst, bytes
    }' "$tmp/table.csv"
