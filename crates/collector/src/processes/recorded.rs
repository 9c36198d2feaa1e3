//! Since when a process has been recording, where two clocks that tell it agree.

use telltale_schema::clock::Timestamp;

use super::identity::{NANOSECONDS_PER_TICK, SLACK_NS};

/// How long a process has been recording, by the wall clock's time of its beginning in its ledger.
/// None where the clock was set since: to before it, or so that the recording would be older than
/// its process. `start_time_ticks` is of that process, and by the clock that `since_boot_ns` is of.
pub(super) fn recording_ns(
    start_time_ticks: u64,
    started_at: Timestamp,
    now: Timestamp,
    since_boot_ns: u64,
) -> Option<u64> {
    let recording_ns = now.0.checked_sub(started_at.0)?;
    let born_ns = start_time_ticks.saturating_mul(NANOSECONDS_PER_TICK);
    // A process of a recorded machine can be younger than this one's boot.
    let age_ns = since_boot_ns.checked_sub(born_ns);
    let possible = age_ns.is_none_or(|age_ns| recording_ns <= age_ns.saturating_add(SLACK_NS));
    possible.then_some(recording_ns)
}

#[cfg(test)]
mod tests {
    use super::recording_ns;
    use telltale_schema::clock::Timestamp;

    #[test]
    fn a_clock_that_was_set_makes_no_process_older_than_it_is() {
        const SECOND: u64 = 1_000_000_000;
        const DAY: u64 = 86_400 * SECOND;
        // Born 100 s after the boot; it is 130 s after it.
        let recording =
            |started, now| recording_ns(10_000, Timestamp(started), Timestamp(now), 130 * SECOND);
        assert_eq!(recording(DAY, DAY + 20 * SECOND), Some(20 * SECOND));
        assert_eq!(recording(DAY, 2 * DAY), None, "set forward");
        assert_eq!(recording(2 * DAY, DAY), None, "set back");
    }
}
