#!/bin/sh
# Makes the service's account and directories, as sysusers.d and tmpfiles.d describe them: a container has neither
# program. Packages run this when they are installed.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers telltale.conf
elif ! getent passwd telltale >/dev/null; then
    getent group telltale >/dev/null || groupadd --system telltale
    useradd --system --gid telltale --home-dir /var/lib/telltale --no-create-home \
        --shell /usr/sbin/nologin --comment "Telltale node service" telltale
fi
# In some containers the program is there and may not do it.
if ! { command -v systemd-tmpfiles >/dev/null 2>&1 && systemd-tmpfiles --create telltale.conf; }; then
    install -d -o telltale -g telltale -m 3777 /run/tt
    install -d -o telltale -g telltale -m 0700 /var/lib/telltale
fi
