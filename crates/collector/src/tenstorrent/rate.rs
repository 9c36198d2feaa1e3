//! How fast a chip's PCIe traffic goes, from one sample of its counters to the next.

use telltale_schema::chip::Architecture;
use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use super::traffic::WRAP_BYTES;

/// Faster than PCIe 4.0 x16, the most that a Wormhole has.
const WORMHOLE_BYTES_PER_SECOND: u64 = 32_000_000_000;
/// Faster than PCIe 5.0 x16, the most that a Blackhole has.
const BLACKHOLE_BYTES_PER_SECOND: u64 = 64_000_000_000;

const FIRST_SAMPLE: &str = "it is measured from one sample to the next";

/// What the counters of one direction come to at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrafficSum {
    pub(super) bytes: u64,
    pub(super) read_ns: u64,
    pub(super) at: Timestamp,
}

/// Why there is no sum: one of the counters has no value.
pub(super) type NoSum = (Absence, String);

/// The rate of one direction, followed over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TrafficRate {
    before: Option<TrafficSum>,
    rate: Reading<u64>,
}

impl Default for TrafficRate {
    fn default() -> Self {
        Self { before: None, rate: Reading::absent(Absence::NotYet, FIRST_SAMPLE) }
    }
}

impl TrafficRate {
    /// Takes note of what the counters of a chip of this generation come to, and returns the rate
    /// since the time before. It is absent after a time in which a counter may have wrapped unseen,
    /// and where it is more than any link of such a chip carries: then the chip was reset between.
    pub(super) fn follow(
        &mut self,
        sum: Result<TrafficSum, NoSum>,
        architecture: Option<Architecture>,
    ) -> Reading<u64> {
        self.rate = match (sum, self.before.take()) {
            (Err((reason, detail)), _) => Reading::absent(reason, detail),
            (Ok(now), None) => {
                self.before = Some(now);
                Reading::absent(Absence::NotYet, FIRST_SAMPLE)
            }
            (Ok(now), Some(before)) => {
                self.before = Some(now);
                match now.read_ns.saturating_sub(before.read_ns) {
                    // The files were not read again.
                    0 => return self.rate.clone(),
                    elapsed_ns => between(before, now, elapsed_ns, fastest(architecture)),
                }
            }
        };
        self.rate.clone()
    }
}

fn fastest(architecture: Option<Architecture>) -> u64 {
    match architecture {
        Some(Architecture::WormholeB0 | Architecture::Grayskull) => WORMHOLE_BYTES_PER_SECOND,
        Some(Architecture::Blackhole) | None => BLACKHOLE_BYTES_PER_SECOND,
    }
}

fn between(before: TrafficSum, now: TrafficSum, elapsed_ns: u64, fastest: u64) -> Reading<u64> {
    const SECOND: u128 = 1_000_000_000;
    let longest_ns = u128::from(WRAP_BYTES) * SECOND / u128::from(fastest);
    if u128::from(elapsed_ns) > longest_ns {
        let seconds = longest_ns / SECOND;
        let detail =
            format!("its counters may wrap unseen in longer than {seconds} s; collect more often");
        return Reading::absent(Absence::Unknown, detail);
    }
    let gained = u128::from(now.bytes.saturating_sub(before.bytes));
    let rate = u64::try_from(gained * SECOND / u128::from(elapsed_ns)).unwrap_or(u64::MAX);
    Reading::new(rate, now.at).keep_if(|rate| *rate <= fastest)
}

#[cfg(test)]
mod tests {
    use super::{TrafficRate, TrafficSum};
    use telltale_schema::chip::Architecture;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::Absence;

    const MILLISECOND: u64 = 1_000_000;

    /// Follows sums of bytes at milliseconds, and compares the last rate.
    fn check(sums: &[(u64, u64)], expected: Result<u64, Absence>) {
        let mut rate = TrafficRate::default();
        let mut found = None;
        for (bytes, at_ms) in sums {
            let read_ns = at_ms * MILLISECOND;
            let sum = TrafficSum { bytes: *bytes, read_ns, at: Timestamp(read_ns) };
            found = Some(rate.follow(Ok(sum), Some(Architecture::WormholeB0)));
        }
        let found = found.unwrap();
        let absence = found.absence().map(|(reason, _)| reason);
        assert_eq!(found.value().copied().ok_or(absence), expected.map_err(Some), "{sums:?}");
    }

    #[test]
    fn a_rate_is_known_from_the_second_sample_on() {
        check(&[(0, 5)], Err(Absence::NotYet));
        check(&[(0, 0), (2_000, 500)], Ok(4_000));
        check(&[(0, 0), (2_000, 500), (2_000, 1_500)], Ok(0));
        check(&[(0, 0), (2_000, 500), (2_000, 500)], Ok(4_000));
    }

    #[test]
    fn what_no_link_carries_or_no_counter_can_tell_is_absent() {
        check(&[(0, 0), (33_000_000_000, 1_000)], Err(Absence::Implausible));
        check(&[(0, 0), (8_000, 4_000)], Ok(2_000));
        check(&[(0, 0), (8_000, 5_000)], Err(Absence::Unknown));
        check(&[(0, 0), (8_000, 5_000), (9_000, 6_000)], Ok(1_000));
    }

    #[test]
    fn a_counter_that_cannot_be_read_begins_anew() {
        let mut rate = TrafficRate::default();
        let mut at = |bytes, seconds: u64| {
            let read_ns = seconds * 1_000 * MILLISECOND;
            let sum = TrafficSum { bytes, read_ns, at: Timestamp(read_ns) };
            rate.follow(Ok(sum), None).value().copied()
        };
        assert_eq!([at(0, 1), at(7, 2)], [None, Some(7)]);
        let gone = rate.follow(Err((Absence::Resetting, String::new())), None);
        assert_eq!(gone.absence(), Some((Absence::Resetting, "")));
        let sum = |bytes, read_ns| TrafficSum { bytes, read_ns, at: Timestamp(read_ns) };
        assert_eq!(rate.follow(Ok(sum(9, 3_000 * MILLISECOND)), None).value(), None);
        assert_eq!(rate.follow(Ok(sum(13, 4_000 * MILLISECOND)), None).value(), Some(&4));
    }
}
