//! PCIe traffic counters: 32 bits in hardware, 64 here.
//!
//! The hardware counts 32-byte flits since the last reset and wraps at 2³², after 137 GB. A reader
//! that looks often enough sees each wrap at most once. One that looks later than a link at full
//! speed takes for a wrap, 2 s at least, may miss one: then there is no rate
//! ([`crate::traffic_rate`]).

use telltale_schema::chip::Architecture;

/// Bytes in a flit.
const FLIT_BYTES: u64 = 32;

/// Bytes after which a counter is where it was.
pub(super) const WRAP_BYTES: u64 = (1 << 32) * FLIT_BYTES;

/// Faster than PCIe 4.0 x16, the most that a Wormhole has.
const WORMHOLE_BYTES_PER_SECOND: u64 = 32_000_000_000;
/// Faster than PCIe 5.0 x16, the most that a Blackhole has.
const BLACKHOLE_BYTES_PER_SECOND: u64 = 64_000_000_000;

/// Bytes a second that no link of a chip of this generation carries: what needs more is no rate, and no
/// wrap but a counter that started again.
pub(super) fn fastest(architecture: Option<Architecture>) -> u64 {
    match architecture {
        Some(Architecture::WormholeB0 | Architecture::Grayskull) => WORMHOLE_BYTES_PER_SECOND,
        Some(Architecture::Blackhole) | None => BLACKHOLE_BYTES_PER_SECOND,
    }
}

/// One counter, followed over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlitCounter {
    last: Option<(u32, u64)>,
    bytes: u64,
}

impl FlitCounter {
    /// Takes note of the counter's value at `now_ns` and returns the bytes since the first scan;
    /// none at the first.
    ///
    /// A difference that takes more than `fastest` bytes a second between two scans means that the
    /// device was reset: only what it counted since then is added.
    pub fn advance(&mut self, flits: u32, now_ns: u64, fastest: u64) -> Option<u64> {
        let last = self.last.replace((flits, now_ns));
        let (before, before_ns) = last?;
        let difference = u64::from(flits.wrapping_sub(before)) * FLIT_BYTES;
        let elapsed_ns = u128::from(now_ns.saturating_sub(before_ns));
        let possible = elapsed_ns * u128::from(fastest) / 1_000_000_000;
        let restarted = flits < before && u128::from(difference) > possible;
        let added = if restarted { u64::from(flits) * FLIT_BYTES } else { difference };
        self.bytes = self.bytes.saturating_add(added);
        Some(self.bytes)
    }

    /// Takes note that the device is being reset: its counters start again at 0.
    pub fn restart(&mut self) {
        self.last = self.last.map(|(_, at_ns)| (0, at_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::{FlitCounter, fastest};
    use proptest::prelude::*;
    use telltale_schema::chip::Architecture;

    const SECOND: u64 = 1_000_000_000;

    fn check(looks: &[(u32, u64)], expected: &[Option<u64>]) {
        let fastest = fastest(Some(Architecture::Blackhole));
        let mut counter = FlitCounter::default();
        let advance = |(now, at): &(u32, u64)| counter.advance(*now, *at, fastest);
        let found: Vec<_> = looks.iter().map(advance).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn wraps_are_undone_and_resets_are_seen() {
        check(&[(100, 0), (100, SECOND), (110, 2 * SECOND)], &[None, Some(0), Some(320)]);
        check(&[(u32::MAX, 0), (9, SECOND)], &[None, Some(320)]);
        // From 1,000,000 to 5 in a millisecond: 137 GB did not move, the device was reset.
        check(&[(1_000_000, 0), (5, 1_000_000)], &[None, Some(160)]);
        // The same in three seconds can be a wrap, on a link that is fast enough.
        let wrapped = ((1u64 << 32) - 1_000_000 + 5) * 32;
        check(&[(1_000_000, 0), (5, 3 * SECOND)], &[None, Some(wrapped)]);
        let mut slower = FlitCounter::default();
        let wormhole = fastest(Some(Architecture::WormholeB0));
        slower.advance(1_000_000, 0, wormhole);
        assert_eq!(slower.advance(5, 3 * SECOND, wormhole), Some(160));
        // Where the reset was seen, it is no wrap however much time has passed.
        let mut counter = FlitCounter::default();
        counter.advance(1_000_000, 0, wormhole);
        counter.restart();
        assert_eq!(counter.advance(5, 20 * SECOND, wormhole), Some(160));
        // A clock that stands still never divides by zero.
        check(&[(5, 7), (6, 7)], &[None, Some(32)]);
    }

    proptest! {
        #[test]
        fn traffic_within_a_links_speed_is_exact(steps in prop::collection::vec(0u32..1_800_000_000, 1..20)) {
            let mut counter = FlitCounter::default();
            let fastest = fastest(None);
            counter.advance(u32::MAX - 1_000, 0, fastest);
            let (mut flits, mut sum, mut now) = (u32::MAX - 1_000, 0u64, 0u64);
            for step in steps {
                flits = flits.wrapping_add(step);
                sum += u64::from(step) * 32;
                now += SECOND;
                prop_assert_eq!(counter.advance(flits, now, fastest), Some(sum));
            }
        }
    }
}
