#!/bin/sh
# Installs libnccl-profiler-telltale.so, under the name by which NCCL looks for it.
#
#   crates/nccl-profiler/install.sh DIRECTORY [DIRECTORY WITH libnccl_profiler_telltale.so]
#
# DIRECTORY is where the library will be, such as /usr/local/lib; with DESTDIR set, the file goes below
# $DESTDIR. The second argument defaults to where `cargo build --release -p telltale-nccl-profiler`
# puts it: $CARGO_TARGET_DIR/release, or target/release.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
directory=${1:?usage: install.sh DIRECTORY [BUILT DIRECTORY]}
built=${2:-${CARGO_TARGET_DIR:-$here/../../target}/release}
if [ ! -f "$built/libnccl_profiler_telltale.so" ]; then
    echo "install.sh: no libnccl_profiler_telltale.so in $built; build first: cargo build --release -p telltale-nccl-profiler" >&2
    exit 1
fi
install -d "${DESTDIR:-}$directory"
install -m 755 "$built/libnccl_profiler_telltale.so" \
    "${DESTDIR:-}$directory/libnccl-profiler-telltale.so"
