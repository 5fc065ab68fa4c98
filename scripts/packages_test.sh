#!/usr/bin/env bash
# Installs and uses each package where nothing else of fullpipe is: `deb` in a fresh Debian
# (debootstrap) with namespaces of its own, `static` in a root with nothing but a shell, `install`
# (`cargo install`) into a root of its own, with PROFILE=quick what `make run` has built. Needs root
# for the first two. The packages are those of scripts/packages.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -gt 0 ]] || { echo 'usage: [PROFILE=dev] scripts/packages_test.sh deb|static|install ...' >&2; exit 2; }
target=$(realpath "${CARGO_TARGET_DIR:-target}")
out=$target/packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What every package must do, run inside its root: a simulation, and a test and a copy between two
# processes over the loopback. No bash: the static root has a plain shell.
cat > "$work/use.sh" <<'EOF'
set -eu
cd /tmp
fullpipe --version
fullpipe run first-run --quick --out /tmp/results >/tmp/table
grep -q goodput /tmp/table
test -s /tmp/results/report.html
fullpipe serve --new-key /tmp/key
mkdir /tmp/files
fullpipe serve --listen 127.0.0.1:6220 --key /tmp/key --files /tmp/files 2>/tmp/serve.log &
server=$!
tries=0
until grep -q 127.0.0.1:6220 /tmp/serve.log; do
    tries=$((tries + 1))
    if [ $tries -gt 50 ]; then cat /tmp/serve.log; exit 1; fi
    sleep 0.1
done
fullpipe send 127.0.0.1 --key /tmp/key --time 1s >/tmp/sent
grep -q Mbit/s /tmp/sent
dd if=/dev/urandom of=/tmp/one bs=1024 count=512 2>/dev/null
fullpipe send /tmp/one 127.0.0.1: --key /tmp/key >/tmp/copied
cmp /tmp/one /tmp/files/one
kill $server
wait $server
EOF

# A directory as the root of a shell, in mount, process and network namespaces of its own.
inside() {
    local root=$1
    shift
    unshare --mount --pid --net --uts --ipc --fork --kill-child bash -c '
        root=$1; shift
        mount --make-rprivate /
        mkdir -p "$root/proc" "$root/dev" "$root/tmp"
        mount -t proc proc "$root/proc"
        mount -t tmpfs none "$root/dev"
        for device in null zero urandom random tty; do : > "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
        mkdir "$root/dev/shm"
        ip link set lo up
        exec chroot "$root" "$(command -v env)" -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' inside "$root" "$@"
}

deb() {
    local package base root
    package=$(ls "$out"/fullpipe_*.deb)
    base=$target/bookworm
    if [[ ! -e $base/complete ]]; then
        rm -rf "$base"
        debootstrap --variant=minbase --include=systemd,man-db,libelf1,zlib1g,iproute2 bookworm "$base" >"$work/debootstrap.log" 2>&1 ||
            { tail -n 20 "$work/debootstrap.log" >&2; echo 'packages: no Debian to install into' >&2; exit 3; }
        touch "$base/complete"
    fi
    root=$work/deb
    cp -a "$base" "$root"
    cp "$package" "$root/tmp/fullpipe.deb"
    cp "$work/use.sh" "$root/tmp"
    cat > "$root/tmp/deb.sh" <<'EOF'
set -eu
# Neither /etc nor anything else may differ after a purge.
state() { find /etc /usr /var/lib -xdev -not -path '/var/lib/dpkg/*' -not -path '/usr/share/man/*' -not -path '/var/lib/systemd/*' | sort; }
state >/tmp/before
dpkg --install /tmp/fullpipe.deb
# An upgrade begins again what ran, and a removal ends it.
dpkg --install /tmp/fullpipe.deb
for unit in fullpipe-serve fullpipe-tune; do
    grep -q "deb-systemd-invoke \$_dh_action '$unit.service'" /var/lib/dpkg/info/fullpipe.postinst
    grep -q "deb-systemd-invoke stop '$unit.service'" /var/lib/dpkg/info/fullpipe.prerm
done
for user in fullpipe-serve fullpipe-tune; do getent passwd $user >/dev/null; done
test "$(stat -c '%U %a' /var/lib/fullpipe-serve)" = 'fullpipe-serve 750'
for unit in fullpipe-serve fullpipe-tune; do
    test ! -e /etc/systemd/system/multi-user.target.wants/$unit.service
    SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no /lib/systemd/system/$unit.service
    systemd-analyze security --offline=yes --no-pager /lib/systemd/system/$unit.service | tail -n 1
done
fullpipe tune check /usr/share/doc/fullpipe/policies/net100.toml >/dev/null
fullpipe tune doctor >/tmp/doctor || test $? -lt 4
man --where fullpipe-serve
test -s /usr/share/bash-completion/completions/fullpipe
sh /tmp/use.sh
# What fullpipe-serve.service runs, as its user.
as_serve='setpriv --reuid=fullpipe-serve --regid=fullpipe-serve --clear-groups'
cd /
$as_serve fullpipe serve --new-key /var/lib/fullpipe-serve/key --identity /var/lib/fullpipe-serve/identity
$as_serve fullpipe serve --listen 127.0.0.1:6221 --key /var/lib/fullpipe-serve/key --identity /var/lib/fullpipe-serve/identity 2>/tmp/service.log &
server=$!
sleep 1
fullpipe send 127.0.0.1:6221 --key /var/lib/fullpipe-serve/key --time 1s >/tmp/sent
grep -q Mbit/s /tmp/sent
kill $server
wait $server
dpkg --purge fullpipe
test ! -e /usr/bin/fullpipe
test ! -e /var/lib/fullpipe-serve
state >/tmp/after
# Users stay, as Debian's policy has it: their files may.
grep -v -e '/etc/passwd-\?$' -e '/etc/group-\?$' -e '/etc/g\?shadow-\?$' -e '/etc/\.pwd\.lock$' /tmp/after | diff /tmp/before - >/tmp/left || true
grep '^>' /tmp/left && exit 1
exit 0
EOF
    inside "$root" /bin/sh /tmp/deb.sh
}

static() {
    local root=$work/static
    mkdir -p "$root"/{bin,tmp,root,usr/bin}
    tar --extract --gzip --file "$out"/fullpipe-*-musl.tar.gz --directory "$work"
    cp "$work"/fullpipe-*-musl/fullpipe "$root/bin/fullpipe"
    local busybox
    busybox=$(command -v busybox) && ! ldd "$busybox" >/dev/null 2>&1 ||
        { echo 'packages: no static busybox; apt-get install busybox-static' >&2; exit 3; }
    cp "$busybox" "$root/bin/busybox"
    local applet
    for applet in sh grep test mkdir sleep cat dd cmp kill env; do ln -s busybox "$root/bin/$applet"; done
    ln -s /bin/env "$root/usr/bin/env"
    cp "$work/use.sh" "$root/tmp"
    inside "$root" /bin/sh /tmp/use.sh
}

install() {
    cargo install --quiet --locked --profile "${PROFILE:-dev}" --path crates/cli --root "$work/installed" --target-dir "$target"
    PATH=$work/installed/bin:$PATH fullpipe --version
    (cd "$work" && PATH=$work/installed/bin:$PATH fullpipe run first-run --quick --out "$work/installed/results" >"$work/table")
    grep -q goodput "$work/table"
}

for kind in "$@"; do
    case $kind in
    deb | static | install) "$kind" ;;
    *) echo "packages: no kind $kind" >&2; exit 2 ;;
    esac
    echo "packages: $kind passed"
done
