//! Time as the machines see it: a number that only grows, handed in with each input.
//!
//! Moments of two machines must not be compared; each has its own clock.

use std::time::Duration;

/// A moment on the monotonic clock of a machine's driver, in nanoseconds since a start that
/// the clock chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The moment `nanoseconds_ns` after the clock's start.
    #[must_use]
    pub const fn from_ns(nanoseconds_ns: u64) -> Self {
        Self(nanoseconds_ns)
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The moment `duration` later; the end of time where that is past it.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(duration_ns))
    }

    /// The moment `duration` before; the clock's start where that is before it.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(duration_ns))
    }

    /// How long ago `earlier` was; nothing when it is later than this moment.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_never_wrap() {
        let late = Moment::from_ns(u64::MAX - 1);
        assert_eq!(late.after(Duration::from_secs(1)), Moment::from_ns(u64::MAX));
        assert_eq!(Moment::from_ns(3).since(Moment::from_ns(5)), Duration::ZERO);
        assert_eq!(Moment::from_ns(5).since(Moment::from_ns(3)), Duration::from_nanos(2));
    }
}
