//! Child processes that do not outlive their test.
//!
//! Signals go only to a child that has not been reaped, so its process id cannot have been reused.

use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::wait_until;

/// A child process, killed with SIGKILL and reaped on drop if it still runs.
#[derive(Debug)]
pub struct ChildGuard {
    child: Child,
}

impl ChildGuard {
    /// Takes over a child that was already started.
    #[must_use]
    pub fn new(child: Child) -> Self {
        Self { child }
    }

    /// Starts `command`.
    ///
    /// # Panics
    /// When the program cannot be started.
    #[must_use]
    pub fn spawn(command: &mut Command) -> Self {
        match command.spawn() {
            Ok(child) => Self { child },
            Err(error) => panic!("cannot start {:?}: {error}", command.get_program()),
        }
    }

    /// The child's process id, as this process's PID namespace numbers it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether the child has not ended yet.
    ///
    /// # Panics
    /// When the child's status cannot be asked for.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child of this process can be waited for").is_none()
    }

    /// Sends SIGKILL and waits; harmless when the child has ended already.
    ///
    /// # Panics
    /// When the child cannot be signalled or waited for.
    pub fn kill(&mut self) -> ExitStatus {
        self.child.kill().expect("a child of this process can be killed");
        self.child.wait().expect("a child of this process can be waited for")
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&mut self) {
        self.signal(Signal::INT);
    }

    /// Sends SIGTERM, as service managers do.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGSTOP, and waits until every thread stands still: until [`Self::resume`] the child
    /// answers no client.
    ///
    /// # Panics
    /// When the child cannot be waited for.
    pub fn pause(&mut self) {
        self.signal(Signal::STOP);
        if !self.is_running() {
            return;
        }
        let stopped_or_ended =
            WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), stopped_or_ended)
            .expect("a child of this process can be waited for");
    }

    /// Sends SIGCONT.
    pub fn resume(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Waits for the child to end by itself.
    ///
    /// # Panics
    /// Naming `what`, when the child still runs after `within`.
    #[track_caller]
    pub fn wait_within(&mut self, what: &str, within: Duration) -> ExitStatus {
        let mut status = None;
        wait_until(what, within, || {
            status = self.child.try_wait().expect("a child of this process can be waited for");
            status.is_some()
        });
        status.expect("wait_until returns only once the status is there")
    }

    fn signal(&mut self, signal: Signal) {
        if self.is_running() {
            kill_process(Pid::from_child(&self.child), signal)
                .expect("a child that was not reaped can be signalled");
        }
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Errors mean that the child is gone; a panic here would hide the test's own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Ends by SIGINT also where a shell that runs the tests in the background has it ignored.
    fn sleeper() -> ChildGuard {
        let mut command = Command::new("env");
        ChildGuard::spawn(command.args(["--default-signal=INT", "sleep", "600"]))
    }

    #[test]
    fn a_dropped_child_is_dead_and_reaped() {
        let child = sleeper();
        let entry = PathBuf::from(format!("/proc/{}", child.id()));
        assert!(entry.exists());
        drop(child);
        assert!(!entry.exists());
    }

    #[test]
    fn signals_reach_the_child() {
        let mut interrupted = sleeper();
        // Before it is that, SIGINT may still be ignored.
        let name = format!("/proc/{}/comm", interrupted.id());
        wait_until("it to be sleep", TIMEOUT, || {
            std::fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")
        });
        interrupted.interrupt();
        assert_eq!(interrupted.wait_within("SIGINT to end sleep", TIMEOUT).signal(), Some(2));
        let mut terminated = sleeper();
        assert!(terminated.is_running());
        terminated.terminate();
        assert_eq!(terminated.wait_within("SIGTERM to end sleep", TIMEOUT).signal(), Some(15));
        assert!(!terminated.is_running());
        terminated.interrupt();
        assert_eq!(terminated.kill().signal(), Some(15), "killing a dead child changes nothing");
    }
}
