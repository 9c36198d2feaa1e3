#!/bin/sh
# Installs libtelltale, its header, and what pkg-config and CMake read.
#
#   crates/capi/install.sh PREFIX [DIRECTORY WITH libtelltale.a]
#
# PREFIX is where the library will be used; a relative one is taken from the current directory. With
# DESTDIR set, the files go below $DESTDIR, from where a package may bring them to PREFIX. LIBDIR is where the
# system has libraries below PREFIX, such as lib64; lib where it is not set.
# The second argument defaults to where `cargo build --release -p telltale-capi` puts it:
# $CARGO_TARGET_DIR/release, or target/release. The shared library is linked here, of the static one, by $CC (cc) with
# $LDFLAGS: cargo does not let its symbols have versions.
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
if [ ! -f "$built/libtelltale.a" ]; then
    echo "install.sh: no libtelltale.a in $built; build first: cargo build --release -p telltale-capi" >&2
    exit 1
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)

install -d "$root/include" "$root/$libdir/pkgconfig" "$root/$libdir/cmake/telltale"
install -m 644 "$here/include/telltale.h" "$root/include/telltale.h"
# Each symbol of the map is wanted; what none of them needs is left out.
wanted=$(sed -n 's/^ *\(telltale_[a-z_]*\);$/-Wl,-u,\1/p' "$here/telltale.map")
# shellcheck disable=SC2086 # words
${CC:-cc} -shared -o "$root/$libdir/libtelltale.so.$version" $wanted "$built/libtelltale.a" \
    -Wl,--version-script="$here/telltale.map" -Wl,-soname,libtelltale.so.0 -Wl,-z,nodelete -Wl,-z,relro,-z,now \
    -Wl,--gc-sections ${LDFLAGS:-} -lgcc_s -lpthread -lm -ldl
chmod 755 "$root/$libdir/libtelltale.so.$version"
ln -sf "libtelltale.so.$version" "$root/$libdir/libtelltale.so.0"
ln -sf libtelltale.so.0 "$root/$libdir/libtelltale.so"
install -m 644 "$built/libtelltale.a" "$root/$libdir/libtelltale.a"
# What sed would take for its own in the path.
quoted=$(printf '%s\n' "$prefix" | sed 's/[\\&|]/\\&/g')
sed -e "s|@PREFIX@|$quoted|g" -e "s|@VERSION@|$version|" -e "s|@LIBDIR@|$libdir|g" "$here/telltale.pc.in" \
    >"$root/$libdir/pkgconfig/telltale.pc"
for file in telltaleConfig.cmake telltaleConfigVersion.cmake; do
    sed -e "s|@VERSION@|$version|g" -e "s|@LIBDIR@|$libdir|g" "$here/$file.in" >"$root/$libdir/cmake/telltale/$file"
done
