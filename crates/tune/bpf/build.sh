#!/bin/sh
# Makes the committed object, which is used where there is no clang: without DWARF, and with a line
# that says of which sources and by which compiler it is. A test compares both.
set -eu
cd "$(dirname "$0")/.."
clang=${BPF_CLANG:-clang}
strip=${BPF_STRIP:-llvm-strip}
"$clang" -g -O2 -target bpf -mcpu=v3 -Wall -Werror -fdebug-compilation-dir=. \
    -c bpf/tune.bpf.c -o bpf/tune.bpf.o
"$strip" -g bpf/tune.bpf.o
{
    cat bpf/tune.bpf.c bpf/kernel.h bpf/shared.h bpf/law.h | sha256sum | cut -d' ' -f1
    "$clang" --version | head -1
} > bpf/tune.bpf.o.from
