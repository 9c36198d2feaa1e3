//! Clocks of simulated machines: each begins somewhere else and goes a little wrong.

use std::time::Duration;

use telltale_cluster::time::Moment;

use crate::random::Random;

/// How wrong a clock may go, in parts of a million: what NTP's reference implementation takes for the
/// worst (RFC 5905, 7.2: 15 ppm for a good one; cheap oscillators are within 200).
const MAX_DRIFT_PPM: u64 = 200;

/// True time in the simulation, since its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct TrueTime(pub(crate) Duration);

impl TrueTime {
    /// The time `duration` later.
    #[must_use]
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }

    /// How long ago `earlier` was.
    #[must_use]
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The monotonic clock of one machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineClock {
    offset: Duration,
    fast_ppm: u64,
}

impl MachineClock {
    /// A clock that shows up to ten days at the beginning.
    pub(crate) fn drawn(random: &mut Random) -> Self {
        let offset = random.duration(Duration::ZERO, Duration::from_secs(864_000));
        Self { offset, fast_ppm: random.below(2 * MAX_DRIFT_PPM) }
    }

    /// What it shows at a true time.
    #[must_use]
    pub(crate) fn shows(&self, time: TrueTime) -> Moment {
        // A clock that is slow by the most is the unit, so that no sign is needed.
        let true_ns = time.0.as_nanos();
        let parts = 1_000_000 - u128::from(MAX_DRIFT_PPM) + u128::from(self.fast_ppm);
        let shown_ns = self.offset.as_nanos() + true_ns * parts / 1_000_000;
        Moment::from_ns(u64::try_from(shown_ns).unwrap_or(u64::MAX))
    }
}
