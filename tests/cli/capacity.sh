#!/bin/sh
# Exit 3: what is missing, and what fits instead, on stderr; a record on stdout for CSV and JSON.
. "${top_srcdir:-.}/tests/cli/lib.sh"
ptplan=$top_builddir/ptplan
complain() {
    echo "$*"
    cat "$tmp/err"
    exit 1
}
# says WORDS: an extended regular expression that the message must match
says() { grep -Eq -e "$1" "$tmp/err" || complain "the message does not say: $1"; }
# between LO HI WORDS: the number before WORDS
between() {
    grep -Eo "[0-9.]+ $3" "$tmp/err" | head -n 1 | awk -v lo="$1" -v hi="$2" \
        '{ exit !($1 >= lo && $1 <= hi) }' || complain "not $1 to $2 $3"
}

# 24B x 16 bytes = 358 GiB; four cards hold about 4 x 79.
fails 3 "$ptplan" --params 24B --gpus 4 --mem 80G
says 'do not fit 4 x H100'
between 350 366 "GiB of states"
says 'against 4 x 7[0-9.]+ GiB usable'
says '[5-8] GPUs like these'
says '--offload optimizer: 28[0-9] GB of optimizer states'
says '--optimizer adam8bit'
grep -c . "$tmp/err" | awk '{ exit !($1 < 12) }' || complain "too long"

# Far too large: the largest model, and no list of refused layouts.
fails 3 "$ptplan" --params 20B --gpus 2 --mem 8G
says 'at most about [5-9][0-9]0M parameters'
grep -c . "$tmp/err" | awk '{ exit !($1 < 12) }' || complain "too long"

# The host's memory is a budget too: 15B x 12 = 185 GB and copies against 192 GiB.
fails 3 "$ptplan" --params 15B --gpus 8 --mem 80G --host-mem 192G --offload optimizer
says 'do not fit the host memory'
between 180 190 "GB of offloaded optimizer"
between 193 260 "GiB on the fullest node"
says '--offload 0\.[5-9][0-9]*: the share that the hosts have room for'
says '16 GPUs like these'

# Eager attention keeps 4 B x 16 x 32 x 4096^2 = 32 GiB of scores.
fails 3 "$ptplan" --model llama2-7B --attention eager --seq-length 4096 --micro-batch 16 \
    --gpus 8 --dp 8 --mem 80G
says '32\.0 GiB: .*scores 4 B x 16 x 32 x 4096 x 4096'
says '--attention flash'
says 'closest layout \(tp 1  pp 1  dp 8  zero 3  micro-batch 16 x 4  recompute full, 32 of 32'
! grep -q 'GPUs like these' "$tmp/err" || complain "8 cards do hold another layout"
fails 3 "$ptplan" --model llama2-7B --attention eager --seq-length 4096 --micro-batch 16 \
    --gpus 1 --mem 80G
says '32\.0 GiB: .*scores 4 B x 16 x 32 x 4096 x 4096'

# A number that is offered works as it stands.
fails 3 "$ptplan" --params 24B --gpus 4 --mem 80G
gpus=$(sed -n 's/.* - \([0-9]*\) GPUs like these$/\1/p' "$tmp/err")
"$ptplan" --params 24B --gpus "$gpus" --mem 80G >/dev/null

# Data parallelism alone holds everything on every card.
fails 3 "$ptplan" --params 10B --gpus 16 --mem 80G --tp 1 --pp 1 --cp 1 --zero 0
says 'another layout than the one given'
says '[6-8][0-9]\.[0-9] GiB too much'

for format in csv json; do
    st=0
    "$ptplan" --params 24B --gpus 4 --mem 80G --format $format >"$tmp/out" 2>"$tmp/err" || st=$?
    [ "$st" -eq 3 ] || complain "$format: exit $st"
    grep -q infeasible "$tmp/out" || complain "$format: no record"
    grep -q 'GPUs like these' "$tmp/out" || complain "$format: no reason"
    says 'GPUs like these'
done

# A plan is never written.
fails 3 "$ptplan" --params 24B --gpus 4 --mem 80G -o "$tmp/plan.json"
[ ! -e "$tmp/plan.json" ] || complain "a plan was written after an error"

# The smallest machine and the largest model, where there is none.
for ask in "--params 1B --gpus auto --tp 1 --pp 1 --zero 0" "--params max --gpus 1"; do
    st=0
    # shellcheck disable=SC2086 # a list of options
    "$ptplan" $ask --mem 1G --format json >"$tmp/out" 2>"$tmp/err" || st=$?
    [ "$st" -eq 3 ] || complain "$ask: exit $st"
    grep -q '"status": "infeasible"' "$tmp/out" || complain "$ask: no record"
done
fails 2 "$ptplan" --params 1B --gpus auto --mem 80G --tp 5
says 'TP 5 does not divide'
