#!/bin/sh
# Installs libtelltale_nrt, its headers and its pkg-config file.
#
#   crates/nrt/install.sh PREFIX [DIRECTORY WITH libtelltale_nrt.so]
#
# PREFIX is where the library will be used; a relative one is taken from the current directory. With
# DESTDIR set, the files go below $DESTDIR, from where a package may bring them to PREFIX. LIBDIR is where the
# system has libraries below PREFIX, such as lib64; lib where it is not set.
# The second argument defaults to where `cargo build --release -p telltale-nrt` puts them:
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
libdir=${LIBDIR:-lib}
built=${2:-${CARGO_TARGET_DIR:-$here/../../target}/release}
if [ ! -f "$built/libtelltale_nrt.so" ]; then
    echo "install.sh: no libtelltale_nrt.so in $built; build first: cargo build --release -p telltale-nrt" >&2
    exit 1
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)

install -d "$root/include/nrt" "$root/$libdir/pkgconfig"
install -m 644 "$here"/include/nrt/*.h "$root/include/nrt/"
install -m 644 "$here/include/telltale_debug.h" "$root/include/telltale_debug.h"
install -m 755 "$built/libtelltale_nrt.so" "$root/$libdir/libtelltale_nrt.so.$version"
ln -sf "libtelltale_nrt.so.$version" "$root/$libdir/libtelltale_nrt.so.0"
ln -sf libtelltale_nrt.so.0 "$root/$libdir/libtelltale_nrt.so"
# What sed would take for its own in the path.
quoted=$(printf '%s\n' "$prefix" | sed 's/[\\&|]/\\&/g')
sed -e "s|@PREFIX@|$quoted|g" -e "s|@VERSION@|$version|" -e "s|@LIBDIR@|$libdir|g" "$here/telltale-nrt.pc.in" \
    >"$root/$libdir/pkgconfig/telltale-nrt.pc"
