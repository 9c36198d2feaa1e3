//! The clock of all times here: the system's monotonic one, as the C++ library's `steady_clock`.

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).expect("the monotonic clock is never negative");
    let fraction = u64::try_from(now.tv_nsec).expect("a part of a second is never negative");
    seconds * 1_000_000_000 + fraction
}
