//! The guard: a small process that outlives an agent that was killed, for as long as it takes to kill
//! what the agent has left running.
//!
//! Workers end with their agent by themselves; what they have started need not. The guard waits for
//! the end of a pipe whose other end only the agent holds. It touches nothing but what that agent has
//! written down.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Pid;

use super::leftovers::Record;

/// The subcommand that runs [`guard`].
pub const GUARD: &str = "worker-guard";

/// What a guard guards.
#[derive(Debug, Clone)]
pub struct Guarded {
    /// The agent's record of its workers.
    pub record: PathBuf,
    /// How the marks of this life of the agent begin.
    pub whose: String,
}

/// Waits for the agent's end, which is the end of standard input, then clears away what it left.
///
/// # Errors
/// When the record cannot be read, or something does not go away.
pub fn guard(guarded: &Guarded) -> io::Result<()> {
    let _ = io::copy(&mut io::stdin().lock().take(u64::MAX), &mut io::sink());
    Record::at(&guarded.record).clear(&guarded.whose)
}

/// The agent's side: keeps one guard running.
#[derive(Debug)]
pub(super) struct Guard {
    program: PathBuf,
    guarded: Guarded,
    running: Option<(Child, ChildStdin)>,
}

impl Guard {
    pub(super) fn start(program: PathBuf, guarded: Guarded) -> io::Result<Self> {
        let mut guard = Self { program, guarded, running: None };
        guard.start_again()?;
        Ok(guard)
    }

    /// Starts another one if it has ended, as when somebody killed it.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        let is_running = match &mut self.running {
            Some((child, _)) => child.try_wait()?.is_none(),
            None => false,
        };
        if is_running { Ok(()) } else { self.start_again() }
    }

    /// Whether this is the guard's process.
    pub(super) fn is(&self, pid: Pid) -> bool {
        self.running.as_ref().is_some_and(|(child, _)| Pid::from_child(child) == pid)
    }

    fn start_again(&mut self) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.arg(GUARD).arg("--record").arg(&self.guarded.record);
        command.arg("--whose").arg(&self.guarded.whose);
        // A Ctrl-C is for the agent alone.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        self.running = child.stdin.take().map(|pipe| (child, pipe));
        Ok(())
    }
}

impl Drop for Guard {
    /// Lets go of the guard and waits for it, so that nothing is left when the agent has ended.
    fn drop(&mut self) {
        if let Some((mut child, pipe)) = self.running.take() {
            drop(pipe);
            let _ = child.wait();
        }
    }
}
