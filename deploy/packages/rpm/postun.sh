if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
fi
# The package owns files only. What an administrator changed keeps its directory.
if [ "$1" = 0 ]; then
    rmdir /usr/lib/telltale /usr/share/doc/telltale /etc/telltale 2>/dev/null || :
fi
