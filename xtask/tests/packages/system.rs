//! A bare system: Debian's smallest, in a directory of its own, with processes and mounts of its own.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use telltale_harness::Scratch;

use super::made::root;

/// Gives a command a system's root: `$1`, with a `/proc` of the processes that it starts.
const ENTER: &str = "
set -e
mount --make-rprivate /
mount -t proc proc \"$1/proc\"
mount -t tmpfs tmpfs \"$1/tmp\"
for device in null zero full random urandom tty; do
    [ -e \"$1/dev/$device\" ] || touch \"$1/dev/$device\"
    mount --bind \"/dev/$device\" \"$1/dev/$device\"
done
mkdir -p \"$1/dev/pts\" \"$1/dev/shm\"
mount -t devpts -o newinstance,ptmxmode=0666 devpts \"$1/dev/pts\"
rm -f \"$1/dev/ptmx\"
ln -s pts/ptmx \"$1/dev/ptmx\"
mount -t tmpfs tmpfs \"$1/dev/shm\"
exec chroot \"$1\" sh -c \"$2\"
";

/// A directory with a system in it, which goes with this.
pub(super) struct System(Scratch);

// === impl System ===

impl System {
    /// A fresh one of a suite, with `packages` of its distribution.
    pub(super) fn debian(suite: &str, packages: &[&str]) -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let held = ONE_AT_A_TIME.lock();
        let base = base(suite, packages);
        drop(held);
        let place = scratch();
        copy(&base, place.path());
        connect(place.path());
        place.set_mode(0o755);
        Self(place)
    }

    /// A path of the system, as this machine has it.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// Puts a file of this machine into a directory of the system; its path there.
    pub(super) fn put(&self, from: &Path, directory: &str) -> String {
        let name = from.file_name().unwrap();
        fs::create_dir_all(self.path(directory)).unwrap();
        fs::copy(from, self.path(directory).join(name)).unwrap();
        format!("{directory}/{}", name.to_str().unwrap())
    }

    /// A command that runs a script in it.
    pub(super) fn command(&self, script: &str) -> Command {
        command_within(self.0.path(), script)
    }

    /// Runs a script in it to its end.
    pub(super) fn run(&self, script: &str) -> Output {
        self.command(script).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs what must not fail, and gives what it printed.
    #[track_caller]
    pub(super) fn ok(&self, script: &str) -> String {
        printed(script, &self.run(script))
    }

    /// Every file of the system but for what any package changes, with what it is.
    pub(super) fn files(&self) -> Vec<String> {
        let listed = self.ok(
            "find / -xdev \\( -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /var/lib/dpkg \
             -o -path /run -o -path /tmp -o -path /dev -o -path /proc -o -path /sys -o -path /packages \
             -o -path /var/lib/systemd -o -path /etc/systemd/system -o -path '/etc/*-' \\) -prune -o -printf '%p %y %u:%g %m\\n'",
        );
        let mut files: Vec<String> = listed.lines().map(str::to_owned).collect();
        files.sort();
        files
    }
}

fn command_within(place: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--"]);
    command.args(["sh", "-c", ENTER, "sh"]).arg(place).arg(script);
    settings(&mut command);
    command
}

fn within(place: &Path, script: &str) {
    printed(script, &command_within(place, script).output().unwrap());
}

/// What a script printed that must not have failed.
#[track_caller]
pub(super) fn printed(script: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script}\n{}\n{out}\n{err}", output.status);
    out
}

/// Where systems are made and kept.
fn trial() -> PathBuf {
    let trial = root().join("target/trial");
    fs::create_dir_all(&trial).unwrap();
    fs::canonicalize(trial).unwrap()
}

/// A directory on the disk: what is made here is large.
pub(super) fn scratch() -> Scratch {
    Scratch::within(&trial())
}

/// The language and what this machine's package managers were given to find their registries.
fn settings(command: &mut Command) {
    let kept = |name: &str| name.starts_with("PIP_") || name.to_lowercase().ends_with("_proxy");
    let kept: Vec<_> = std::env::vars().filter(|(name, _)| kept(name)).collect();
    command.env_clear().envs(kept).env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("DEBIAN_FRONTEND", "noninteractive").env("HOME", "/root");
}

/// Gives a system what this machine finds names and registries by, as it is today.
fn connect(system: &Path) {
    fs::create_dir_all(system.join("etc/ssl/certs")).unwrap();
    let authorities = "/etc/ssl/certs/ca-certificates.crt";
    for file in ["/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", authorities] {
        let _ = fs::copy(file, system.join(file.trim_start_matches('/')));
    }
}

fn copy(system: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(system.join(".")).arg(to).status();
    assert!(copied.unwrap().success(), "{} cannot be copied", system.display());
}

/// The system that others are copies of, made by debootstrap from the mirror of this machine.
fn base(suite: &str, packages: &[&str]) -> PathBuf {
    let name = [&[suite], packages].concat().join("+");
    let place = trial().join(format!("base-{name}"));
    if place.join("made").exists() {
        return place;
    }
    if place.exists() {
        fs::remove_dir_all(&place).unwrap();
    }
    if packages.is_empty() {
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", suite]).arg(&place).args(mirror());
        let output = debootstrap.output().expect("needs debootstrap: apt-get install debootstrap");
        printed("debootstrap", &output);
        connect(&place);
        // As of a machine that is in use: its lists are there.
        within(&place, "apt-get update -qq");
    } else {
        let bare = base(suite, &[]);
        fs::create_dir(&place).unwrap();
        copy(&bare, &place);
        fs::remove_file(place.join("made")).unwrap();
        let install = "apt-get install -y -qq --no-install-recommends";
        within(&place, &format!("{install} {} && apt-get clean", packages.join(" ")));
    }
    fs::File::create(place.join("made")).unwrap().write_all(name.as_bytes()).unwrap();
    place
}

/// The mirror that this machine has its own packages from.
fn mirror() -> Option<String> {
    let mut apt = Command::new("apt-get");
    let output = apt.args(["indextargets", "--format", "$(SITE)"]).output().ok()?;
    let sites = String::from_utf8(output.stdout).ok()?;
    sites.lines().find(|site| !site.contains("security")).map(str::to_owned)
}
