//! One worker: how it is started, and how it is watched until nothing of it is left.
//!
//! The worker is not taken off the system's table before everything it started is gone: until then
//! its number, which is that of its session and process group, cannot be given to another.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as ChildEnds, SignalKind, signal};
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::failure::FailureWatch;
use super::holder::{self, UNFIT};
use super::leftovers::LeftoverRecord;
use super::lifetime::{Lifetime, Lifetimes};
use super::output::{self, WorkerPosition};
use super::process::{MARK, Origin, ProcessStat};
use super::warm::WARM;
use telltale_cluster::agent::Exit;
use telltale_cluster::observation::FailureDetail;

/// Bytes of the reason why a worker could not be started.
const MAX_REASON_BYTES: usize = 4096;
/// How long output may still come from a worker of which nothing is left.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// What every worker is started with.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    /// This program, which holds a worker until it is the command.
    pub(super) program: PathBuf,
    /// Where workers write themselves down.
    pub(super) record: PathBuf,
    /// The command.
    pub(super) command: Vec<OsString>,
}

/// A worker that was just started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) origin: Origin,
    /// Tells that some child has ended.
    pub(super) ends: ChildEnds,
    /// What the worker says before it is the command, and at its gate.
    pub(super) channel: UnixStream,
    /// The agent's side of its gate.
    pub(super) gate: Option<StdUnixStream>,
    pub(super) output: OwnedFd,
    pub(super) error: OwnedFd,
}

impl Recipe {
    /// Starts a worker; with a `gate` it waits there for its environment.
    pub(super) fn start(
        &self,
        mark: String,
        environment: &[(OsString, OsString)],
        gate: bool,
    ) -> io::Result<Started> {
        // From before the start, so that no end is missed.
        let ends = signal(SignalKind::child())?;
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let opener = if gate { Some(ours.try_clone()?) } else { None };
        let channel = UnixStream::from_std(ours)?;
        let mut command = Command::new(&self.program);
        command.arg(holder::HOLD).arg("--agent").arg(std::process::id().to_string());
        command.arg("--record").arg(&self.record);
        if gate {
            command.arg("--gate");
        }
        command.arg("--").args(&self.command);
        command.env(MARK, &mark).envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // Its end of the channel is open here until the command is dropped.
        drop(command);
        match adopt(&mut child, mark) {
            Ok((origin, output, error)) => {
                Ok(Started { child, origin, ends, channel, gate: opener, output, error })
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }
}

fn adopt(child: &mut Child, mark: String) -> io::Result<(Origin, OwnedFd, OwnedFd)> {
    let gone = || io::Error::other("the process has no entry in /proc");
    let leader = Pid::from_child(child);
    let started_ticks = ProcessStat::read(leader).ok_or_else(gone)?.started_ticks;
    let output = child.stdout.take().ok_or_else(gone)?;
    let error = child.stderr.take().ok_or_else(gone)?;
    Ok((Origin { leader, started_ticks, mark }, output.into(), error.into()))
}

/// A worker as the task sees it that watches it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) child: Child,
    pub(super) lifetime: Arc<Lifetime>,
    /// The agent's other workers.
    pub(super) all: Arc<Lifetimes>,
    /// Where what has escaped from workers is written down.
    pub(super) record: LeftoverRecord,
    pub(super) ends: ChildEnds,
    pub(super) channel: UnixStream,
    /// Its place in the job, once it has one.
    pub(super) name: output::Name,
    /// What tells why it failed.
    pub(super) failure: FailureWatch,
    /// The tasks that pass on its output and its errors, to the end of each.
    pub(super) followed: [JoinHandle<Vec<u8>>; 2],
    /// Says to these that it has ended.
    pub(super) ended: watch::Sender<bool>,
}

/// What becomes of a worker.
#[derive(Debug)]
pub(super) enum News {
    /// It is its command; one at a gate has imported everything.
    Begun,
    /// It could not become its command, and nothing of it is left.
    NotBegun(Failed),
    /// It has ended, and nothing of it is left. What it left, if it failed.
    Ended(Exit, Option<FailureDetail>),
}

/// Why a worker did not become its command.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) reason: String,
    /// Whether it will fail again.
    pub(super) lasts: bool,
}

impl fmt::Display for News {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begun => formatter.write_str("it runs"),
            Self::NotBegun(failed) => formatter.write_str(&failed.reason),
            Self::Ended(exit, _) => write!(formatter, "it ended with {exit}"),
        }
    }
}

impl Watched {
    /// Tells when the worker has begun, and when nothing of it is left.
    pub(super) async fn until_ended(mut self, serial: u64, sender: Sender<(u64, News)>) {
        let begun = begun(self.channel).await;
        if begun.is_ok() {
            // The receiver is gone only when the agent is about to be.
            let _ = sender.send((serial, News::Begun)).await;
        }
        let reap = || self.child.wait();
        let status = self.lifetime.ended(&mut self.ends, &self.all, &self.record, reap).await;
        let errors = output_ended(self.ended, self.followed).await;
        let place = self.name.get().copied();
        let news = match (begun, status) {
            (Err(failed), _) => News::NotBegun(failed),
            (Ok(()), Ok(status)) => {
                let exit = exit(status);
                News::Ended(exit, left(self.failure, place, exit, errors).await)
            }
            (Ok(()), Err(error)) => {
                let reason = format!("how it ended is not known: {error}");
                News::NotBegun(Failed { reason, lasts: false })
            }
        };
        let _ = sender.send((serial, news)).await;
    }
}

/// Waits until a worker is its command; the reason if that failed. A worker at a gate that has
/// imported everything is that as well.
async fn begun(mut channel: UnixStream) -> Result<(), Failed> {
    let mut said = Vec::new();
    while said.len() < MAX_REASON_BYTES && said != WARM {
        match channel.read_buf(&mut said).await {
            // The descriptor closes by itself when the command is executed.
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    if said.is_empty() || said == WARM {
        return Ok(());
    }
    let unfit = said.strip_prefix(UNFIT);
    let reason = String::from_utf8_lossy(unfit.unwrap_or(&said)).into_owned();
    Err(Failed { reason, lasts: unfit.is_some() })
}

/// Waits for the rest of the output, for a while: its reader may stand still, and it comes then. Returns the end of what
/// was written to standard error, as far as it has come.
async fn output_ended(ended: watch::Sender<bool>, followed: [JoinHandle<Vec<u8>>; 2]) -> Vec<u8> {
    ended.send_replace(true);
    let mut errors = Vec::new();
    for one in followed {
        if let Ok(tail) = timeout(OUTPUT_TIMEOUT, one).await {
            errors = tail.unwrap_or_default();
        }
    }
    errors
}

/// What a worker that failed left; nothing of it where its disk does not answer soon.
async fn left(
    failure: FailureWatch,
    place: Option<WorkerPosition>,
    exit: Exit,
    errors: Vec<u8>,
) -> Option<FailureDetail> {
    let place = place.filter(|_| exit != Exit::Code(0))?;
    let reading = tokio::task::spawn_blocking(move || failure.detail(place, exit, &errors));
    timeout(OUTPUT_TIMEOUT, reading).await.ok()?.ok()
}

/// How a process ended.
fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        // Neither is only so for one that was stopped or continued, which is not waited for.
        (None, None) => unreachable!("a process that was waited for ended by a code or a signal"),
    }
}
