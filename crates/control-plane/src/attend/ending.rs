//! How an agent ends: by the end of its job, or because signals ask it to.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use telltale_cluster::message::JobOutcome;

/// A second `SIGINT` that comes sooner is taken for the first: a program between the terminal and the agent may pass
/// on what both have received.
const SAME_INTERRUPT: Duration = Duration::from_millis(200);
/// A `SIGTERM` that comes sooner after the first signal belongs to it.
const SAME_REQUEST: Duration = Duration::from_secs(1);
/// Signals that may wait to be taken.
const MAX_WAITING_SIGNALS: usize = 16;

/// Why an agent has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEnding {
    /// The job is over.
    Over(JobOutcome),
    /// The command cannot be executed on this node, for this reason.
    CannotRun(String),
    /// A signal asked it to end: its workers were asked to as well.
    Asked,
    /// A second signal asked for an end at once: its workers were killed.
    AtOnce,
}

impl AgentEnding {
    /// Whether nothing failed: a signal asked the agent to end, or there is nothing to do any more.
    #[must_use]
    pub const fn is_planned(&self) -> bool {
        !matches!(self, Self::CannotRun(_))
    }
}

/// `SIGINT`, `SIGTERM` and `SIGHUP`, which no longer end the process by themselves.
#[derive(Debug)]
pub struct Signals {
    received: mpsc::Receiver<(Request, Instant)>,
    sender: mpsc::Sender<(Request, Instant)>,
    so_far: Requests,
}

/// Asks an agent to end, as a `SIGTERM` does, from another thread.
#[derive(Debug, Clone)]
pub struct Stop(mpsc::Sender<(Request, Instant)>);

/// Why signals cannot be waited for.
#[derive(Debug, Error)]
#[error("setting up the handling of signals failed")]
pub struct SignalsError(#[from] io::Error);

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Interrupt,
    Terminate,
    HangUp,
}

/// The signals that have come.
#[derive(Debug, Default)]
struct Requests {
    first: Option<(Request, Instant)>,
    first_interrupt: Option<Instant>,
}

// === impl Signals ===

impl Signals {
    /// Takes the signals over, but for a `SIGHUP` that is ignored, as under nohup. To be called within an event loop.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> Result<Self, SignalsError> {
        let (sender, received) = mpsc::channel(MAX_WAITING_SIGNALS);
        let kinds = [
            (Request::Interrupt, SignalKind::interrupt()),
            (Request::Terminate, SignalKind::terminate()),
            (Request::HangUp, SignalKind::hangup()),
        ];
        for (request, kind) in kinds {
            if request == Request::HangUp && is_hang_up_ignored() {
                continue;
            }
            let (mut signals, sender) = (signal(kind)?, sender.clone());
            tokio::spawn(async move {
                // The agent no longer waits for signals when it ends.
                while signals.recv().await.is_some()
                    && sender.send((request, Instant::now())).await.is_ok()
                {}
            });
        }
        Ok(Self { received, sender, so_far: Requests::default() })
    }

    /// What asks for the end beside signals.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop(self.sender.clone())
    }

    /// The signal that came first, of those that were waited for.
    #[must_use]
    pub fn first(&self) -> Option<Signal> {
        self.so_far.first.map(|(request, _)| match request {
            Request::Interrupt => Signal::INT,
            Request::Terminate => Signal::TERM,
            Request::HangUp => Signal::HUP,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        self.take().await;
    }

    /// Waits for one that asks for an end at once: a second `SIGINT`, or a `SIGTERM` some time after the first signal.
    /// `SIGHUP` never does, since shell and kernel both send it when a terminal is closed.
    pub async fn at_once(&mut self) {
        while !self.take().await {}
    }

    async fn take(&mut self) -> bool {
        match self.received.recv().await {
            Some((request, at)) => self.so_far.take(request, at),
            // The event loop ends.
            None => std::future::pending().await,
        }
    }
}

// === impl Stop ===

impl Stop {
    /// Asks for the end. Nothing happens where it was asked for often enough.
    pub fn ask(&self) {
        let _ = self.0.try_send((Request::Terminate, Instant::now()));
    }
}

// === impl Requests ===

impl Requests {
    /// Takes note of a signal, and says whether it asks for an end at once.
    fn take(&mut self, request: Request, at: Instant) -> bool {
        let (_, first) = *self.first.get_or_insert((request, at));
        match request {
            Request::Interrupt => {
                let first_interrupt = *self.first_interrupt.get_or_insert(at);
                at.duration_since(first_interrupt) >= SAME_INTERRUPT
            }
            Request::Terminate => at.duration_since(first) >= SAME_REQUEST,
            Request::HangUp => false,
        }
    }
}

/// Whether this process was started with `SIGHUP` ignored, as by nohup (proc(5), `SigIgn`).
#[must_use]
pub fn is_hang_up_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let hang_up = 1 << (SignalKind::hangup().as_raw_value() - 1);
    mask.is_some_and(|mask| mask & hang_up != 0)
}

#[cfg(test)]
mod tests {
    use super::Request::{HangUp, Interrupt, Terminate};
    use super::*;

    #[test]
    fn only_a_second_signal_that_is_meant_so_asks_for_an_end_at_once() {
        let cases: [(&[(u64, Request)], bool); 10] = [
            (&[(0, Interrupt)], false),
            (&[(0, Terminate)], false),
            (&[(0, HangUp), (1, HangUp), (5000, HangUp)], false),
            (&[(0, HangUp), (999, Terminate)], false),
            (&[(0, HangUp), (1000, Terminate)], true),
            (&[(0, Terminate), (1, Terminate), (999, Terminate)], false),
            (&[(0, Terminate), (1000, Terminate)], true),
            (&[(0, Interrupt), (199, Interrupt)], false),
            (&[(0, Interrupt), (200, Interrupt)], true),
            (&[(0, Terminate), (5000, Interrupt), (5100, HangUp)], false),
        ];
        let start = Instant::now();
        for (signals, expected) in cases {
            let mut so_far = Requests::default();
            let taken = signals
                .iter()
                .map(|(at, request)| so_far.take(*request, start + Duration::from_millis(*at)));
            assert_eq!(taken.last(), Some(expected), "{signals:?}");
        }
    }
}
