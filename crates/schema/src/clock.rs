//! Points in time and the clock that code is given instead of reading one itself.

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the Unix epoch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time from `earlier` to `self` in nanoseconds; zero when `earlier` is later, which
    /// happens when the wall clock is set back.
    pub fn since_ns(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// What tells the time. Production code passes the system's, tests a [`ManualClock`].
pub trait Clock: Send + Sync {
    /// The wall-clock time, for stamps that people and other machines read.
    fn now(&self) -> Timestamp;

    /// Nanoseconds on a clock that never goes back, for ages and deadlines.
    fn monotonic_ns(&self) -> u64;
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_ns: std::sync::atomic::AtomicU64,
    monotonic_ns: std::sync::atomic::AtomicU64,
}

impl ManualClock {
    /// A clock at `wall` whose monotonic side starts at zero.
    pub fn starting_at(wall: Timestamp) -> Self {
        let clock = Self::default();
        clock.wall_ns.store(wall.0, std::sync::atomic::Ordering::Relaxed);
        clock
    }

    /// Moves both sides forward.
    pub fn advance_ns(&self, nanoseconds: u64) {
        self.wall_ns.fetch_add(nanoseconds, std::sync::atomic::Ordering::Relaxed);
        self.monotonic_ns.fetch_add(nanoseconds, std::sync::atomic::Ordering::Relaxed);
    }

    /// Sets the wall clock alone, as an administrator or NTP may.
    pub fn set_wall(&self, wall: Timestamp) {
        self.wall_ns.store(wall.0, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall_ns.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, ManualClock, Timestamp};

    #[test]
    fn a_clock_set_back_gives_no_negative_span() {
        let clock = ManualClock::starting_at(Timestamp(1_000));
        let before = clock.now();
        clock.advance_ns(50);
        assert_eq!(clock.now().since_ns(before), 50);
        clock.set_wall(Timestamp(10));
        assert_eq!(clock.now().since_ns(before), 0);
        assert_eq!(clock.monotonic_ns(), 50);
    }
}
