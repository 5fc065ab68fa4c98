#!/bin/sh
# Makes the committed objects, which are used where there is no clang: without DWARF, and with a
# file that says of which sources and by which compiler each is. A test compares both.
set -eu
cd "$(dirname "$0")/.."
# The order of `bpf/*.h`.
LC_ALL=C
export LC_ALL
clang=${BPF_CLANG:-clang}
strip=${BPF_STRIP:-llvm-strip}
for name in tune watch inject; do
    "$clang" -g -O2 -target bpf -mcpu=v3 -Wall -Werror -fdebug-compilation-dir=. \
        -c "bpf/$name.bpf.c" -o "bpf/$name.bpf.o"
    "$strip" -g "bpf/$name.bpf.o"
    {
        cat "bpf/$name.bpf.c" bpf/*.h | sha256sum | cut -d' ' -f1
        "$clang" --version | head -1
    } > "bpf/$name.bpf.o.from"
done
