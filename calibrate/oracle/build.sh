#!/bin/bash
# Builds the oracle outside the repository: a user-mode Linux 6.1 with virtual time and every
# congestion algorithm built in, and the two programs that run inside it. What is already built and
# newer than its source is kept. About 4 minutes on two idle cores, 1.7 GB.
#
#   build.sh BUILD        -> BUILD/linux-tt, BUILD/flow, BUILD/halt
#
# Debian 12: apt-get install linux-source-6.1 flex bison bc make gcc libelf-dev iproute2
# Elsewhere: LINUX_SOURCE=/path/to/linux-6.1.x.tar.xz build.sh BUILD
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?build directory}"
cd "$1"
if [ ! -x linux-tt ]; then
  archive=${LINUX_SOURCE:-/usr/src/linux-source-6.1.tar.xz}
  [ -r "$archive" ] || { echo "build.sh: $archive is missing: apt-get install linux-source-6.1, or set LINUX_SOURCE" >&2; exit 3; }
  for tool in flex bison bc make gcc ip; do
    command -v $tool >/dev/null || PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "build.sh: $tool is missing" >&2; exit 3; }
  done
  rm -rf source && mkdir source && tar xf "$archive" -C source --strip-components=1
  (
    cd source
    # CPUs with AMX save 11 KB of FP state, an unpatched 6.1 reserves 2696 bytes for it and dies at
    # the first process.
    sed -i 's/DEFINE_LONGS(HOST_FP_SIZE, 2696)/DEFINE_LONGS(HOST_FP_SIZE, 12288)/' arch/x86/um/user-offsets.c
    make -s ARCH=um defconfig
    ./scripts/kconfig/merge_config.sh -m .config "$here/kernel.config" >/dev/null
    make -s ARCH=um olddefconfig
    make -s ARCH=um -j"$(nproc)" linux
    cp linux ../linux-tt
  )
  rm -rf source
fi
for program in flow halt; do
  [ "$program" -nt "$here/$program.c" ] || cc -O2 -static -Wall -o "$program" "$here/$program.c"
done
