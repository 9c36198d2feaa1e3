//! How fast a device's PCIe traffic goes, whichever maker's: from one sample of its counters to the
//! next.

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use crate::rate::FIRST_SAMPLE;

const RESTARTED: &str = "the device's counters started again since the sample before";

/// What the counters of one direction come to at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrafficSum {
    pub(crate) bytes: u64,
    /// After so many bytes a counter is where it was; none where that takes longer than a device
    /// runs.
    pub(crate) wraps_after_bytes: Option<u64>,
    pub(crate) read_ns: u64,
    pub(crate) at: Timestamp,
}

/// Why there is no sum: one of the counters has no value.
pub(crate) type NoSum = (Absence, String);

/// The rate of one direction, followed over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrafficRate {
    before: Option<TrafficSum>,
    rate: Reading<u64>,
}

impl Default for TrafficRate {
    fn default() -> Self {
        Self { before: None, rate: Reading::absent(Absence::NotYet, FIRST_SAMPLE) }
    }
}

impl TrafficRate {
    /// Takes note of what the counters come to, and returns the bytes a second since the time
    /// before. It is absent after a time in which a counter may have wrapped unseen or started
    /// again, and where it is more than `fastest`, which no link of such a device carries.
    pub(crate) fn follow(&mut self, sum: Result<TrafficSum, NoSum>, fastest: u64) -> Reading<u64> {
        self.rate = match (sum, self.before.take()) {
            (Err((reason, detail)), _) => Reading::absent(reason, detail),
            (Ok(now), None) => {
                self.before = Some(now);
                Reading::absent(Absence::NotYet, FIRST_SAMPLE)
            }
            (Ok(now), Some(before)) => {
                self.before = Some(now);
                match now.read_ns.saturating_sub(before.read_ns) {
                    // The counters were not read again.
                    0 => return self.rate.clone(),
                    elapsed_ns => between(before, now, elapsed_ns, fastest),
                }
            }
        };
        self.rate.clone()
    }
}

