#!/bin/sh
# Prints the figures of the README's section "A case from practice": a 10B model on few 80 GB cards,
# and the rule of thumb. ptplan must be on PATH or in top_builddir.
#
#   tests/bench/user-case.sh            all of it, as Markdown tables
set -eu
if [ -n "${top_builddir-}" ]; then PATH=$top_builddir:$PATH; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# figures OPTIONS...: "step GiB bubble%ideal label" of the best plan, or "- GiB - does not fit"
figures() {
    st=0
    ptplan "$@" --format csv >"$tmp/csv" 2>"$tmp/err" || st=$?
    case $st in 0 | 3) ;; *) cat "$tmp/err" >&2; exit "$st" ;; esac
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        NR == 2 {
            if ($c["status"] != "ok") { printf "- %s - no\n", need($0); exit }
            label = "tp" $c["tp"] ($c["sp"] == 1 ? "s" : "") " pp" $c["pp"] ($c["vpp"] > 1 ? "x" $c["vpp"] : "")
            label = label ($c["pp"] > 1 ? ":" $c["schedule"] : "") ($c["cp"] > 1 ? " cp" $c["cp"] : "")
            label = label " dp" $c["dp"] " z" $c["zero"] " mb" $c["micro_batch"]
            label = label ($c["recomputed_layers"] > 0 ? " re" $c["recomputed_layers"] : "")
            label = label ($c["offload_frac"] > 0 ? " off" : "")
            printf "%.2f %.1f %.1f %s\n", $c["step_time_s"], $c["mem_device_GiB"], $c["bubble_of_ideal_pct"], label
        }
        # the reason holds commas: the number stands behind the words
        function need(line) { match(line, /needs [0-9.]+ GiB/); return substr(line, RSTART + 6, RLENGTH - 10) }' \
        "$tmp/csv"
}
row() { # row TITLE OPTIONS...
    title=$1
    shift
    figures "$@" | {
        read -r step gib bubble label
        echo "| $title | $step | $gib | $bubble | $label |"
    }
}
header() {
    echo "| $1 | step, s | GiB a card | bubble of ideal, % | layout |"
    echo "| --- | --- | --- | --- | --- |"
}

ten="--params 10B --mem 80G"
header "10B on 16 x 80 GB"
# shellcheck disable=SC2086 # options
{
    row "data parallel alone" $ten --gpus 16 --tp 1 --pp 1 --cp 1 --zero 0
    row "data parallel, optimizer shared (ZeRO-1)" $ten --gpus 16 --tp 1 --pp 1 --cp 1 --zero 1
    row "4 stages, optimizer on the host" $ten --gpus 16 --pp 4 --tp 1 --cp 1 --schedule 1f1b --micro-batch 1 --offload optimizer
    row "4 stages, optimizer on the card" $ten --gpus 16 --pp 4 --tp 1 --cp 1 --schedule 1f1b --micro-batch 1
    row "best of all" $ten --gpus 16
    echo
    header "26 micro-batches each"
    row "8 stages on 16 cards" $ten --gpus 16 --pp 8 --dp 2 --schedule 1f1b --micro-batch 2 --recompute none --global-batch 104
    row "4 stages on 16 cards, same batch" $ten --gpus 16 --pp 4 --dp 4 --schedule 1f1b --micro-batch 1 --recompute none --global-batch 104
    row "the same, optimizer on the host" $ten --gpus 16 --pp 4 --dp 4 --schedule 1f1b --micro-batch 1 --recompute none --global-batch 104 --offload optimizer
    row "8 stages on 8 cards" $ten --gpus 8 --pp 8 --dp 1 --schedule 1f1b --micro-batch 4 --recompute none --global-batch 104
    echo
    echo "| 8 cards, then 16 | the log | ours | the log | ours, optimizer on the card | ours, on the host |"
    echo "| --- | --- | --- | --- | --- | --- |"
    common="--params 10B --mem 80G --schedule 1f1b --recompute none --global-batch 104"
    figures $common --gpus 8 --pp 8 --dp 1 --micro-batch 4 >"$tmp/a"
    figures $common --gpus 16 --pp 4 --dp 4 --micro-batch 1 >"$tmp/b"
    figures $common --gpus 16 --pp 4 --dp 4 --micro-batch 1 --offload optimizer >"$tmp/c"
    cat "$tmp/a" "$tmp/b" "$tmp/c" | awk '{ step[NR] = $1; gib[NR] = $2; bubble[NR] = $3 }
        END {
            printf "| step, s | about 4.2 | %s | 1.9 | %s | %s |\n", step[1], step[2], step[3]
            printf "| peak, GiB a card | about 78 | %s | 32 | %s | %s |\n", gib[1], gib[2], gib[3]
            printf "| bubble of ideal, %% (with equal stages) | 27 | %s (26.9) | 11 | %s (11.5) | %s (11.5) |\n", bubble[1], bubble[2], bubble[3]
        }'
    echo
    header "the next sizes and machines"
    row "20B, the same 16 cards" --params 20B --mem 80G --gpus 16
    row "10B on 64 cards as tp 4, pp 4, dp 4" $ten --gpus 64 --tp 4 --pp 4 --dp 4
    row "10B on 64 cards, free" $ten --gpus 64
    row "7B on 64 cards, data parallel" --params 7B --mem 80G --gpus 64 --tp 1 --pp 1 --cp 1
    row "7B on 64 cards, pp 2" --params 7B --mem 80G --gpus 64 --tp 1 --pp 2 --cp 1
}

