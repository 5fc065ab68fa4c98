#!/bin/bash
# One experiment on the Linux 6.1 TCP stack in virtual time: neither speed nor load of this machine
# changes the result.
#
#   run.sh BUILD OUT [KEY=VALUE ...]
#
#   CC=reno      algorithm; CC=a+b two flows, CC=reno*16 sixteen
#   BW=100       rate of the bottleneck, Mbit/s
#   BUF=333      its buffer, packets, the one in transmission included
#   DELAY=20     one way, ms
#   LOSS=0       percent of data packets lost at random after the bottleneck
#   DUR=60       s, counted from the last flow's start
#   STAGGER=0    s between the starts of flows
#   IW=          initial window other than the kernel's 10
#   GRID=10      ms between regular rows
#   SYSCTL=net.ipv4.tcp_sack:0,...             further settings of both ends
#
# Writes OUT.<i>.csv per flow, OUT.counters.txt, OUT.qdisc.txt. Prints GUEST-DONE when all went
# well. The guest sees the host's files with the user's own rights and writes only where OUT points.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?build directory}" && pwd)
out=$(realpath -m "${2:?prefix of the output}")
shift 2
# A kernel and its guest processes hand over to each other hundreds of thousands of times: on one
# processor that is cheap, across two it takes most of the time. ORACLE_CPU chooses the processor,
# ORACLE_NICE lowers the priority.
cpu=${ORACLE_CPU:-$(($(nproc) - 1))}
pin=(); command -v taskset >/dev/null && pin=(taskset -c "$cpu")
exec nice -n "${ORACLE_NICE:-0}" "${pin[@]}" "$build/linux-tt" mem=1500M root=/dev/root rootfstype=hostfs rootflags=/ rw init="$here/guest-init.sh" \
  FLOW="$build/flow" HALT="$build/halt" OUT="$out" con0=null,fd:1 con=null quiet time-travel=inf-cpu "$@" </dev/null
