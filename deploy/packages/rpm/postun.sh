if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
fi
# The package owns files only. What an administrator changed keeps its directory.
if [ "$1" = 0 ]; then
    documents=/usr/share/doc/telltale
    rmdir /usr/lib/telltale "$documents/docs" "$documents/deploy/systemd" "$documents/deploy" "$documents" \
        /etc/telltale 2>/dev/null || :
fi
