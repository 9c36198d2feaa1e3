//! The rest before workers are started again that keep ending at once: an argument that is wrong or a
//! file that is missing is not mended by the next start, and must not use up a job's restarts before
//! anybody has looked.
//!
//! Only what ended by itself, with an exit code, and never reported a collective counts. It does not end:
//! how often a job is restarted is for the budgets to say.

use std::time::Duration;

use super::Exit;
use crate::observation::Observation;
use crate::time::Moment;

/// Workers that end this soon after their start have not come to train.
const SOON: Duration = Duration::from_secs(10);
/// The rest after the second epoch in a row that ended so; each further one's is twice as long.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest: with the time that workers may take to stop, it is within the time that a coordinator
/// gives a node to prepare.
const LONGEST_REST: Duration = Duration::from_secs(16);

/// Why nothing is started yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// Epochs in a row in which a worker of this node ended soon.
    pub epochs: u32,
    /// How long the rest is.
    pub time: Duration,
}

/// What is known of epochs that ended soon.
#[derive(Debug, Default)]
pub(super) struct Resting {
    /// How many in a row.
    epochs: u32,
    /// Whether a worker of the present epoch ended soon.
    ended_soon: bool,
    /// Whether one has reported a collective.
    has_trained: bool,
    until: Option<Moment>,
}

impl Resting {
    /// Workers are started.
    pub(super) const fn begin(&mut self) {
        self.ended_soon = false;
        self.has_trained = false;
    }

    /// Workers have reported this.
    pub(super) const fn observe(&mut self, observation: &Observation) {
        self.has_trained |= !observation.progress.is_empty();
    }

    /// A worker has ended by itself, so long after the start.
    pub(super) fn worker_ended(&mut self, lived: Duration, exit: Exit) {
        self.ended_soon |= lived < SOON && matches!(exit, Exit::Code(code) if code != 0);
    }

    /// The epoch is over after this time.
    pub(super) fn epoch_ended(&mut self, now: Moment, lasted: Duration) {
        if self.ended_soon && !self.has_trained {
            self.epochs = self.epochs.saturating_add(1);
            self.until = self.rest().map(|rest| now.after(rest.time));
        } else if self.has_trained || lasted >= SOON {
            self.epochs = 0;
        }
        self.begin();
    }

    /// The rest that these epochs have earned.
    fn rest(&self) -> Option<Rest> {
        let doublings = self.epochs.checked_sub(2)?;
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let time = FIRST_REST.saturating_mul(factor).min(LONGEST_REST);
        Some(Rest { epochs: self.epochs, time })
    }

    /// The rest that has begun and was not seen to end.
    pub(super) fn present(&self) -> Option<Rest> {
        self.until.and_then(|_| self.rest())
    }

    /// When it ends.
    pub(super) const fn until(&self) -> Option<Moment> {
        self.until
    }

    /// Whether it ends now; to be asked as time passes.
    pub(super) fn ends(&mut self, now: Moment) -> bool {
        self.until.take_if(|until| *until <= now).is_some()
    }
}
