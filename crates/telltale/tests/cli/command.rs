//! Running the command, and looking at what it said and which processes it started.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use telltale_harness::{ChildGuard, wait_until};
use telltale_schema::snapshot::Snapshot;

/// How long anything may take here: much longer than it does, because machines are busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// Variables that change what the command does.
const VARIABLES: [&str; 16] = [
    "TELLTALE_EPOCH",
    "TELLTALE_LOG_CCL",
    "TELLTALE_PROGRAM_CACHE",
    "TELLTALE_ROOT",
    "TELLTALE_RUNTIME_DIR",
    "TELLTALE_STATE_DIR",
    "TELLTALE_DISABLED",
    "TT_METRICS_SOCKET_DIR",
    "TT_METAL_SHM_STATS_ENABLED",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
    "COLUMNS",
    "TERM",
];

/// How long all kernels may take to compile on a machine that compiles other things as well.
pub(crate) const COMPILE_TIMEOUT: Duration = Duration::from_secs(600);
/// One directory of compiled kernels for all tests: what one has compiled the next one finds.
pub(crate) const KERNEL_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/kernels");

/// The built binary in an environment that asks for nothing.
pub(crate) fn telltale() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
    VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.env("TELLTALE_KERNEL_CACHE", KERNEL_CACHE);
    command.stdin(Stdio::null());
    command
}

/// What a run of the command left behind for its caller.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Asserts that the command failed with `status`, nothing on standard output and one sentence
    /// with all of `words` on standard error.
    #[track_caller]
    pub(crate) fn complains(&self, status: i32, words: &[&str]) {
        assert_eq!((self.status, self.out.as_str()), (Some(status), ""), "{self:?}");
        assert!(self.err.starts_with("telltale: "), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is missing in {:?}", self.err);
        }
    }
}

/// Runs `command` to its end.
#[track_caller]
pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs `telltale smi` on the machine below `root`.
#[track_caller]
pub(crate) fn smi<A: AsRef<OsStr>>(root: &Path, arguments: &[A]) -> Said {
    said(telltale().arg("smi").arg("--root").arg(root).args(arguments))
}

/// A snapshot of the machine below `root`, by way of JSON.
#[track_caller]
pub(crate) fn snapshot(root: &Path) -> Snapshot {
    let said = smi(root, &["--json"]);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// Held by tests of which each keeps two processors busy: one beside another would be late for every deadline.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that runs beside the test.
pub(crate) struct Running {
    pub(crate) child: ChildGuard,
    pub(crate) lines: BufReader<ChildStdout>,
}

impl Running {
    /// Starts `command` with its output piped to here.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = ChildGuard::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let lines = BufReader::new(child.child().stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line, without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        if !line.ends_with('\n') {
            panic!("the output ended: {line:?}: {}", self.errors());
        }
        line.trim_end().to_owned()
    }

    /// What it said on standard error, once it has ended.
    pub(crate) fn errors(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut errors) = self.child.child().stderr.take() {
            errors.read_to_string(&mut text).unwrap();
        }
        text
    }

    /// All lines that are left, once it has ended.
    pub(crate) fn rest(self) -> Vec<String> {
        self.lines.lines().map(Result::unwrap).collect()
    }

    /// The exit status, once it has ended by itself.
    #[track_caller]
    pub(crate) fn status(&mut self) -> Option<i32> {
        self.child.wait_within("the command to end", TIMEOUT).code()
    }
}

/// A machine emulated by `telltale emulate`, there once this returns.
pub(crate) fn emulate(kind: &str, root: &Path, more: &[&str]) -> ChildGuard {
    let mut command = telltale();
    command.args(["emulate", "--machine", kind, "--root"]).arg(root).args(more);
    let mut machine = ChildGuard::spawn(command.stderr(Stdio::piped()));
    let mut line = String::new();
    let errors = machine.child().stderr.take().unwrap();
    BufReader::new(errors).read_line(&mut line).unwrap();
    assert!(line.starts_with("An emulated "), "{line}");
    machine
}

/// A process that replays a training on the first chip of the machine under `root`, once it is shown.
pub(crate) fn replaying(root: &Path) -> Running {
    let mut command = telltale();
    let replay = Running::start(command.args(["replay", "train", "--loop", "--root"]).arg(root));
    wait_until("a record", TIMEOUT, || {
        snapshot(root).processes.iter().any(|one| one.known_by.is_some())
    });
    replay
}

/// The living processes that `parent` started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// Whether one of our workload processes still runs (a zombie does not).
pub(crate) fn is_workload(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|text| String::from_utf8_lossy(&text).contains("TELLTALE_END_WITH_PARENT="))
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}
