#!/bin/sh
# Installs libtelltale, its header and its pkg-config file.
#
#   crates/capi/install.sh PREFIX [DIRECTORY WITH libtelltale.so AND libtelltale.a]
#
# PREFIX is where the library will be used; a relative one is taken from the current directory. With
# DESTDIR set, the files go below $DESTDIR, from where a package may bring them to PREFIX.
# The second argument defaults to where `cargo build --release -p telltale-capi` puts them:
# $CARGO_TARGET_DIR/release, or target/release.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?usage: install.sh PREFIX [LIBRARY DIRECTORY]}
case $prefix in
/*) ;;
*)
    if [ -n "${DESTDIR:-}" ]; then
        echo "install.sh: PREFIX is $prefix; with DESTDIR it must begin with a slash" >&2
        exit 1
    fi
    prefix=$(pwd)/$prefix
    ;;
esac
root=${DESTDIR:-}$prefix
built=${2:-${CARGO_TARGET_DIR:-$here/../../target}/release}
for library in libtelltale.so libtelltale.a; do
    if [ ! -f "$built/$library" ]; then
        echo "install.sh: no $library in $built; build first: cargo build --release -p telltale-capi" >&2
        exit 1
    fi
done
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)

install -d "$root/include" "$root/lib/pkgconfig"
install -m 644 "$here/include/telltale.h" "$root/include/telltale.h"
install -m 755 "$built/libtelltale.so" "$root/lib/libtelltale.so.$version"
ln -sf "libtelltale.so.$version" "$root/lib/libtelltale.so.0"
ln -sf libtelltale.so.0 "$root/lib/libtelltale.so"
install -m 644 "$built/libtelltale.a" "$root/lib/libtelltale.a"
# What sed would take for its own in the path.
quoted=$(printf '%s\n' "$prefix" | sed 's/[\\&|]/\\&/g')
sed -e "s|@PREFIX@|$quoted|g" -e "s|@VERSION@|$version|" "$here/telltale.pc.in" \
    >"$root/lib/pkgconfig/telltale.pc"
