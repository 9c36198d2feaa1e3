//! What install.sh installs, below a directory: its files, and a service that runs from them as
//! systemd would run it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use telltale_harness::{ChildGuard, Scratch, as_user, needs_root, wait_until};

use crate::deploy::commands::{AGENT, COORDINATOR, INSTALLED, SERVE, TOP, built};
use crate::deploy::files::{deploy, is_silent};
use crate::deploy::systemd::{account, create};

const TIMEOUT: Duration = Duration::from_secs(60);

const PROGRAMS: [&str; 5] = [INSTALLED, SERVE, TOP, AGENT, COORDINATOR];

/// Users that nothing else has.
const WORKLOAD: u32 = 61_001;
const STRANGER: u32 = 61_002;

/// A machine's root directory with everything installed in it.
pub(crate) struct Installed(Scratch);

impl Installed {
    /// Runs the script. Programs of a line stand for the built ones, which are large.
    pub(crate) fn new() -> Self {
        let place = Scratch::new();
        place.set_mode(0o755);
        for program in PROGRAMS {
            let path = place.join(Path::new(program).file_name().unwrap());
            fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", built(program))).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let program = place.join("telltale");
        fs::create_dir(place.join("root")).unwrap();
        let installed = Self(place);
        is_silent(&installed.script(&[program.to_str().unwrap()]));
        installed
    }

    fn script(&self, words: &[&str]) -> Output {
        let mut command = Command::new(deploy("install.sh"));
        command.arg("--destdir").arg(self.root()).args(words).output().unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    /// A path of the machine.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    /// All files, as paths of the machine.
    fn files(&self) -> Vec<String> {
        fn below(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { below(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        below(&self.root(), &mut found);
        let shown =
            |path: &PathBuf| format!("/{}", path.strip_prefix(self.root()).unwrap().display());
        let mut files: Vec<String> = found.iter().map(shown).collect();
        files.sort();
        files
    }
}

#[test]
fn everything_is_where_a_package_has_it_and_goes_again() {
    let installed = Installed::new();
    let files = installed.files();
    for path in [
        INSTALLED,
        SERVE,
        TOP,
        AGENT,
        COORDINATOR,
        "/usr/lib/systemd/system/telltale.service",
        "/usr/lib/systemd/system/telltale.socket",
        "/usr/lib/systemd/system/telltale-coordinator@.service",
        "/usr/lib/systemd/system/telltale-agent@.service",
        "/usr/lib/sysusers.d/telltale.conf",
        "/usr/lib/tmpfiles.d/telltale.conf",
        "/usr/share/man/man1/telltale.1",
        "/usr/share/man/man1/telltale-serve.1",
        "/usr/share/man/man5/telltale.toml.5",
        "/usr/share/bash-completion/completions/telltale",
        "/usr/share/zsh/site-functions/_telltale",
        "/usr/share/fish/vendor_completions.d/telltale.fish",
    ] {
        assert!(files.iter().any(|file| file == path), "{path} is not in {files:?}");
        let metadata = installed.path(path).metadata().unwrap();
        let expected = if PROGRAMS.contains(&path) { 0o755 } else { 0o644 };
        assert_eq!(metadata.permissions().mode() & 0o7777, expected, "{path}");
        assert!(metadata.len() > 0, "{path} is empty");
    }
    let of_another = installed.path("/usr/share/man/man1/other.1");
    fs::write(&of_another, "").unwrap();
    is_silent(&installed.script(&["--remove"]));
    assert_eq!(installed.files(), ["/usr/share/man/man1/other.1"]);
}

#[test]
fn wrong_usage_installs_nothing() {
    let installed = Installed::new();
    is_silent(&installed.script(&["--remove"]));
    let cases: [(&[&str], i32); 5] = [
        (&[], 64),
        (&["a", "b"], 64),
        (&["--help"], 64),
        (&["--remove", "a"], 64),
        (&["/etc/passwd"], 2),
    ];
    for (words, status) in cases {
        let output = installed.script(words);
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
    assert!(installed.files().is_empty());
}

/// The service of the unit, as its user and in its directories, once it collects.
fn start(installed: &Installed, uid: u32, gid: u32) -> ChildGuard {
    let mut command = Command::new(installed.path(SERVE));
    command.args(["--http", "off", "--interval", "0.2"]);
    command.arg("--runtime-dir").arg(installed.path("/run/tt"));
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command.env("STATE_DIRECTORY", installed.path("/var/lib/telltale"));
    let mut service = ChildGuard::spawn(as_user(uid, gid, command).stderr(Stdio::piped()));
    let mut lines = BufReader::new(service.child().stderr.take().unwrap()).lines();
    let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("collecting")));
    assert!(line.is_some(), "the service ended");
    // A writer to a pipe without a reader is killed.
    std::thread::spawn(move || lines.for_each(drop));
    service
}

#[test]
fn a_service_without_rights_sees_the_memory_of_another_user() {
    let test = "deploy::a_service_without_rights_sees_the_memory_of_another_user";
    if !needs_root(test) {
        return;
    }
    let installed = Installed::new();
    let Some(()) = create(test, &installed) else { return };
    let (uid, gid) = account(&installed);
    let mut service = start(&installed, uid, gid);
    let state = installed.path("/var/lib/telltale").metadata().unwrap();
    assert_eq!((state.uid(), state.mode() & 0o7777), (uid, 0o700));
    let mut workload = Command::new(installed.path(INSTALLED));
    workload.args(["replay", "train", "--loop", "--speed", "10", "--runtime-dir"]);
    workload.arg(installed.path("/run/tt")).stdout(Stdio::null()).stderr(Stdio::null());
    let workload = ChildGuard::spawn(&mut as_user(WORKLOAD, WORKLOAD, workload));
    let socket = installed.path("/run/tt/telemetry.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sees_it = || {
        let snapshot = runtime.block_on(async {
            let mut client = telltale_client::connect(&socket).await.unwrap();
            client.snapshot(true).await.unwrap()
        });
        let found = snapshot.processes.iter().find(|it| it.pid == Some(workload.id()));
        found.is_some_and(|found| !found.devices.is_empty())
    };
    wait_until("the workload's memory to be seen", TIMEOUT, sees_it);
    let mut health = Command::new(installed.path(INSTALLED));
    health.args(["health", "--endpoint"]).arg(format!("unix:{}", socket.display()));
    let output = as_user(STRANGER, STRANGER, health).output().unwrap();
    is_silent(&output);
    service.terminate();
    assert_eq!(service.wait_within("the service to end", TIMEOUT).code(), Some(0));
    assert!(installed.path("/var/lib/telltale").read_dir().unwrap().next().is_some(), "a history");
}
