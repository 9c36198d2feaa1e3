sh /usr/lib/telltale/account.sh
if [ "$1" = 1 ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl preset telltale.service
elif [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart telltale.service
fi
