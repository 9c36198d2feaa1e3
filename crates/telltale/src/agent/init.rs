//! A minimal init: a process above the agent that passes signals on, takes dead orphans off the system's table, and
//! ends as the agent does. It decides nothing and starts nothing else.
//!
//! Orphans below the agent are taken for its workers'. So the agent must not be process 1 of a container, to which
//! those of `kubectl exec` fall, nor a process with children from before it was an agent, as after a shell's `exec`.
//! There it runs as a child of this one.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process, wait, waitid,
};
use signal_hook::consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Failure, Status};

/// The hidden option that ties the agent to this process.
const END_WITH_PARENT: &str = "--end-with-parent";
/// What is behind this belongs to the workers' command.
const COMMAND: &str = "--";
/// What a shell adds to the number of a signal that ended a process.
const ENDED_BY: u8 = 128;

/// Whether the agent must be a child of this process.
pub(crate) fn is_needed() -> bool {
    getpid() == Pid::INIT || has_children()
}

fn has_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

/// Runs the agent as a child with the arguments of this process, until it ends; how it has ended.
pub(crate) fn run() -> Result<WaitStatus, Failure> {
    let failed = |step: &'static str| {
        move |error: io::Error| Failure::Message(format!("{step} failed: {error}; try again"))
    };
    let mut signals = vec![SIGCHLD, SIGINT, SIGQUIT, SIGTERM];
    if !telltale_control_plane::attend::is_hang_up_ignored() {
        signals.push(SIGHUP);
    }
    // From before the start, so that no end is missed.
    let mut signals =
        Signals::new(signals).map_err(failed("setting up the handling of signals"))?;
    let child = start().map_err(failed("starting the agent as a child process"))?;
    let agent = Pid::from_child(&child);
    for signal in signals.forever() {
        if signal == SIGCHLD {
            if let Some(status) = reap(agent) {
                return Ok(status);
            }
        } else if let Some(signal) = Signal::from_named_raw(signal) {
            // It was not reaped yet, so the number is its own.
            let _ = kill_process(agent, signal);
        }
    }
    unreachable!("signals are waited for without end")
}

/// Starts the agent. Ctrl-C and what else a terminal sends reaches it through this process alone, once.
fn start() -> io::Result<Child> {
    let mut own = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(called) = own.next() {
        command.arg0(called);
    }
    command.args(arguments(own, getpid())).process_group(0).spawn()
}

/// The arguments of this process, with which the child is tied to it in the place of another.
fn arguments(own: impl IntoIterator<Item = OsString>, parent: Pid) -> Vec<OsString> {
    let mut own = own.into_iter();
    let tie = [END_WITH_PARENT.into(), parent.to_string().into()];
    let mut arguments: Vec<OsString> = own.by_ref().take(1).chain(tie).collect();
    while let Some(argument) = own.next() {
        if argument == COMMAND {
            arguments.push(argument);
            break;
        }
        let text = argument.to_string_lossy();
        if text == END_WITH_PARENT {
            own.next();
        } else if !text.starts_with(&format!("{END_WITH_PARENT}=")) {
            arguments.push(argument);
        }
    }
    arguments.extend(own);
    arguments
}

/// Takes all dead children off the system's table; how the agent has ended, if it is among them.
fn reap(agent: Pid) -> Option<WaitStatus> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == agent => return Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// The same end for this process. What there is to say of it, the agent has said, unless a signal ended it.
pub(super) fn as_agent(status: WaitStatus) -> Result<Status, Failure> {
    match as_job(status)? {
        Status::OfJob(0) => Ok(Status::Fine),
        Status::OfJob(code) if code > 2 => Err(Failure::Command {
            status: code,
            text: format!("the agent ended with exit status {code}"),
        }),
        other => Ok(other),
    }
}

/// The same end for a process whose exit status is that of a job.
pub(crate) fn as_job(status: WaitStatus) -> Result<Status, Failure> {
    let number = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ok(Status::OfJob(number(code))),
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            Err(Failure::Command {
                status: ENDED_BY.saturating_add(number(signal)),
                text: format!("the agent was ended by signal {signal}"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_tied_to_this_process_and_has_its_arguments() {
        let check = |own: &str, expected: &str| {
            let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(arguments(words(own), Pid::INIT), words(expected), "{own}");
        };
        let tied = "agent --end-with-parent 1";
        check("agent --node a -- x", &format!("{tied} --node a -- x"));
        check("agent --end-with-parent 7 --stay -- x", &format!("{tied} --stay -- x"));
        check("agent --end-with-parent=7 -- x -- y", &format!("{tied} -- x -- y"));
        let of_the_command = "-- telltale agent --end-with-parent 7";
        check(&format!("agent {of_the_command}"), &format!("{tied} {of_the_command}"));
    }
}
