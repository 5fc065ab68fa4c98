#!/usr/bin/env bash
# `make test`: every test that this machine can run. Rust's tests wait for real time as much as they
# compute, so those in other languages, or in a workspace of their own, run at the same time; their
# output follows.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
# The same cases every time: what fails here fails there. `make verify` draws others.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}

if [[ ${1:-} == beside ]]; then
    web/check.sh
    crates/py/check.sh
    "$cargo" test --quiet --locked --manifest-path examples/quinn/Cargo.toml
    "$cargo" run --quiet --locked --manifest-path examples/quinn/Cargo.toml -- cubic 100
    exit
fi

# One run for all: with and without the tuner crates have other features, and are built twice.
crates=(--workspace)
if ! pkg-config --exists libelf zlib 2>/dev/null; then
    echo 'skipped: the tuner (libelf or zlib is missing: apt-get install libelf-dev zlib1g-dev pkg-config)'
    crates+=(--exclude fullpipe-tune)
fi
"$cargo" test --quiet --locked "${crates[@]}" --no-run

log=$(mktemp)
# Job control gives them a process group, which can be ended as a whole, and leaves SIGINT alone: a
# plain `&` ignores it, and some tests are about Ctrl-C.
set -m
"$0" beside >"$log" 2>&1 </dev/null &
beside=$!
set +m
trap 'kill -- -$beside 2>/dev/null || true; rm -f "$log"' EXIT
status=0
"$cargo" test --locked --no-fail-fast "${crates[@]}" || status=$?
wait "$beside" || status=$?
cat "$log"
exit $status
