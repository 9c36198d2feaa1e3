if [ "$1" = 0 ] && command -v systemctl >/dev/null 2>&1; then
    systemctl --no-reload disable telltale.service telltale.socket >/dev/null 2>&1 || :
    if [ -d /run/systemd/system ]; then
        systemctl stop telltale.service telltale.socket 'telltale-agent@*.service' 'telltale-coordinator@*.service' || :
    fi
fi
