#!/bin/sh
# Installs libtelltale, its header and its pkg-config file.
#
#   crates/capi/install.sh PREFIX [DIRECTORY WITH libtelltale.so AND libtelltale.a]
#
# The second argument defaults to where `cargo build --release -p telltale-capi` puts them:
# $CARGO_TARGET_DIR/release, or target/release.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?usage: install.sh PREFIX [LIBRARY DIRECTORY]}
built=${2:-${CARGO_TARGET_DIR:-$here/../../target}/release}
for library in libtelltale.so libtelltale.a; do
    if [ ! -f "$built/$library" ]; then
        echo "install.sh: no $library in $built; build first: cargo build --release -p telltale-capi" >&2
        exit 1
    fi
done
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)

install -d "$prefix/include" "$prefix/lib/pkgconfig"
install -m 644 "$here/include/telltale.h" "$prefix/include/telltale.h"
install -m 755 "$built/libtelltale.so" "$prefix/lib/libtelltale.so.$version"
ln -sf "libtelltale.so.$version" "$prefix/lib/libtelltale.so.0"
ln -sf libtelltale.so.0 "$prefix/lib/libtelltale.so"
install -m 644 "$built/libtelltale.a" "$prefix/lib/libtelltale.a"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/telltale.pc.in" \
    >"$prefix/lib/pkgconfig/telltale.pc"
