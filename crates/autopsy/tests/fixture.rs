//! Programs that are looked at, and looking at them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use telltale_autopsy::evidence::ProcessEvidence;
use telltale_autopsy::take::{TakeError, take};
use telltale_harness::{ChildGuard, Scratch, compile_c};

/// How long a program may take to begin.
const BEGINNING: Duration = Duration::from_secs(60);

/// Starts a program and waits for its first line.
pub(crate) fn start(command: &mut Command) -> (ChildGuard, String) {
    let mut child = ChildGuard::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()));
    let output = child.child().stdout.take().unwrap();
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let line = lines.recv_timeout(BEGINNING).expect("the program says that it has begun");
    (child, line)
}

/// Compiles a C program of this name.
pub(crate) fn compiled(scratch: &Scratch, name: &str, code: &str) -> PathBuf {
    let source = scratch.join("program.c");
    std::fs::write(&source, code).unwrap();
    compile_c(&source, &scratch.join(name), &["-g", "-pthread", "-rdynamic"])
}

/// One sample of a process.
pub(crate) fn sampled(pid: u32) -> Result<ProcessEvidence, TakeError> {
    let mut found = None;
    take(&[pid], 1, Duration::ZERO, |_, taken| found = Some(taken));
    found.expect("one answer for one process")
}

/// Whether a process is neither traced nor stopped by anyone.
pub(crate) fn is_free(pid: u32) -> bool {
    let tasks = Path::new("/proc").join(pid.to_string()).join("task");
    std::fs::read_dir(tasks).unwrap().flatten().all(|task| {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:\t"));
        status.is_empty()
            || status.contains("TracerPid:\t0")
                && state.is_some_and(|state| !state.starts_with(['t', 'T']))
    })
}
