#!/bin/sh
# Ranks that a launcher started: torchrun's and srun's variables over TCP, mpirun where it is.
# The same losses, to the bit, as ptexec's own ranks.
. "${top_srcdir:-.}/tests/cli/lib.sh"
exe=$top_builddir/ptexec
cat "$top_srcdir"/exec/*.c >"$tmp/text"
"$top_builddir/tests/exec/mkplan" "$tmp/plan.json" pp=2 dp=2 zero=1
"$top_builddir/tests/exec/mkplan" "$tmp/other.json" pp=2 dp=2 zero=1 gbs=16
"$top_builddir/tests/exec/mkplan" "$tmp/tp.json" tp=2 dp=2
port=$((20000 + $$ % 10000))
args="--data text:$tmp/text --steps 4 --seed 3"
losses() { cut -d, -f1-5 "$1"; }
# torch PLAN.. : ranks 0 to 3, each with its plan, by torchrun's variables. Status of rank 0 in st.
torch() {
    port=$((port + 1))
    r=0
    for one; do
        # shellcheck disable=SC2086 # words
        env RANK=$r WORLD_SIZE=4 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$exe" "$one" $args --metrics "$tmp/tcp.csv" >"$tmp/out.$r" 2>"$tmp/err.$r" &
        eval "pid$r=$!"
        r=$((r + 1))
    done
    st=0
    # shellcheck disable=SC2154 # set by eval
    wait "$pid0" || st=$?
    # shellcheck disable=SC2154
    wait "$pid1" "$pid2" "$pid3" || true
}
for plan in plan tp; do
    # shellcheck disable=SC2086
    "$exe" "$tmp/$plan.json" $args -q --metrics "$tmp/own.csv"
    losses "$tmp/own.csv" >"$tmp/$plan.own"
    torch "$tmp/$plan.json" "$tmp/$plan.json" "$tmp/$plan.json" "$tmp/$plan.json"
    [ $st -eq 0 ] || { cat "$tmp"/err.*; exit 1; }
    losses "$tmp/tcp.csv" | diff "$tmp/$plan.own" -
done
grep -q '^host .*: 0 1 2 3, lo 127.0.0.1$' "$tmp/out.0"
grep -q '^products [A-Za-z]' "$tmp/out.0"
[ "$(grep -A 1 '^host ' "$tmp/out.0" | grep -c '^         on [^ ]')" -eq 1 ]
grep -q '^hashes .*the same on every rank$' "$tmp/out.0"
grep -q '^step time ' "$tmp/out.0"
[ ! -s "$tmp/out.2" ]

# A rank with another plan is named, by rank 0 alone.
torch "$tmp/plan.json" "$tmp/plan.json" "$tmp/other.json" "$tmp/plan.json"
[ $st -eq 2 ]
grep -q 'rank 2 on .* has another plan than rank 0 on' "$tmp/err.0"
[ ! -s "$tmp/err.1" ]

# So is one with another seed: it would train another model without a word.
port=$((port + 1))
for r in 0 1 2 3; do
    # shellcheck disable=SC2086
    RANK=$r WORLD_SIZE=4 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        "$exe" "$tmp/plan.json" $args --seed $((r / 3)) >/dev/null 2>"$tmp/err.$r" &
    eval "pid$r=$!"
done
st=0
wait "$pid0" || st=$?
wait "$pid1" "$pid2" "$pid3" || true
[ $st -eq 2 ]
grep -q 'rank 3 on .* has another set of training options than rank 0 on' "$tmp/err.0"

# start_long: four ranks over TCP that train until they are stopped; pids in pid0 to pid3.
start_long() {
    port=$((port + 1))
    : >"$tmp/m.csv"
    for r in 0 1 2 3; do
        RANK=$r WORLD_SIZE=4 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$exe" "$tmp/plan.json" --data "text:$tmp/text" --steps 20000 -q --watchdog 20s \
            --metrics "$tmp/m.csv" >/dev/null 2>"$tmp/err.$r" &
        eval "pid$r=$!"
    done
    n=0
    while [ "$(wc -l <"$tmp/m.csv")" -lt 3 ] && [ $n -lt 300 ]; do
        sleep 0.1
        n=$((n + 1))
    done
}
ends() {
    all=
    for r in 0 1 2 3; do
        st=0
        eval "wait \$pid$r" || st=$?
        all="$all $st"
    done
}
trap 'kill -KILL $pid0 $pid1 $pid2 $pid3 2>/dev/null || true; rm -rf "$tmp"' EXIT
# One rank is killed: the others name who was lost, and end.
start_long
kill -KILL "$pid2"
ends
[ "$all" = " 4 4 137 4" ] || { echo "ended with$all"; cat "$tmp"/err.*; exit 1; }
grep -q 'rank [013] on .*: lost rank [0-3]: it ended its connection' "$tmp"/err.*
# A stop request of rank 0 ends all of them after the same step.
start_long
kill -TERM "$pid0"
ends
[ "$all" = " 5 5 5 5" ] || { echo "ended with$all"; cat "$tmp"/err.*; exit 1; }
grep -q 'stopped as asked after step' "$tmp/err.0"
trap 'rm -rf "$tmp"' EXIT

# Other numbers than the plan's, and variables that make no sense.
# shellcheck disable=SC2086
fails 2 env RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=9 \
    "$exe" "$tmp/plan.json" $args
grep -q 'made for 4 rank(s), but torchrun started 3; start 4, plan again with --gpus 3' "$tmp/err"
# shellcheck disable=SC2086
fails 2 env RANK=7 WORLD_SIZE=4 LOCAL_RANK=0 "$exe" "$tmp/plan.json" $args
grep -q 'RANK: 7 is no rank of 4' "$tmp/err"
# shellcheck disable=SC2086
fails 2 env SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 \
    SLURM_JOB_ID=12 SLURM_STEP_NODELIST='n[01-04]' "$exe" "$tmp/plan.json" $args
grep -q 'but srun started 2' "$tmp/err"
# shellcheck disable=SC2086
fails 2 "$exe" "$tmp/plan.json" $args --comm tcp
# A batch script is no rank; --comm local ignores launchers.
# shellcheck disable=SC2086
env SLURM_PROCID=0 SLURM_NTASKS=9 RANK=3 "$exe" "$tmp/plan.json" $args -q
# shellcheck disable=SC2086
env RANK=0 WORLD_SIZE=9 "$exe" "$tmp/plan.json" $args -q --comm local

# The doctor, here and over TCP: a row per finding, the same columns.
"$exe" doctor --format csv >"$tmp/found" || [ $? -eq 1 ]
[ "$(head -n 1 "$tmp/found")" = host,rank,check,value,unit,verdict,advice ]
for check in locked-memory open-files shared-memory memory processors numa-nodes huge-pages \
    clock-skew latency bandwidth all-reduce; do
    grep -q "^[^,]*,[01],$check,[-0-9.e+inf]*,[^,]*,\(ok\|warning\|bad\)," "$tmp/found" ||
        { echo "no $check"; cat "$tmp/found"; exit 1; }
done
"$exe" doctor --format json >"$tmp/json" || [ $? -eq 1 ]
[ "$(grep -c '^      "check": ' "$tmp/json")" -ge 11 ]
port=$((port + 1))
for r in 0 1; do
    RANK=$r WORLD_SIZE=2 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        "$exe" doctor >"$tmp/out.$r" 2>"$tmp/err.$r" &
    eval "pid$r=$!"
done
wait "$pid0" || [ $? -eq 1 ]
wait "$pid1"
grep -q '^2 rank(s), messages over TCP$' "$tmp/out.0"
grep -q ' 1  bandwidth .*GB/s' "$tmp/out.0"
[ ! -s "$tmp/out.1" ]
fails 2 "$exe" "$tmp/plan.json" --format csv
fails 2 "$exe" doctor --format xml
st=0
"$exe" doctor >/dev/full 2>"$tmp/err" || st=$?
[ $st -eq 4 ]

# mpirun, if this ptexec has MPI.
command -v mpirun >/dev/null || { echo "no mpirun: that part not run"; exit 0; }
ldd "$exe" | grep -q libmpi || { echo "built without MPI: that part not run"; exit 0; }
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
for plan in plan tp; do
    # shellcheck disable=SC2086
    mpirun --oversubscribe -n 4 "$exe" "$tmp/$plan.json" $args --metrics "$tmp/mpi.csv" >"$tmp/out"
    losses "$tmp/mpi.csv" | diff "$tmp/$plan.own" -
done
grep -q 'messages over Open MPI' "$tmp/out"
st=0
# shellcheck disable=SC2086
mpirun --oversubscribe -n 2 "$exe" "$tmp/plan.json" $args >"$tmp/out" 2>"$tmp/err" || st=$?
[ $st -eq 2 ]
grep -q 'made for 4 rank(s), but mpirun started 2' "$tmp/err"