fn between(before: TrafficSum, now: TrafficSum, elapsed_ns: u64, fastest: u64) -> Reading<u64> {
    const SECOND: u128 = 1_000_000_000;
    if now.wraps_after_bytes != before.wraps_after_bytes {
        return Reading::absent(Absence::Unknown, RESTARTED);
    }
    if let Some(wrap) = now.wraps_after_bytes {
        let longest_ns = u128::from(wrap) * SECOND / u128::from(fastest);
        if u128::from(elapsed_ns) > longest_ns {
            return Reading::absent(Absence::Unknown, too_long(longest_ns));
        }
    }
    let rate = |gained: u64| {
        let rate = u128::from(gained) * SECOND / u128::from(elapsed_ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    };
    if let Some(gained) = now.bytes.checked_sub(before.bytes) {
        return Reading::new(rate(gained), now.at).keep_if(|rate| *rate <= fastest);
    }
    // It went back: it wrapped, if the link is fast enough for that.
    let left = now.wraps_after_bytes.and_then(|wrap| wrap.checked_sub(before.bytes));
    let wrapped = left.map(|left| rate(left.saturating_add(now.bytes)));
    match wrapped.filter(|rate| *rate <= fastest) {
        Some(rate) => Reading::new(rate, now.at),
        None => Reading::absent(Absence::Unknown, RESTARTED),
    }
}

fn too_long(longest_ns: u128) -> String {
    match (longest_ns / 1_000_000_000, longest_ns / 1_000_000) {
        (0, milliseconds) => {
            format!("its counters may wrap unseen in longer than {milliseconds} ms")
        }
        (seconds, _) => {
            format!("its counters may wrap unseen in longer than {seconds} s; collect more often")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TrafficRate, TrafficSum};
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::Absence;

    const MILLISECOND: u64 = 1_000_000;
    const FASTEST: u64 = 32_000_000_000;
    /// After so many bytes, which take more than four seconds at full speed.
    const LATE: Option<u64> = Some((1 << 32) * 32);
    /// After so many bytes, which take 134 ms.
    const SOON: Option<u64> = Some(1 << 32);

    fn sum(bytes: u64, read_ns: u64, wraps_after_bytes: Option<u64>) -> TrafficSum {
        TrafficSum { bytes, wraps_after_bytes, read_ns, at: Timestamp(read_ns) }
    }

    /// Follows sums of bytes at milliseconds, of counters that wrap there, and compares the last
    /// rate.
    fn check(wrap: Option<u64>, sums: &[(u64, u64)], expected: Result<u64, Absence>) {
        let mut rate = TrafficRate::default();
        let mut found = None;
        for (bytes, at_ms) in sums {
            found = Some(rate.follow(Ok(sum(*bytes, at_ms * MILLISECOND, wrap)), FASTEST));
        }
        let found = found.unwrap();
        let absence = found.absence().map(|(reason, _)| reason);
        assert_eq!(found.value().copied().ok_or(absence), expected.map_err(Some), "{sums:?}");
    }

    #[test]
    fn a_rate_is_known_from_the_second_sample_on() {
        for wrap in [LATE, None] {
            check(wrap, &[(0, 5)], Err(Absence::NotYet));
            check(wrap, &[(0, 0), (2_000, 500)], Ok(4_000));
            check(wrap, &[(0, 0), (2_000, 500), (2_000, 1_500)], Ok(0));
            check(wrap, &[(0, 0), (2_000, 500), (2_000, 500)], Ok(4_000));
        }
    }

    #[test]
    fn what_no_link_carries_or_no_counter_can_tell_is_absent() {
        check(LATE, &[(0, 0), (33_000_000_000, 1_000)], Err(Absence::Implausible));
        check(LATE, &[(0, 0), (8_000, 4_000)], Ok(2_000));
        check(LATE, &[(0, 0), (8_000, 5_000)], Err(Absence::Unknown));
        check(LATE, &[(0, 0), (8_000, 5_000), (9_000, 6_000)], Ok(1_000));
        check(SOON, &[(0, 0), (8_000, 1_000)], Err(Absence::Unknown));
        check(None, &[(0, 0), (8_000, 8_000_000)], Ok(1));
        check(None, &[(0, 0), (u64::MAX, 1)], Err(Absence::Implausible));
    }

    #[test]
    fn a_counter_that_went_back_has_wrapped_only_if_the_link_is_fast_enough() {
        let last = (1 << 32) - 1_000;
        check(SOON, &[(last, 0), (7_000, 100)], Ok(80_000));
        // 4 GB in a tenth of a second are more than the link carries: it started again.
        check(SOON, &[(1_000_000_000, 0), (7_000, 100)], Err(Absence::Unknown));
        check(None, &[(last, 0), (7_000, 100)], Err(Absence::Unknown));
        check(None, &[(last, 0), (7_000, 100), (8_000, 200)], Ok(10_000));
        check(None, &[(u64::MAX, 0), (0, 100)], Err(Absence::Unknown));
        // No counter of 32 bits comes to so much.
        check(SOON, &[(1 << 33, 0), (7_000, 100)], Err(Absence::Unknown));
    }

    #[test]
    fn counters_that_wrap_elsewhere_than_before_are_others() {
        let mut rate = TrafficRate::default();
        let _first = rate.follow(Ok(sum(5_000, 0, None)), FASTEST);
        let other = rate.follow(Ok(sum(6_000, 100 * MILLISECOND, SOON)), FASTEST);
        assert_eq!(other.absence().map(|(reason, _)| reason), Some(Absence::Unknown));
        let next = rate.follow(Ok(sum(7_000, 200 * MILLISECOND, SOON)), FASTEST);
        assert_eq!(next.value(), Some(&10_000));
    }

    #[test]
    fn a_counter_that_cannot_be_read_starts_again() {
        let at = |rate: &mut TrafficRate, bytes, seconds: u64| {
            let sum = sum(bytes, seconds * 1_000 * MILLISECOND, LATE);
            rate.follow(Ok(sum), FASTEST).value().copied()
        };
        let mut rate = TrafficRate::default();
        assert_eq!([at(&mut rate, 0, 1), at(&mut rate, 7, 2)], [None, Some(7)]);
        let gone = rate.follow(Err((Absence::Resetting, String::new())), FASTEST);
        assert_eq!(gone.absence(), Some((Absence::Resetting, "")));
        assert_eq!([at(&mut rate, 9, 3), at(&mut rate, 13, 4)], [None, Some(4)]);
    }
}
