//! The system's clock, in the shape that the rest of Telltale is given one.

use rustix::time::{ClockId, Timespec, clock_gettime};
use telltale_schema::clock::{Clock, Timestamp};

/// The kernel's wall clock, and its monotonic clock for ages and deadlines.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(nanoseconds(clock_gettime(ClockId::Realtime)))
    }

    fn monotonic_ns(&self) -> u64 {
        nanoseconds(clock_gettime(ClockId::Monotonic))
    }
}

/// Nanoseconds since the machine was started, sleep included: what `/proc` counts start times from.
pub(crate) fn since_boot_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Boottime))
}

/// CPU time that all threads of this process have used.
pub fn cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time that this thread has used.
pub fn thread_cpu() -> std::time::Duration {
    std::time::Duration::from_nanos(nanoseconds(clock_gettime(ClockId::ThreadCPUTime)))
}

/// A kernel time as nanoseconds; a wall clock set before 1970 counts as 1970.
fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::SystemClock;
    use telltale_schema::clock::Clock;

    #[test]
    fn the_clocks_move_forward_and_the_wall_is_in_this_century() {
        let clock = SystemClock;
        let before = clock.monotonic_ns();
        assert!(clock.monotonic_ns() >= before);
        assert!(clock.now().0 > 1_600_000_000_000_000_000);
    }
}
