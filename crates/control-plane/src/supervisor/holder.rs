//! What a worker is before it becomes the command that it is to run.
//!
//! The agent starts itself again, and that process ties itself to the agent, writes itself down, and
//! then executes the command in its own place: same process, same number, no code in between. It must
//! not do anything else, and it never comes back unless the command cannot be executed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{
    PTracer, Pid, Signal, getpid, getppid, set_parent_process_death_signal, set_ptracer, setsid,
};
use telltale_schema::text::with_causes;
use thiserror::Error;

use super::command::is_lasting;
use super::leftovers::LeftoverRecord;
use super::process::{MARK, Origin, ProcessStat};
use super::warm::GATE;

/// The subcommand that runs [`hold`].
pub const HOLD: &str = "worker-hold";

/// What the agent reports before the reason if the command cannot be executed the next time either.
pub(super) const UNFIT: &[u8] = b"unfit\n";

/// The first descriptor that is not standard input, output or error.
const FIRST_FREE_DESCRIPTOR: i32 = 3;

/// What a worker needs to know before it executes its command.
#[derive(Debug, Clone)]
pub struct Hold {
    /// The agent's process: the worker ends when it does.
    pub agent: u32,
    /// Where the worker writes itself down.
    pub record: PathBuf,
    /// Whether the command is a Python that is to wait for its environment.
    pub gate: bool,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

/// Why a worker did not become its command.
#[derive(Debug, Error)]
pub enum HoldError {
    /// It was not started by an agent.
    #[error("this is for a process that `telltale agent` starts; run that instead")]
    NotFromAgent,
    /// There is no command.
    #[error("there is no command to run; name one behind `--`")]
    NoCommand,
    /// The agent ended meanwhile.
    #[error("the agent has ended, so its worker does too")]
    Orphan,
    /// The process could not be separated from the agent's terminal and group, or tied to the agent.
    #[error("setting up the worker's process failed at {step}")]
    SetUp {
        /// What failed.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The worker could not be written down.
    #[error("writing the worker down in {path} failed; make room there, or give another --state")]
    Record {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The command could not be executed.
    #[error("{command:?} cannot be run; give a program that this user may execute")]
    Execute {
        /// The command's program.
        command: OsString,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Becomes the command. Comes back only with the reason why that failed, which the agent has been
/// reported too.
#[must_use]
pub fn hold(hold: &Hold) -> HoldError {
    let channel = match take_channel() {
        Ok(channel) => channel,
        Err(error) => return error,
    };
    let error = become_command(hold, &channel);
    let text = with_causes(&error);
    let lasts = matches!(&error, HoldError::Execute { source, .. } if is_lasting(source));
    let reported = [if lasts { UNFIT } else { b"" }, text.as_bytes()].concat();
    // Without the agent there is no receiver.
    let _ = File::from(channel).write_all(&reported);
    error
}

/// The agent's end of the worker: it is handed over as standard input, in whose place comes an empty
/// one.
fn take_channel() -> Result<OwnedFd, HoldError> {
    let failed = |step| move |source: io::Error| HoldError::SetUp { step, source };
    let channel = fcntl_dupfd_cloexec(io::stdin(), FIRST_FREE_DESCRIPTOR)
        .map_err(|error| failed("its channel to the agent")(error.into()))?;
    let nothing = File::open("/dev/null").map_err(failed("an empty standard input"))?;
    rustix::stdio::dup2_stdin(&nothing)
        .map_err(|error| failed("an empty standard input")(error.into()))?;
    Ok(channel)
}

fn become_command(hold: &Hold, channel: &OwnedFd) -> HoldError {
    let failed = |step, source: rustix::io::Errno| HoldError::SetUp { step, source: source.into() };
    let Some(mark) = std::env::var(MARK).ok() else { return HoldError::NotFromAgent };
    let Some((program, arguments)) = hold.command.split_first() else {
        return HoldError::NoCommand;
    };
    if let Err(error) = setsid() {
        return failed("a session of its own", error);
    }
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return failed("its tie to the agent", error);
    }
    // The agent may have ended before the tie was made.
    let is_agent = |parent: &Pid| u32::try_from(parent.as_raw_nonzero().get()) == Ok(hold.agent);
    let Some(parent) = getppid().filter(is_agent) else { return HoldError::Orphan };
    // Under Yama only ancestors may look into it: the agent's own processes must be able to, when it hangs. Without
    // Yama the kernel does not know the call.
    let _ = set_ptracer(PTracer::ProcessID(parent));
    if let Err(source) = write_down(hold, mark) {
        return HoldError::Record { path: hold.record.clone(), source };
    }
    let mut command = Command::new(program);
    command.args(arguments);
    if hold.gate {
        if let Err(error) = fcntl_setfd(channel, FdFlags::empty()) {
            return failed("the gate", error);
        }
        command.env(GATE, channel.as_raw_fd().to_string());
    }
    HoldError::Execute { source: command.exec(), command: program.clone() }
}

fn write_down(hold: &Hold, mark: String) -> io::Result<()> {
    let me =
        ProcessStat::read(getpid()).ok_or_else(|| io::Error::other("/proc has no such process"))?;
    let origin = Origin { leader: me.pid, started_ticks: me.started_ticks, mark };
    LeftoverRecord::at(&hold.record).add(&origin)
}
