#!/bin/sh
# Two hosts for real: network namespaces with names of their own, joined by one cable. The losses
# of four ranks on both are those of four ranks on one, to the bit, over TCP and over MPI.
. "${top_srcdir:-.}/tests/cli/lib.sh"
exe=$(cd "$top_builddir" && pwd)/ptexec
a=pta$$ b=ptb$$ net=10.77.$(($$ % 250))
[ "$(id -u)" -eq 0 ] || { echo "needs root"; exit 77; }
if ! ip netns add "$a" 2>/dev/null; then
    echo "no network namespaces"
    exit 77
fi
cleanup() {
    for ns in "$a" "$b"; do
        # shellcheck disable=SC2046 # numbers
        kill -KILL $(ip netns pids "$ns" 2>/dev/null) 2>/dev/null || true
        ip netns del "$ns" 2>/dev/null || true
    done
    rm -rf "$tmp"
}
trap cleanup EXIT
ip netns add "$b"
ip link add "$a" type veth peer name "$b"
ip link set "$a" netns "$a"
ip link set "$b" netns "$b"
ip -n "$a" addr add "$net.1/24" dev "$a"
ip -n "$b" addr add "$net.2/24" dev "$b"
for ns in "$a" "$b"; do
    ip -n "$ns" link set lo up
    ip -n "$ns" link set "$ns" up
done
# on HOST CMD...: with the host's name and network.
cat >"$tmp/on" <<'ON'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare -u sh -c 'hostname "$0" && exec "$@"' "$host" "$@"
ON
chmod +x "$tmp/on"

cat "$top_srcdir"/exec/*.c >"$tmp/text"
cat "$top_srcdir"/libpt/*.c >"$tmp/other"
"$top_builddir/tests/exec/mkplan" "$tmp/plan.json" pp=2 dp=2 zero=1
args="$tmp/plan.json --steps 6 --seed 3"
losses() { cut -d, -f1-5 "$1"; }
# shellcheck disable=SC2086 # words
"$exe" $args --data "text:$tmp/text" -q --metrics "$tmp/own.csv"
losses "$tmp/own.csv" >"$tmp/own"

# torch TEXT-OF-B STEPS OPTION...: ranks 0 and 1 on host a, 2 and 3 on b; statuses in st0 to st3.
# Rank 1 reaches rank 0 over its own loopback, as a master address may resolve there.
torch() {
    of_b=$1
    shift
    r=0
    for host in "$a" "$a" "$b" "$b"; do
        master=$net.1 text=$tmp/text
        [ $r -ne 1 ] || master=127.0.0.1
        [ "$host" = "$a" ] || text=$of_b
        # shellcheck disable=SC2086
        RANK=$r WORLD_SIZE=4 LOCAL_RANK=$((r % 2)) MASTER_ADDR=$master MASTER_PORT=29500 \
            "$tmp/on" "$host" "$exe" $args --data "text:$text" "$@" >"$tmp/out.$r" 2>"$tmp/err.$r" &
        eval "pid$r=$!"
        r=$((r + 1))
    done
}
ends() {
    # shellcheck disable=SC2154 # set by eval
    for r in 0 1 2 3; do
        eval "pid=\$pid$r"
        s=0
        wait "$pid" || s=$?
        eval "st$r=$s"
    done
}
torch "$tmp/text" --metrics "$tmp/tcp.csv"
ends
# shellcheck disable=SC2154
[ "$st0$st1$st2$st3" = 0000 ] || { cat "$tmp"/err.*; exit 1; }
losses "$tmp/tcp.csv" | diff "$tmp/own" -
grep -q "^host  *$a: 0 1, $a $net.1" "$tmp/out.0" || { cat "$tmp/out.0"; exit 1; }
grep -q "^host  *$b: 2 3, $b $net.2" "$tmp/out.0"
echo "TCP: the same bits on two hosts"

# The doctor sees both hosts, the interface between them, and how their clocks differ.
r=0
for host in "$a" "$b"; do
    RANK=$r WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=$net.1 MASTER_PORT=29501 \
        "$tmp/on" "$host" "$exe" doctor --format csv >"$tmp/out.$r" 2>"$tmp/err.$r" &
    r=$((r + 1))
done
wait
grep -q "^$a,0,interface,1,,ok,$a $net.1$" "$tmp/out.0" || { cat "$tmp/out.0" "$tmp/err.0"; exit 1; }
grep -q "^$b,1,interface,1,,ok,$b $net.2$" "$tmp/out.0"
grep -q "^$b,1,clock-skew,[-0-9.e]*,s,ok,$" "$tmp/out.0"

# Data that differ on one host are named, before any step.
torch "$tmp/other"
ends
[ "$st0$st1$st2$st3" = 2222 ]
grep -q "rank 2 on $b has another data than rank 0 on $a" "$tmp/err.0"

# The cable is pulled: every rank ends by itself, with a sentence and status 4.
: >"$tmp/cut.csv"
torch "$tmp/text" --steps 1000000 --watchdog 3s --metrics "$tmp/cut.csv"
n=0
while [ "$(wc -l <"$tmp/cut.csv")" -lt 3 ] && [ $n -lt 200 ]; do
    sleep 0.1
    n=$((n + 1))
done
ip -n "$a" link set "$a" down
ends
[ "$st0$st1$st2$st3" = 4444 ] || { cat "$tmp"/err.*; exit 1; }
grep -q "waited 3 s (--watchdog) in step" "$tmp"/err.*
ip -n "$a" link set "$a" up
echo "a cut between the hosts ends the run on both"

if ! command -v mpirun >/dev/null || ! ldd "$exe" | grep -q libmpi; then
    echo "no MPI: that part not run"
    exit 0
fi
# mpirun starts its daemon on the other host through an agent that takes "HOST COMMAND".
cat >"$tmp/agent" <<AGENT
#!/bin/sh
shift
exec "$tmp/on" "$b" sh -c "\$*"
AGENT
chmod +x "$tmp/agent"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
# shellcheck disable=SC2086
timeout 100 "$tmp/on" "$a" mpirun --mca plm_rsh_agent "$tmp/agent" --mca btl tcp,self \
    --mca btl_tcp_if_include "$net.0/24" --mca oob_tcp_if_include "$net.0/24" \
    --oversubscribe --host "$net.1:2,$net.2:2" -n 4 \
    "$exe" $args --data "text:$tmp/text" --metrics "$tmp/mpi.csv" >"$tmp/out" 2>"$tmp/err" ||
    { cat "$tmp/out" "$tmp/err"; exit 1; }
losses "$tmp/mpi.csv" | diff "$tmp/own" -
grep -q "^host  *$a: 0 1" "$tmp/out"
grep -q "^host  *$b: 2 3" "$tmp/out"
echo "MPI: the same bits on two hosts"
