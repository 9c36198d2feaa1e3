//! The coordinator's clock: moments for its machines, and times of day for people.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use telltale_cluster::time::Moment;

/// A clock that began when the program did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Now. Never earlier than before.
    pub(super) fn now(&self) -> Moment {
        self.at(Instant::now())
    }

    /// An instant as a moment of this clock.
    pub(super) fn at(&self, instant: Instant) -> Moment {
        let since = instant.saturating_duration_since(self.start);
        Moment::from_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// What the time of day was at a past moment, in milliseconds since the Unix epoch, by the clock
    /// as it is set now. For people alone: nothing is decided by it.
    pub(super) fn unix_ms(&self, moment: Moment) -> u64 {
        let ago = self.now().since(moment);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(u64::MAX)
    }
}
