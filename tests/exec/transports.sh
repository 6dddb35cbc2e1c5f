#!/bin/sh
# Losses, weights and first gradients of many layouts, over TCP and MPI, to the bit those of shared
# memory; and a rank that is killed under mpirun leaves nothing behind.
. "${top_srcdir:-.}/tests/cli/lib.sh"
exe=$(cd "$top_builddir" && pwd)/ptexec
mpi=no
if command -v mpirun >/dev/null && ldd "$exe" | grep -q libmpi; then mpi=yes; fi
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
cat "$top_srcdir"/exec/*.c >"$tmp/text"
port=$((30000 + $$ % 2000))
# same NAME: of the run that wrote NAME.csv and the folder NAME.
same() {
    cut -d, -f1-5 "$tmp/$1.csv" | diff "$tmp/own.losses" -
    diff -r "$tmp/own" "$tmp/$1"
    rm -rf "${tmp:?}/$1"
}
while read -r n words; do
    # shellcheck disable=SC2086 # one word each
    "$top_builddir/tests/exec/mkplan" "$tmp/plan.json" $words
    args="$tmp/plan.json --data text:$tmp/text --steps 4 -q"
    # shellcheck disable=SC2086
    "$exe" $args --metrics "$tmp/own.csv" --dump "$tmp/own"
    cut -d, -f1-5 "$tmp/own.csv" >"$tmp/own.losses"
    port=$((port + 1)) r=0 pids=
    while [ $r -lt "$n" ]; do
        # shellcheck disable=SC2086
        RANK=$r WORLD_SIZE=$n LOCAL_RANK=$r MASTER_ADDR=localhost MASTER_PORT=$port \
            "$exe" $args --metrics "$tmp/tcp.csv" --dump "$tmp/tcp" &
        pids="$pids $!" r=$((r + 1))
    done
    for pid in $pids; do wait "$pid"; done
    same tcp
    if [ $mpi = yes ]; then
        # shellcheck disable=SC2086
        timeout 100 mpirun --oversubscribe -n "$n" "$exe" $args --metrics "$tmp/mpi.csv" \
            --dump "$tmp/mpi" </dev/null >/dev/null
        same mpi
    fi
    rm -rf "$tmp/own"
    echo "the same bits: $words"
done <<'PLANS'
2 pp=2 schedule=zb-h1
2 tp=2 sp=1
4 pp=2 vpp=2 schedule=interleaved dp=2
3 dp=3 zero=3 gbs=6
4 tp=2 dp=2 zero=2
4 pp=4 schedule=gpipe gbs=16
8 pp=2 tp=2 dp=2 zero=1
PLANS
[ $mpi = yes ] || exit 0
command -v pgrep >/dev/null || exit 0
"$top_builddir/tests/exec/mkplan" "$tmp/long.json" pp=2 dp=2
: >"$tmp/m.csv"
timeout 100 mpirun --oversubscribe -n 4 "$exe" "$tmp/long.json" --data "text:$tmp/text" --steps 20000 \
    -q --metrics "$tmp/m.csv" >/dev/null 2>"$tmp/err" &
pid=$!
n=0
while [ "$(wc -l <"$tmp/m.csv")" -lt 3 ] && [ $n -lt 300 ]; do
    sleep 0.1
    n=$((n + 1))
done
kill -KILL "$(pgrep -o -f "^$exe $tmp/long.json")"
st=0
wait "$pid" || st=$?
[ $st -ne 0 ] && [ $st -ne 124 ]
sleep 1
if pgrep -f "^$exe $tmp/long.json"; then
    echo "left over after mpirun"
    exit 1
fi
