#!/bin/sh
# The five-minute walk of the README: plan a small model for this machine, train it on a text for
# 200 steps on 4 ranks, plot the loss, compare prediction and measurement. In the build folder, or
# with the programs on PATH: walk.sh [TEXT [FOLDER]]
set -eu
text=${1-/usr/share/common-licenses/GPL-3}
out=${2-walk}
PATH=$PWD:$PATH
here=$(cd "$(dirname "$0")/../.." && pwd)
if [ -d "$here/profiles" ]; then export PT_PROFILE_DIR="$here/profiles"; fi
mkdir -p "$out"
ptprof cpu --time 5s -o "$out/machine.csv"
ptplan --layers 4 --hidden 128 --heads 4 --vocab 256 --seq-length 64 --gpu cpu --gpus 4 --mem 2G \
    --global-batch 16 --calibration "$out/machine.csv" -o "$out/plan.json"
ptsim "$out/plan.json"
ptexec "$out/plan.json" --data "text:$text" --steps 200 --log-every 20 --metrics "$out/loss.csv" \
    --trace "$out/step.json"
ptsim "$out/plan.json" --compare "$out/step.json"
if command -v gnuplot >/dev/null; then
    gnuplot -e "set terminal svg size 640,400; set output '$out/loss.svg'; set datafile separator ','; \
        set key autotitle columnhead; set xlabel 'step'; set ylabel 'loss'; set grid; \
        plot '$out/loss.csv' using 'step':'loss' with lines"
    echo "$out/loss.svg"
else
    echo "gnuplot is not here; the figures are in $out/loss.csv"
fi