# Which numbers of micro-batches give the log's 27% and 11% (within half a percent, or cut off)?
echo
echo "| bubble | schedule | micro-batches | 8 stages | 4 stages |"
echo "| --- | --- | --- | --- | --- |"
awk 'function frac(p, v, z) { return (p - 1) / (v * (z ? 3 : 1)) }
    function show(what, name, m8, m4, b8, b4) {
        if ((b8 >= 26.5 && b8 < 28) && (b4 >= 10.5 && b4 < 12))
            printf "| %s | %s | %d and %d | %.1f%% | %.1f%% |\n", what, name, m8, m4, b8, b4
    }
    BEGIN {
        for (total = 0; total < 2; total++)
            for (v = 0; v <= 6; v++)                  # 0: ZB-H1 with F = B = W
                for (m8 = 1; m8 <= 256; m8++)
                    for (k = 0; k < 3; k++) {
                        m4 = k == 0 ? m8 : k == 1 ? m8 / 2 : 2 * m8
                        if (m4 != int(m4) || (v > 1 && (m8 % 8 || m4 % 4))) continue
                        b8 = frac(8, v ? v : 1, !v) / m8
                        b4 = frac(4, v ? v : 1, !v) / m4
                        if (total) { b8 /= 1 + b8; b4 /= 1 + b4 }
                        show(total ? "of total" : "of ideal", v == 0 ? "zb-h1" : v == 1 ? "1f1b" : "interleaved x" v, m8, m4, 100 * b8, 100 * b4)
                    }
        printf "| of total | 8 micro-batches: 1f1b, interleaved x3 | 8 and 8 | %.1f%% (4 stages, 1f1b) | %.1f%% |\n", 300 / 11, 100 / 9
    }'

# The rule of thumb against the free choice, at the same global batch.
echo
echo "| model, cards | the rule says | its best, s | free choice, s | the rule loses | free layout |"
echo "| --- | --- | --- | --- | --- | --- |"
rule() { # rule SIZE GPUS WHAT OPTIONS...
    size=$1 gpus=$2 what=$3
    shift 3
    figures --params "$size" --mem 80G --gpus "$gpus" "$@" >"$tmp/rule"
    figures --params "$size" --mem 80G --gpus "$gpus" >"$tmp/free"
    # shellcheck disable=SC2034 # every field is named
    {
        read -r rule_s rule_gib rule_bubble rule_label <"$tmp/rule"
        read -r free_s free_gib free_bubble free_label <"$tmp/free"
    }
    loss=$(awk "BEGIN { r = \"$rule_s\"; if (r == \"-\") print \"does not fit\"; else printf \"%.1f%%\", 100 * (r / $free_s - 1) }")
    echo "| $size on $gpus | $what | $rule_s | $free_s | $loss | $free_label |"
}
dp="--tp 1 --pp 1 --cp 1"
# shellcheck disable=SC2086
{
    rule 1B 8 "DP or ZeRO" $dp
    rule 7B 16 "DP or ZeRO" $dp
    rule 7B 64 "DP or ZeRO" $dp
    rule 13B 32 "PP + DP" --tp 1 --cp 1 --pp 2,4,8
    rule 13B 32 "ZeRO-3, full recompute" $dp --zero 3 --recompute full
    rule 30B 64 "PP + DP" --tp 1 --cp 1 --pp 2,4,8
    rule 30B 128 "ZeRO-3, full recompute" $dp --zero 3 --recompute full
    rule 70B 128 "TP x PP x DP" --tp 2,4,8 --pp 2,4,8,16 --cp 1
    rule 70B 512 "TP x PP x DP" --tp 2,4,8 --pp 2,4,8,16 --cp 1
    rule 175B 1024 "TP x PP x DP" --tp 2,4,8 --pp 2,4,8,16 --cp 1
}
