#!/usr/bin/env bash
# Speed of the simulator: delivered data packets per CPU second of one core, peak memory and
# instructions per packet (callgrind), then the peers on the same dumbbells.
#
#   bench/run.sh                 fullpipe, ns-2 and ns-3 (Debian: ns2 libns3-dev) on the same
#                                dumbbells in one run, 20 s per case at most (LIMIT=60 for longer);
#                                without the peers, their recorded figures
#   bench/run.sh --recorded      do not run the peers
#   bench/run.sh --quick         fullpipe only, no callgrind
#   bench/run.sh --study         only CPU seconds of a whole study, as a user runs it: SLAC 2003
#                                (STUDY=NAME for another); BASE=PROGRAM: beside those of an older
#                                program, in turns; STUDY_OPTIONS=--quick for its short form
set -euo pipefail
cd "$(dirname "$0")/.."

with_peers=true quick=false study=false
for option in "$@"; do
    case "$option" in
        --recorded) with_peers=false ;;
        --quick) quick=true ;;
        --study) study=true ;;
        *) echo "unknown option $option; see the head of $0" >&2; exit 2 ;;
    esac
done

cpu() { # COMMAND...: user and system seconds of it, together
    local TIMEFORMAT='%U %S'
    { time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ printf "%.2f", $1 + $2 }'
}

if $study; then
    cargo build --release --quiet -p fullpipe
    programs=("${CARGO_TARGET_DIR:-target}/release/fullpipe" ${BASE:+"$BASE"})
    for round in 1 2 3; do
        for program in "${programs[@]}"; do
            # One job: threads that share a core's caches would measure the machine.
            # shellcheck disable=SC2086 # several options
            seconds=$(cpu "$program" run "${STUDY:-slac}" --jobs 1 ${STUDY_OPTIONS:-})
            printf '{"study":"%s","program":"%s","round":%d,"cpu_s":%s}\n' \
                "${STUDY:-slac}" "$program" "$round" "$seconds"
        done
    done
    exit
fi

cargo build --release --quiet -p fullpipe-sim --example throughput
program=${CARGO_TARGET_DIR:-target}/release/examples/throughput
cases="a b c d d2 e e2 e3 f g w500 w80000"

instructions() { # CASE SECONDS: instructions of the whole process
    local out
    out=$(SECONDS_SIMULATED=$2 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" 2>&1)
    local refs packets
    refs=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<<"$out")
    packets=$(sed -n 's/.*"delivered_packets":\([0-9]*\).*/\1/p' <<<"$out")
    echo "$refs $packets"
}

if $quick; then
    for case in $cases; do "$program" "$case"; done
    exit
fi

# A goal is printed beside what is measured. These counts do not depend on how busy the machine is.
goal() { # NAME VALUE GOAL
    awk -v name="$1" -v value="$2" -v goal="$3" \
        'BEGIN { printf "%-52s %6.0f  goal %5d  %s\n", name, value, goal, value <= goal ? "met" : "missed" }' >&2
}

if command -v valgrind >/dev/null; then
    for row in "a 20 900" "b 10 0" "c 10 0" "d 1 0" "d2 1 1400"; do
        read -r case seconds most <<<"$row"
        read -r refs packets < <(instructions "$case" "$seconds")
        per_packet=$(awk -v a="$refs" -v b="$packets" 'BEGIN { printf "%.0f", a / b }')
        printf '{"case":"%s","simulated_s":%s,"instructions_per_packet":%s}\n' \
            "$case" "$seconds" "$per_packet"
        [ "$most" = 0 ] ||
            goal "instructions per packet, case $case, $seconds s" "$per_packet" "$most"
    done
else
    echo "instructions per packet skipped: valgrind is missing (apt-get install valgrind)" >&2
fi
memory=$("$program" g | sed -n 's/.*"kb_per_flow":\([0-9.]*\).*/\1/p')
goal "memory per flow with 10,000 flows, kB (case g)" "$memory" 25

simulators=""
recorded=(--recorded bench/peers/recorded.jsonl)
if $with_peers && command -v ns >/dev/null && pkg-config --exists ns3-internet 2>/dev/null; then
    simulators="ns-2,ns-3"
    recorded=()
elif $with_peers; then
    echo "ns-2 or ns-3 is missing (apt-get install ns2 libns3-dev): their recorded figures stand in" >&2
fi
exec python3 bench/peers/run.py --limit "${LIMIT:-20}" --simulators "$simulators" "${recorded[@]}" \
    --fullpipe "$program {cases}"
