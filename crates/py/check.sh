#!/usr/bin/env bash
# The Python package, in a folder of its own: runs pytest and mypy; WHEEL=1 as it comes in a wheel.
# Skipped, with the reason, where Python 3.11 or what the tests need is missing.
set -euo pipefail
cd "$(dirname "$0")"

what='the Python package'
source ./build.sh 'pytest hypothesis mypy'
"$python" -m pytest -q -p no:cacheprovider tests
"$python" -m mypy --no-incremental python/fullpipe examples tests/test_typing.py
"$python" -m mypy.stubtest fullpipe._native --ignore-disjoint-bases \
    --mypy-config-file stubtest.ini
