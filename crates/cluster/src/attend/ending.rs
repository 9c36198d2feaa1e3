//! How an agent ends: by the end of its job, or because it is told to.

use std::io;

use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::message::Outcome;

/// Why an agent has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The job is over.
    Over(Outcome),
    /// The command cannot be executed on this node, for this reason.
    CannotRun(String),
    /// A signal asked it to end: its workers were asked to as well.
    Asked,
    /// A second signal followed: its workers were killed.
    AtOnce,
}

impl Ending {
    /// Whether nothing failed: somebody asked the agent to end, or there is nothing to do any more.
    #[must_use]
    pub const fn is_planned(&self) -> bool {
        !matches!(self, Self::CannotRun(_))
    }
}

/// `SIGINT`, `SIGTERM` and `SIGHUP`, which no longer end the process by themselves.
#[derive(Debug)]
pub struct Signals([Signal; 3]);

/// Why signals cannot be waited for.
#[derive(Debug, Error)]
#[error("setting up the handling of signals failed")]
pub struct SignalsError(#[from] io::Error);

impl Signals {
    /// Takes the signals over. To be called within an event loop.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> Result<Self, SignalsError> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hang_up] = kinds.map(signal);
        Ok(Self([interrupt?, terminate?, hang_up?]))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
}
