//! Ctrl-C and SIGTERM as something to wait for. A second one ends the process at once.

use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::SigId;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;

/// Returns whether the user asked the command to end.
pub(crate) struct Interrupt {
    wake_up: UnixStream,
    asked: Arc<AtomicBool>,
    /// What makes a second signal end the process.
    at_once: Vec<SigId>,
}

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP.
    pub(crate) fn listen() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let (wake_up, ringer) = UnixStream::pair()?;
        wake_up.set_nonblocking(true)?;
        let mut at_once = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the first handler acts on the flag that an earlier signal has set.
            at_once.push(register_conditional_default(signal, Arc::clone(&asked))?);
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
            signal_hook::low_level::pipe::register(signal, ringer.try_clone()?)?;
        }
        Ok(Self { wake_up, asked, at_once })
    }

    /// From now on signals change nothing: for a clean-up that takes little time and would leave
    /// something behind if it were cut short.
    pub(crate) fn finish_undisturbed(&mut self) {
        for action in self.at_once.drain(..) {
            signal_hook::low_level::unregister(action);
        }
    }

    /// What becomes true when the command should end.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// Whether the command should end.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until `other` is readable, asked to end, or for `most`; true when asked.
    pub(crate) fn wait_for(&self, other: BorrowedFd<'_>, most: Option<Duration>) -> bool {
        if !self.asked() {
            let timeout = most.and_then(|most| Timespec::try_from(most).ok());
            let mut descriptors = [
                PollFd::new(&self.wake_up, PollFlags::IN),
                PollFd::from_borrowed_fd(other, PollFlags::IN),
            ];
            // EINTR and everything else: the caller checks again.
            let _ = rustix::event::poll(&mut descriptors, timeout.as_ref());
        }
        self.asked()
    }

    /// Sleeps for `span` or until asked to end; true when asked.
    pub(crate) fn sleep(&self, span: Duration) -> bool {
        let until = Instant::now() + span;
        while !self.asked() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let timeout = Timespec::try_from(left).ok();
            let mut descriptors = [PollFd::new(&self.wake_up, PollFlags::IN)];
            // EINTR and everything else: check again, the deadline bounds the loop.
            let _ = rustix::event::poll(&mut descriptors, timeout.as_ref());
            let _ = (&self.wake_up).read(&mut [0; 16]);
        }
        true
    }
}
