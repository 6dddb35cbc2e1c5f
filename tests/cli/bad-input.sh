#!/bin/sh
# Bad and impossible input, each with its exit status and what is said on stderr, as one golden
# text. Nothing may be printed on stdout.
. "${top_srcdir:-.}/tests/cli/lib.sh"
ptplan=$top_builddir/ptplan
try() {
    st=0
    "$ptplan" "$@" >"$tmp/stdout" 2>"$tmp/stderr" || st=$?
    [ ! -s "$tmp/stdout" ] || { echo "something on stdout: ptplan $*" >&2; exit 1; }
    echo "\$ ptplan $*"
    sed 's/^/  /' "$tmp/stderr"
    echo "  [$st]"
}
all() {
    big="--layers 80 --hidden 8192 --heads 64"
    moe="--layers 16 --hidden 1024 --heads 16 --moe-experts 64 --moe-topk 6"
    # shellcheck disable=SC2086 # lists of options
    {
        echo "# sizes"
        for size in -1 0 nan inf '' ' ' 10BB 1e400 0x10 10,5B --gpus; do
            try --gpus 16 --mem 80G --params "$size"
        done
        for size in -1 0 nan '' 80GG 1e400G 80; do try --params 10B --gpus 16 --mem "$size"; done
        for n in -1 0 nan '' 1.5 8x 99999999999999999999 2000000; do
            try --params 10B --mem 80G --gpus "$n"
        done
        echo "# what is missing, unknown or too much"
        try
        try --params 7B --gpus 8
        try --params 7B --mem 80G
        try --params 7B --model gpt3 --gpus 8 --mem 80G
        try --model llama2-8B --gpus 8 --mem 80G
        try --params 7B --gpus 8 --gpu H101
        try --params 7B --gpus 8 --node dgx-h101
        try --params 7B --gpus 8 --gpu H100 --stack megatrn
        try --params 7B --gpus 8 --gpu H100 --precision bf17
        try --params 7B --gpus 8 --gpu V100 --precision bf16
        try --params 7B --gpus 8 --gpu H100 --mem 96G
        try --params 7B --gpus 8 --mem 1000G
        try --params 7B --gpus 8 --mem 80G --schedule 2f2b
        try --params 7B --gpus 8 --mem 80G --recompute all
        try --params 7B --gpus 8 --mem 80G --offload 1.5
        try --params 7B --gpus 8 --mem 80G --zero 4
        try --params 7B --gpus 8 --mem 80G --tp 1,,2
        try --params 7B --gpus 8 --mem 80G --sequence-paralel
        try --params 7B --gpus 8 --mem 80G plan.json
        try --config /nonexistent/config.json --gpus 8 --mem 80G
        try --calibration /nonexistent/stacks.csv --params 7B --gpus 8 --mem 80G
        echo "# shapes and layouts that contradict themselves"
        try --layers 4 --hidden 96 --heads 3 --kv-heads 2 --gpus 1 --mem 80G
        try --layers 4 --hidden 100 --heads 8 --gpus 1 --mem 80G
        try $big --pp 16 --vpp 2 --gpus 128 --mem 80G
        try $big --tp 4 --cp 1 --pp 16 --vpp 5 --dp 2 --micro-batch 1 --global-batch 40 \
            --gpus 128 --mem 80G
        try --layers 60 --hidden 6656 --heads 52 --tp 8 --gpus 8 --mem 80G
        try --model llama1-33B --tp 8 --gpus 8 --mem 80G
        try $big --kv-heads 8 --tp 16 --gpus 16 --mem 80G
        try --params 7B --tp 8 --gpus 12 --mem 80G
        try --params 7B --tp 2 --pp 8 --gpus 8 --mem 80G
        try --params 7B --tp 2 --pp 2 --cp 1 --dp 1 --gpus 8 --mem 80G
        try --params 7B --global-batch 24 --micro-batch 1 --dp 16 --gpus 16 --mem 80G
        try --params 7B --seq-length 10001 --cp 8 --gpus 8 --mem 80G
        try --params 7B --seq-length 4096 --cp 2 --attention eager --gpus 8 --mem 80G
        try --params 7B --zero 2 --pp 4 --stack megatron --gpus 16 --mem 80G
        try --params 7B --zero 3 --pp 4 --stack deepspeed --gpus 16 --mem 80G
        try --params 7B --pp 2 --stack fsdp --gpus 16 --mem 80G
        try $moe --ep 6 --gpus 48 --mem 80G
        try $moe --ep 64 --dp 8 --tp 1 --cp 1 --pp 1 --gpus 8 --mem 80G
        try --params 7B --ep 2 --gpus 8 --mem 80G
        try --params 7B --pp 1 --vpp 2 --gpus 8 --mem 80G
        try --layers 4 --hidden 64 --heads 4 --pp 8 --gpus 8 --mem 8G
    }
}
golden ptplan-bad-input.txt all
