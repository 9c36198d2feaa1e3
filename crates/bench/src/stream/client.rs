//! The rows of a program in C that is linked to `libtelltale_nrt.so`, in processes of its own.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DEEP, at_most, row, times_baseline};
use crate::sample::{Contender, Effort, interleave};
use crate::table::Row;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/stream/client.c");
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../nrt/include");
/// What an event may take for seven million a second, in nanoseconds.
const SEVEN_MILLION_A_SECOND: f64 = 1e9 / 7e6;

/// The program, compiled.
#[derive(Debug)]
pub struct ClientProgram(PathBuf);

// === impl ClientProgram ===

impl ClientProgram {
    /// Compiles it in `directory` against the library that was built in `libraries`.
    ///
    /// # Errors
    /// When there is no compiler, or it refuses.
    pub fn compile(libraries: &Path, directory: &Path) -> io::Result<Self> {
        // The name that the library has where it is installed.
        let library = directory.join("libtelltale_nrt.so.0");
        symlink(libraries.join("libtelltale_nrt.so"), &library)?;
        let program = directory.join("client");
        let mut command = Command::new("cc");
        command.args(["-O2", "-pthread", SOURCE, "-I", HEADERS, "-o"]).arg(&program).arg(&library);
        command.arg(format!("-Wl,-rpath,{}", directory.display()));
        let status = command.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("{command:?} failed ({status})")));
        }
        Ok(Self(program))
    }

    /// Nanoseconds of what the program does `events` times in a run.
    fn task_ns(&self, task: &str, events: u64) -> f64 {
        let mut command = Command::new(&self.0);
        command.arg(task).arg(events.to_string());
        let output = command.output().expect("what was just compiled can be started");
        let written = String::from_utf8_lossy(&output.stdout).into_owned();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {reported}");
        written.trim().parse().expect("the program writes a number")
    }
}

pub(super) fn rows(effort: Effort, client: &ClientProgram) -> Vec<Row> {
    let events = effort.operations(2 * DEEP);
    let calls = effort.operations(20_000_000);
    let contenders: [Contender<'_>; 5] = [
        Box::new(|| client.task_ns("in-turn", events)),
        Box::new(|| client.task_ns("passing", events)),
        Box::new(|| client.task_ns("waiting", events)),
        Box::new(|| client.task_ns("waits", events)),
        Box::new(|| client.task_ns("disabled", calls)),
    ];
    let [in_turn, passing, waiting, waits, disabled] = interleave(effort.repeats(), contenders);
    let often = at_most(SEVEN_MILLION_A_SECOND);
    let near = times_baseline(1.0 / 0.7);
    vec![
        row("C: publish and read, one thread", in_turn, None, often),
        row("C: publish and read, thread to thread", passing, None, often),
        row("C: one read an epoll_wait; the wait", waiting, Some(waits), near),
        row("C: publish without a reader", disabled, None, at_most(2.0)),
    ]
}
