#!/bin/sh
# GPT-2's 124M shape on one thread: the rate of the whole step in CPU time beside that of the
# products alone, measured in one run. Run it in the build folder on an idle machine.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
export PT_PROFILE_DIR="$src/profiles"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: "${STEPS:=4}"
cat "$src"/exec/*.c "$src"/libpt/*.c >"$tmp/text"
./ptprof cpu --time 10s -o "$tmp/machine.csv"
head -n 2 "$tmp/machine.csv"
./ptplan --model gpt2 --gpu cpu --gpus 1 --mem 4G --seq-length 1024 --global-batch 2 --micro-batch 1 \
    --calibration "$tmp/machine.csv" -o "$tmp/plan.json" >/dev/null
./ptexec "$tmp/plan.json" --data "text:$tmp/text" --steps "$STEPS" | tee "$tmp/out"
awk '/^step time/ { t = $3 } END {
    # 6 FLOP a parameter and token, and causal attention 6 layers hidden seq
    flop = 2 * 1024 * (6 * 124.4e6 + 6 * 12 * 768 * 1024)
    printf "%.1f GFLOP/s over the step, %.0f tokens/s\n", flop / t / 1e9, 2 * 1024 / t }' "$tmp/out"
