#!/usr/bin/env bash
# Builds packages of the program into target/packages: `deb`, for the Debian that this runs on, with
# the tuner; `static`, a program that needs no library, as tar.gz. PROFILE=release, quick or dev
# builds sooner what runs slower; with DEB_TARGET=target the Debian package takes from there what is
# built already, and the program there has the tuner then.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    echo 'usage: [PROFILE=dist] scripts/packages.sh deb|static ...' >&2
    exit 2
}

[[ $# -gt 0 ]] || usage
profile=${PROFILE:-dist}
built_in=$profile # cargo's folder of the profile dev is called debug
if [[ $profile = dev ]]; then built_in=debug; fi
target=${CARGO_TARGET_DIR:-target}
out=$target/packages
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
mkdir -p "$out"

need() {
    command -v "$1" >/dev/null || { echo "packages: $1 is missing; apt-get install $2" >&2; exit 3; }
}

deb() {
    need dpkg-buildpackage 'dpkg-dev debhelper fakeroot'
    need dh 'debhelper'
    need pkg-config 'pkg-config libelf-dev zlib1g-dev'
    # In a directory of its own: with the tuner, the crates above it are built otherwise.
    local binary stage shipped built=${DEB_TARGET:-$target/deb}
    cargo build --locked --profile "$profile" --package fullpipe --features tune --target-dir "$built"
    binary=$(realpath "$built/$built_in/fullpipe")
    stage=$(mktemp -d "$out/deb.XXXXXX")
    mkdir "$stage/fullpipe"
    mapfile -t shipped < packaging/debian/docs
    git ls-files -z "${shipped[@]}" contrib |
        xargs -0 cp --parents -t "$stage/fullpipe"
    cp -r packaging/debian "$stage/fullpipe/debian"
    printf 'fullpipe (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
        "$version" 'The fullpipe developers <fullpipe@localhost>' "$(date -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}")" \
        > "$stage/fullpipe/debian/changelog"
    (cd "$stage/fullpipe" && FULLPIPE_BINARY=$binary dpkg-buildpackage --build=binary --no-sign --no-check-builddeps >../log 2>&1) ||
        { tail -n 40 "$stage/log" >&2; exit 1; }
    mv "$stage"/fullpipe_*.deb "$out"
    rm -r "$stage"
    ls "$out"/fullpipe_"$version"_*.deb
}

static() {
    need musl-gcc 'musl-tools'
    local triple name stage
    triple=$(uname -m)-unknown-linux-musl
    rustup target list --installed 2>/dev/null | grep -qx "$triple" || rustup target add "$triple" ||
        { echo "packages: rustup cannot add $triple" >&2; exit 3; }
    cargo build --locked --profile "$profile" --package fullpipe --target "$triple"
    name=fullpipe-$version-$triple
    stage=$(mktemp -d "$out/static.XXXXXX")
    mkdir -p "$stage/$name"/{man/man1,completions}
    local binary=$target/$triple/$built_in/fullpipe
    install -m 755 "$binary" "$stage/$name/fullpipe"
    strip "$stage/$name/fullpipe"
    "$binary" man "$stage/$name/man/man1"
    for shell in bash zsh fish; do "$binary" completions "$shell" > "$stage/$name/completions/fullpipe.$shell"; done
    cp LICENSE-MIT LICENSE-APACHE NOTICE README.md CHANGELOG.md "$stage/$name"
    tar --create --gzip --file "$out/$name.tar.gz" --directory "$stage" --owner=0 --group=0 "$name"
    rm -r "$stage"
    ls "$out/$name.tar.gz"
}

for kind in "$@"; do
    case $kind in
    deb | static) "$kind" ;;
    *) usage ;;
    esac
done
