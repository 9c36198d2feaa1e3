#!/bin/sh
# Installs a built telltale, and the commands beside it that are programs of their own, with their units, directories, manual pages and completions.
#
#   deploy/install.sh [--destdir DIR] BINARY     for packagers: below DIR instead of /
#   deploy/install.sh --pages-by PROGRAM BINARY  BINARY is for another processor: PROGRAM, of the same version, writes
#                                                pages and completions
#   deploy/install.sh [--destdir DIR] --remove   takes away what it installed, and nothing else
#
# It creates no user and starts nothing: README.md has the commands that follow, which a package
# runs in its own scripts.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
destination=
binary=
pages_by=
remove=no
# Commands that are programs of their own as well.
single="telltale-serve telltale-top telltale-agent telltale-coordinator"

usage() {
    echo "usage: install.sh [--destdir DIR] [--pages-by PROGRAM] BINARY | --remove" >&2
    exit 64
}

while [ $# -gt 0 ]; do
    case $1 in
        --destdir) [ $# -ge 2 ] || usage; destination=$2; shift ;;
        --pages-by) [ $# -ge 2 ] || usage; pages_by=$2; shift ;;
        --remove) remove=yes ;;
        -*) usage ;;
        *) [ -z "$binary" ] || usage; binary=$1 ;;
    esac
    shift
done

prefix=$destination/usr
units=$prefix/lib/systemd/system
pages=$prefix/share/man/man1
file_pages=$prefix/share/man/man5
bash_completions=$prefix/share/bash-completion/completions
# Debian's zsh looks for those of packages in a place of its own.
zsh_completions=$prefix/share/zsh/site-functions
[ ! -d "$prefix/share/zsh/vendor-completions" ] ||
    zsh_completions=$prefix/share/zsh/vendor-completions
fish_completions=$prefix/share/fish/vendor_completions.d

if [ "$remove" = yes ]; then
    [ -z "$binary" ] || usage
    for program in telltale $single; do
        rm -f "$prefix/bin/$program"
    done
    rm -f "$units/telltale.service" "$units/telltale.socket" \
        "$units/telltale-coordinator@.service" "$units/telltale-agent@.service" \
        "$prefix/lib/sysusers.d/telltale.conf" "$prefix/lib/tmpfiles.d/telltale.conf" \
        "$prefix/lib/telltale/libtelltale_preload.so" "$pages/telltale.1" "$pages"/telltale-*.1 "$file_pages/telltale.toml.5" \
        "$bash_completions/telltale" "$zsh_completions/_telltale" "$fish_completions/telltale.fish"
    [ ! -d "$prefix/lib/telltale" ] || rmdir --ignore-fail-on-non-empty "$prefix/lib/telltale"
    exit 0
fi

[ -n "$binary" ] || usage
built=$(dirname "$binary")
needs() {
    [ -x "$1" ] || {
        echo "install.sh: $1 is no program; build it with: cargo build --release" >&2
        exit 2
    }
}
needs "$binary"
for program in $single; do
    needs "$built/$program"
done

install -d "$prefix/bin" "$units" "$prefix/lib/sysusers.d" "$prefix/lib/tmpfiles.d" "$pages" "$file_pages" \
    "$bash_completions" "$zsh_completions" "$fish_completions"
install -m 0755 "$binary" "$prefix/bin/telltale"
for program in $single; do
    install -m 0755 "$built/$program" "$prefix/bin"
done
# What `telltale run` preloads, where it was built with the program.
library=$built/libtelltale_preload.so
[ ! -f "$library" ] || {
    install -d "$prefix/lib/telltale"
    install -m 0755 "$library" "$prefix/lib/telltale/libtelltale_preload.so"
}
install -m 0644 "$here/systemd/telltale.service" "$here/systemd/telltale.socket" \
    "$here/systemd/telltale-coordinator@.service" "$here/systemd/telltale-agent@.service" "$units"
install -m 0644 "$here/systemd/telltale.sysusers" "$prefix/lib/sysusers.d/telltale.conf"
install -m 0644 "$here/systemd/telltale.tmpfiles" "$prefix/lib/tmpfiles.d/telltale.conf"

umask 022
: "${pages_by:=$binary}"
"$pages_by" man --output "$pages"
mv "$pages/telltale.toml.5" "$file_pages"
"$pages_by" completions bash >"$bash_completions/telltale"
"$pages_by" completions zsh >"$zsh_completions/_telltale"
"$pages_by" completions fish >"$fish_completions/telltale.fish"
