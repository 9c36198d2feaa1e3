//! A process of the demo: started so that it ends with the demo, ended with whatever it started.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use telltale_schema::process::ProcessStat;

use crate::exit::Failure;

/// How long a process may take to end when asked to, before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The most of what a process complained that is read, and the lines that are shown of it.
const MOST_COMPLAINT_BYTES: u64 = 64 << 10;
const MOST_COMPLAINTS: usize = 3;

/// A process of this program.
pub(super) struct DemoProcess {
    /// What it is to a person.
    name: String,
    child: Child,
    complaints: PathBuf,
}

/// How one is started.
pub(super) struct Recipe<'a> {
    pub(super) name: &'a str,
    /// What it writes on standard error goes into a file here, and what it keeps for a moment.
    pub(super) directory: &'a Path,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(&'static str, OsString)>,
}

// === impl DemoProcess ===

impl DemoProcess {
    /// Starts one. Its standard output is a pipe.
    pub(super) fn start(recipe: Recipe<'_>) -> Result<(Self, ChildStdout), Failure> {
        let name = recipe.name;
        let failed = |error: io::Error| {
            Failure::Message(format!("starting {name} for the demo failed: {error}"))
        };
        let complaints = recipe.directory.join("errors");
        let file = File::create(&complaints).map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg0("telltale").args(recipe.arguments).env("TMPDIR", recipe.directory);
        for variable in FOREIGN {
            command.env_remove(variable);
        }
        command.envs(recipe.environment);
        // A group of its own: Ctrl-C does not reach it there, so that it is the demo that ends it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take().expect("it was asked for");
        Ok((Self { name: name.to_owned(), child, complaints }, output))
    }

    /// How it ended, if it has.
    pub(super) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Says that it ended unexpectedly.
    pub(super) fn ended_early(&self, status: ExitStatus) -> Failure {
        Failure::Message(format!("{} of the demo ended early ({status})", self.name))
    }

    /// The last lines that it wrote on standard error, each after its name, to follow a sentence.
    pub(super) fn complaints(&self) -> String {
        let mut text = String::new();
        if let Ok(file) = File::open(&self.complaints) {
            let _ = file.take(MOST_COMPLAINT_BYTES).read_to_string(&mut text);
        }
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(MOST_COMPLAINTS)..];
        last.iter().map(|line| format!("\n{}: {line}", self.name)).collect()
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&mut self) {
        // One that was reaped has a pid that may be another's by now.
        if self.has_ended().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    /// Waits for its end, which it was asked for at `asked`; kills it, with all that it started, when
    /// that takes too long.
    pub(super) fn wait_for_end(&mut self, asked: Instant) {
        while self.has_ended().is_none() {
            if asked.elapsed() > END_TIMEOUT {
                self.kill();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills it, and whatever it started that still runs, as if their machine had lost its power.
    /// Gives how many processes that were.
    pub(super) fn kill(&mut self) -> usize {
        if self.has_ended().is_some() {
            return 0;
        }
        let agent = Pid::from_child(&self.child);
        // Held by descriptors: their numbers may be others' as soon as they have ended.
        let started: Vec<_> = descendants(agent)
            .into_iter()
            .filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok().map(|held| (pid, held)))
            .collect();
        let still: Vec<Pid> = descendants(agent);
        let killed = kill_process(agent, Signal::KILL);
        let mut count = usize::from(killed.is_ok());
        for (pid, held) in started {
            let is_still = still.contains(&pid);
            count += usize::from(is_still && pidfd_send_signal(&held, Signal::KILL).is_ok());
        }
        let _ = self.child.wait();
        count
    }
}

impl Drop for DemoProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Variables that are for other workloads than those of a demo.
const FOREIGN: [&str; 7] = [
    "TELLTALE_ROOT",
    "TELLTALE_RUNTIME_DIR",
    "TELLTALE_DISABLED",
    "TELLTALE_PROGRAM_CACHE",
    "TELLTALE_END_WITH_PARENT",
    telltale_runtime::debug_output::DIRECTORY_VARIABLE,
    telltale_debug_stream::FILTER_VARIABLE,
];

/// All that a process has started, and what that has started, as far as it still runs.
fn descendants(ancestor: Pid) -> Vec<Pid> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i32)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = vec![ancestor.as_raw_nonzero().get()];
    let mut place = 0;
    while let Some(parent) = found.get(place).copied() {
        let children = parents.iter().filter(|(pid, of)| *of == parent && !found.contains(pid));
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        place += 1;
    }
    found[1..].iter().filter_map(|pid| Pid::from_raw(*pid)).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    ProcessStat::parse(&stat).map(|stat| stat.parent)
}
