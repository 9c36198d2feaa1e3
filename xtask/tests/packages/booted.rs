//! A system that systemd has started, in namespaces of its own.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use telltale_harness::{ChildGuard, wait_until};

use super::system::{System, printed};

/// Gives systemd the root `$1`: all that it mounts and starts ends with it.
const BOOT: &str = "
set -e
mount --make-rprivate /
mount --bind \"$1\" \"$1\"
mount -t proc proc \"$1/proc\"
mount -t sysfs -o ro sysfs \"$1/sys\"
mount -t cgroup2 cgroup2 \"$1/sys/fs/cgroup\"
mount -t tmpfs tmpfs \"$1/run\"
mount -t tmpfs tmpfs \"$1/tmp\"
mount -t tmpfs -o mode=755 tmpfs \"$1/dev\"
for device in null zero full random urandom tty; do
    touch \"$1/dev/$device\"
    mount --bind \"/dev/$device\" \"$1/dev/$device\"
done
mkdir \"$1/dev/pts\" \"$1/dev/shm\" \"$1/former\"
mount -t devpts -o newinstance,ptmxmode=0666 devpts \"$1/dev/pts\"
ln -s pts/ptmx \"$1/dev/ptmx\"
ip link set lo up
cd \"$1\"
pivot_root . former
umount -l /former
rmdir /former
exec env -i container=trial PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target --show-status=false
";

const TIMEOUT: Duration = Duration::from_secs(120);

/// A running system.
pub(super) struct Booted {
    _unshare: ChildGuard,
    /// systemd's, as this machine knows it.
    init: u32,
    pub(super) system: System,
}

// === impl Booted ===

impl Booted {
    /// Starts a system that has systemd, and waits until it is up.
    pub(super) fn start(system: System) -> Self {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net", "--fork"]);
        unshare.args(["--kill-child", "sh", "-c", BOOT, "sh"]).arg(system.path("/"));
        unshare.stdin(Stdio::null());
        let unshare = ChildGuard::spawn(&mut unshare);
        let mut init = 0;
        wait_until("systemd", TIMEOUT, || {
            let children = format!("/proc/{0}/task/{0}/children", unshare.id());
            let text = std::fs::read_to_string(children).unwrap_or_default();
            init = text.split_whitespace().next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
            let name = std::fs::read_to_string(format!("/proc/{init}/comm")).unwrap_or_default();
            name.trim() == "systemd"
        });
        let booted = Self { _unshare: unshare, init, system };
        wait_until("a system that is up", TIMEOUT, || {
            let state = booted.run("systemctl is-system-running");
            ["running", "degraded"].contains(&String::from_utf8_lossy(&state.stdout).trim())
        });
        booted
    }

    /// Runs a script in it to its end.
    pub(super) fn run(&self, script: &str) -> Output {
        let mut enter = Command::new("nsenter");
        enter.args([
            "--target",
            &self.init.to_string(),
            "--mount",
            "--pid",
            "--uts",
            "--ipc",
            "--net",
        ]);
        enter.args([
            "--cgroup",
            "--root",
            "--wd",
            "env",
            "-i",
            "LC_ALL=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive",
        ]);
        enter.args([
            "HOME=/root",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ]);
        enter.args(["sh", "-c", script]).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs what must not fail, and gives what it printed.
    #[track_caller]
    pub(super) fn ok(&self, script: &str) -> String {
        printed(script, &self.run(script))
    }

    /// A property of a unit.
    #[track_caller]
    pub(super) fn property(&self, unit: &str, name: &str) -> String {
        self.ok(&format!("systemctl show --property={name} --value {unit}")).trim().to_owned()
    }
}
