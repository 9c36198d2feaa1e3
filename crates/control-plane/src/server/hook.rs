//! The command that runs before nodes are drained: one process group with a time limit.
//!
//! It runs on the coordinator's host as the coordinator's user. It comes from the configuration alone, never from a
//! caller, and no shell reads it. What it says of itself is logged and recorded, and decides nothing.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use telltale_cluster::incident::HookOutcome;
use telltale_cluster::observation::WorkerEnd;
use telltale_schema::text::printable;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

/// Bytes of the last line that are kept.
const MAX_LINE_BYTES: usize = 256;
/// Bytes of one line that are read; the rest is a line of its own.
const MAX_READ_BYTES: u64 = 4096;
/// How long output is read on after the process has ended: what it left may hold the pipe open.
const OUTPUT_TIME: Duration = Duration::from_millis(200);

/// A command with its arguments and what it finds in its environment.
#[derive(Debug)]
pub(super) struct HookCommand {
    pub(super) words: Vec<String>,
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) limit: Duration,
}

/// The command that was started last.
#[derive(Debug, Default)]
pub(super) struct Hook(Option<JoinHandle<HookOutcome>>);

impl Hook {
    /// Starts a command; one that still runs is ended.
    pub(super) fn start(&mut self, command: HookCommand) {
        self.end();
        self.0 = Some(tokio::spawn(run(command)));
    }

    /// Ends the command if it runs.
    pub(super) fn end(&mut self) {
        if let Some(running) = self.0.take() {
            running.abort();
        }
    }

    /// How the command has ended; waits for ever where none runs.
    pub(super) async fn ended(&mut self) -> HookOutcome {
        let Some(running) = &mut self.0 else { return std::future::pending().await };
        let outcome = running.await;
        self.0 = None;
        outcome.unwrap_or_else(|error| HookOutcome {
            end: Some(WorkerEnd::NotStarted),
            last_line: line(&error.to_string()),
            took: Duration::ZERO,
        })
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process with all of its group, which ends with this.
struct Group(Child);

impl Group {
    fn start(command: &HookCommand) -> io::Result<Self> {
        let mut words = command.words.iter();
        let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
        let mut process = Command::new(program);
        process.args(words).envs(command.environment.iter().map(|(name, value)| (name, value)));
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        process.process_group(0).kill_on_drop(true).spawn().map(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once it was waited for, its number may be another's.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = id {
            // It may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn run(command: HookCommand) -> HookOutcome {
    let started = Instant::now();
    let (end, last_line) = match Group::start(&command) {
        Ok(group) => watch_over(group, started + command.limit).await,
        Err(error) => (Some(WorkerEnd::NotStarted), line(&error.to_string())),
    };
    HookOutcome { end, last_line, took: started.elapsed() }
}

/// How the process ends by itself until the deadline, and what it printed last.
async fn watch_over(mut group: Group, deadline: Instant) -> (Option<WorkerEnd>, String) {
    let (last, printed) = watch::channel(String::new());
    let mut readers = JoinSet::new();
    readers.spawn(lines(group.0.stdout.take(), last.clone()));
    readers.spawn(lines(group.0.stderr.take(), last));
    let end = match tokio::time::timeout_at(deadline, group.0.wait()).await {
        Ok(Ok(status)) => Some(worker_end(status)),
        Ok(Err(_)) | Err(_) => None,
    };
    if end.is_some() {
        // All that it has printed is in the pipe.
        let all = async { while readers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(OUTPUT_TIME, all).await;
    }
    let last_line = printed.borrow().clone();
    (end, last_line)
}

/// Keeps the last line that is not empty.
async fn lines(from: Option<impl AsyncRead + Unpin>, last: watch::Sender<String>) {
    let Some(from) = from else { return };
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match (&mut from).take(MAX_READ_BYTES).read_until(b'\n', &mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = line(&String::from_utf8_lossy(&bytes));
                if !text.is_empty() {
                    last.send_replace(text);
                }
            }
        }
    }
}

fn line(text: &str) -> String {
    let text = printable(text.trim());
    text[..text.floor_char_boundary(MAX_LINE_BYTES)].to_owned()
}

fn worker_end(status: ExitStatus) -> WorkerEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => WorkerEnd::Code(code),
        (None, Some(signal)) => WorkerEnd::Signal(signal),
        (None, None) => WorkerEnd::NotStarted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(script: &str, limit: Duration) -> HookOutcome {
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        run_now(HookCommand { words, environment: vec![("WHO", "b".to_owned())], limit })
    }

    fn run_now(command: HookCommand) -> HookOutcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut hook = Hook::default();
            hook.start(command);
            hook.ended().await
        })
    }

    const LONG: Duration = Duration::from_secs(240);

    #[test]
    fn its_end_and_its_last_line_are_known() {
        let cases = [
            ("echo saving; echo saved $WHO; echo", WorkerEnd::Code(0), "saved b"),
            ("printf 'no \\033[31mroom' >&2; exit 3", WorkerEnd::Code(3), "no ?[31mroom"),
            ("kill -KILL $$", WorkerEnd::Signal(9), ""),
        ];
        for (script, end, last_line) in cases {
            let found = outcome(script, LONG);
            assert_eq!((found.end, &*found.last_line), (Some(end), last_line), "{script}");
        }
        let words = vec![String::from("/nowhere/save")];
        let found = run_now(HookCommand { words, environment: Vec::new(), limit: LONG });
        assert_eq!(found.end, Some(WorkerEnd::NotStarted));
        assert!(found.last_line.contains("No such file"), "{found:?}");
    }

    #[test]
    fn a_line_without_an_end_and_endless_output_are_bounded() {
        let found = outcome("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end", LONG);
        assert_eq!(&*found.last_line, "end");
        let found = outcome("yes", Duration::from_millis(300));
        assert_eq!((found.end, &*found.last_line), (None, "y"));
    }

    #[test]
    fn what_does_not_end_is_ended_with_its_children_when_its_time_is_over() {
        let scratch = telltale_harness::Scratch::new();
        let pid = scratch.join("pid");
        let script = format!("sleep 1000 & echo $! > {}; echo waits; wait", pid.display());
        let found = outcome(&script, Duration::from_secs(2));
        assert_eq!((found.end, &*found.last_line), (None, "waits"));
        let child = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        let child = Pid::from_raw(child).unwrap();
        telltale_harness::wait_until("the child to be ended", LONG, || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero()));
            state.map_or(true, |state| state.rsplit(") ").next().unwrap_or("").starts_with('Z'))
        });
    }

    #[test]
    fn what_it_leaves_behind_with_its_output_open_is_not_waited_for() {
        let found = outcome("sleep 30 & echo done", LONG);
        assert_eq!((found.end, &*found.last_line), (Some(WorkerEnd::Code(0)), "done"));
    }
}
