//! When the machine was started, from which follows when its processes were.

use telltale_schema::clock::Timestamp;

use super::identity::NANOSECONDS_PER_TICK;
use crate::clock::since_boot_ns;

/// The wall clock is slewed all the time: only what is more than this is another boot time, after a
/// clock that was set.
const SLEWED_NS: u64 = 1_000_000_000;

/// When the machine was started, by the wall clock as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Booted(u64);

impl Booted {
    /// As it follows from the time `now`; the same as `self` where the clock was only slewed, so that a
    /// process's start stays the same from one look to the next.
    pub(crate) fn at(self, Timestamp(now): Timestamp) -> Self {
        let found = now.saturating_sub(since_boot_ns());
        if found.abs_diff(self.0) > SLEWED_NS { Self(found) } else { self }
    }

    /// When what started so many ticks after the boot did.
    pub(crate) fn start(self, ticks: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(ticks.saturating_mul(NANOSECONDS_PER_TICK)))
    }
}
