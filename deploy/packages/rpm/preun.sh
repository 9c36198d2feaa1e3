if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
    systemctl disable --now telltale.service telltale.socket
fi
