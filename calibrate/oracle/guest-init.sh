#!/bin/bash
# First process of the guest kernel, whose root is the host's file tree (hostfs). Builds the path,
# runs the flows, writes what they saw and what the kernel counted next to $OUT, powers off.
# Parameters arrive as environment: see run.sh.
#
#   snd 10.0.1.1 -- 10.0.1.2 rtr 10.0.2.1 -- 10.0.2.2 dly 10.0.3.1 -- 10.0.3.2 rcv
#                               |                        |
#                     rate BW, BUF packets     delay DELAY each way, LOSS of data
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys 2>/dev/null
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
BW=${BW:-100} DELAY=${DELAY:-20} BUF=${BUF:-333} CC=${CC:-reno} DUR=${DUR:-60} LOSS=${LOSS:-0} STAGGER=${STAGGER:-0} GRID=${GRID:-10}
MTU=1500

for n in snd rtr dly rcv; do ip netns add $n; ip -n $n link set lo up; done

# link NS IF ADDRESS NS IF ADDRESS: a veth pair without segmentation offload. Neighbours are
# permanent entries: with address resolution on each hop the handshake would take twice the path's
# RTT.
mac=0
link() {
  local a b
  mac=$((mac + 1)); a=$(printf '02:00:00:00:01:%02x' $mac)
  b=$(printf '02:00:00:00:02:%02x' $mac)
  ip link add "$2" address "$a" netns "$1" type veth peer name "$5" address "$b" netns "$4"
  for x in "mtu $MTU" "gso_max_segs 1" "gso_max_size $((MTU + 14))"; do ip -n "$1" link set "$2" $x; ip -n "$4" link set "$5" $x; done
  ip -n "$1" addr add "$3/24" dev "$2"; ip -n "$4" addr add "$6/24" dev "$5"
  ip -n "$1" link set "$2" up; ip -n "$4" link set "$5" up
  ip -n "$1" neigh replace "$6" lladdr "$b" dev "$2" nud permanent
  ip -n "$4" neigh replace "$3" lladdr "$a" dev "$5" nud permanent
}
link snd s0 10.0.1.1 rtr r0 10.0.1.2
link rtr r1 10.0.2.1 dly d0 10.0.2.2
link dly d1 10.0.3.1 rcv v0 10.0.3.2
for n in rtr dly; do ip netns exec $n sysctl -qw net.ipv4.ip_forward=1; done
ip -n snd route add default via 10.0.1.2 ${IW:+initcwnd $IW}
ip -n rcv route add default via 10.0.3.1
ip -n rtr route add 10.0.3.0/24 via 10.0.2.2
ip -n dly route add 10.0.1.0/24 via 10.0.2.1

# Bottleneck: FIFO of BUF packets, the one in transmission included; the 14 bytes of the Ethernet
# header are not charged.
tc -n rtr qdisc add dev r1 root netem rate ${BW}mbit -14 limit $BUF
# Pure delay; data packets are lost independently with LOSS percent. The kernel seeds this itself:
# no two runs are equal.
loss=""; [ "$LOSS" != 0 ] && loss="loss random $LOSS%"
tc -n dly qdisc add dev d1 root netem delay ${DELAY}ms $loss limit 1000000
tc -n dly qdisc add dev d0 root netem delay ${DELAY}ms limit 1000000

# Nothing but the bottleneck may limit a flow: no memory pressure, no short input queue between the
# namespaces, socket buffers that do not have to grow first. (With the usual defaults the receiver's
# window, which starts at 64 KB of a 128 KB buffer, is tuned up once per round trip.)
sysctl -qw net.ipv4.tcp_mem="200000 400000 600000" net.core.netdev_max_backlog=1000000
sysctl -qw net.core.rmem_max=268435456 net.core.wmem_max=268435456
for n in snd rcv; do
  ip netns exec $n sysctl -qw net.ipv4.tcp_rmem="4096 ${RMEM:-67108864} 268435456" net.ipv4.tcp_wmem="4096 ${WMEM:-16384} 268435456" \
    net.ipv4.tcp_no_metrics_save=1
done
[ -n "$SYSCTL" ] && for n in snd rcv; do for s in ${SYSCTL//,/ }; do ip netns exec $n sysctl -qw "${s/:/=}"; done; done

# counters NS PHASE: every counter of the namespace's TCP that is not zero, one per line.
counters() {
  local names values i
  ip netns exec "$1" cat /proc/net/snmp /proc/net/netstat | while read -ra names && read -ra values; do
    [[ ${names[0]} == Tcp* ]] || continue
    for ((i = 1; i < ${#names[@]}; i++)); do
      [ "${values[i]}" = 0 ] || echo "$2 $1 ${names[0]}${names[i]} ${values[i]}"
    done
  done
}

echo "GUEST kernel=$(uname -r) CC=$CC BW=$BW DELAY=$DELAY BUF=$BUF DUR=$DUR LOSS=$LOSS STAGGER=$STAGGER"
# CC=a, CC=a+b, CC=a*16: every further flow starts STAGGER seconds after the one before; all end
# together.
flows=()
IFS=+ read -ra parts <<<"$CC"
for part in "${parts[@]}"; do
  n=1; [[ $part == *\** ]] && n=${part#*\*}
  for ((k = 0; k < n; k++)); do flows+=("${part%%\**}"); done
done
ends=$(awk "BEGIN { print $DUR + $STAGGER * (${#flows[@]} - 1) }")
{ counters snd before; counters rcv before; } >"$OUT.counters.txt"
ip netns exec rcv "$FLOW" sink 5001 &
sleep 0.5
pids=()
for i in "${!flows[@]}"; do
  ip netns exec snd "$FLOW" send 10.0.3.2 5001 "${flows[i]}" "$(awk "BEGIN { print $i * $STAGGER }")" "$ends" "$GRID" "$OUT.$i.csv" &
  pids+=($!)
done
failed=0
for p in "${pids[@]}"; do wait "$p" || failed=1; done
{ counters snd after; counters rcv after; } >>"$OUT.counters.txt"
{ echo bottleneck; tc -n rtr -s qdisc show dev r1; echo forward; tc -n dly -s qdisc show dev d1; echo back; tc -n dly -s qdisc show dev d0
  echo softnet; cat /proc/net/softnet_stat; } >"$OUT.qdisc.txt"
sync
[ $failed = 0 ] && echo GUEST-DONE
"$HALT"
