//! Windows of the latest latencies, one for each key, and the values of a window.
//!
//! A report takes the latencies that came since the last one, so that two reports never report the
//! same transfer twice. The number of keys is bounded, and what is not taken is counted.

use std::collections::BTreeMap;

use crate::latency::Window;
use crate::latency::record::Waited;

/// Latencies that a window holds, if nothing else is said: the seed's window.
pub const WINDOW_SAMPLES: u16 = 100;
/// The fewest that it may hold: fewer samples say little.
pub const LEAST_WINDOW_SAMPLES: u16 = 10;
/// And the most: 8 bytes each, for every key.
pub const MAX_WINDOW_SAMPLES: u16 = 10_000;
/// Keys that an agent keeps at once.
pub const MAX_KEYS: usize = 8192;
/// Latencies of a new key that are left out: connections are being made, caches are cold.
pub const WARM_UP_SAMPLES: u32 = 20;
/// Latencies that a window should have before it is reported.
pub const ENOUGH_SAMPLES: u32 = 5;
/// Reports after which a window is reported even with fewer.
pub const TIMEOUT_REPORTS: u32 = 5;
/// Reports without a latency after which a key may make place for another.
pub const IDLE_REPORTS: u32 = 60;

/// What was not taken, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NotTaken {
    /// Latencies of new keys when there were already [`MAX_KEYS`].
    pub no_place: u64,
    /// The first latencies of a key.
    pub warm_up: u64,
    /// Latencies during a checkpoint or the like.
    pub excused: u64,
    /// Latencies that gave way to later ones of the same report.
    pub overwritten: u64,
}

impl NotTaken {
    /// Both together.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            no_place: self.no_place.saturating_add(other.no_place),
            warm_up: self.warm_up.saturating_add(other.warm_up),
            excused: self.excused.saturating_add(other.excused),
            overwritten: self.overwritten.saturating_add(other.overwritten),
        }
    }
}

/// How many latencies a window holds: [`LEAST_WINDOW_SAMPLES`] to [`MAX_WINDOW_SAMPLES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowLength(u16);

impl WindowLength {
    /// This many; nothing where a window cannot hold as many.
    #[must_use]
    pub fn new(samples: u16) -> Option<Self> {
        let range = LEAST_WINDOW_SAMPLES..=MAX_WINDOW_SAMPLES;
        range.contains(&samples).then_some(Self(samples))
    }

    /// How many they are.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The place of latency number `number`.
    fn place(self, number: u64) -> usize {
        let place = number % u64::from(self.0);
        usize::try_from(place).expect("what is less than a u16 fits in a usize")
    }
}

impl Default for WindowLength {
    fn default() -> Self {
        Self(WINDOW_SAMPLES)
    }
}

/// Windows by key.
#[derive(Debug, Clone)]
pub struct Windows<Key> {
    length: WindowLength,
    samples: BTreeMap<Key, Samples>,
    excused: bool,
    not_taken: NotTaken,
}

#[derive(Debug, Clone, Default)]
struct Samples {
    /// The latest, each at the place of its number modulo the window.
    latest: Vec<Sample>,
    since_report: u32,
    warm_up: u32,
    reports_waited: u32,
    total: u64,
}

/// One latency, and what it holds beside the operation itself.
#[derive(Debug, Clone, Copy)]
struct Sample {
    latency_ns: u64,
    waited: Waited,
}

impl<Key: Ord + Copy> Windows<Key> {
    /// Windows of this many latencies each.
    #[must_use]
    pub fn of(length: WindowLength) -> Self {
        let not_taken = NotTaken::default();
        Self { length, samples: BTreeMap::new(), excused: false, not_taken }
    }

    /// Files one latency.
    pub fn record(&mut self, key: Key, latency_ns: u64, waited: Waited) {
        if self.excused {
            self.not_taken.excused += 1;
            return;
        }
        if self.samples.len() >= MAX_KEYS && !self.samples.contains_key(&key) {
            self.not_taken.no_place += 1;
            return;
        }
        let samples = self.samples.entry(key).or_default();
        if samples.warm_up < WARM_UP_SAMPLES {
            samples.warm_up += 1;
            samples.reports_waited = 0;
            self.not_taken.warm_up += 1;
            return;
        }
        if samples.push(Sample { latency_ns, waited }, self.length) {
            self.not_taken.overwritten += 1;
        }
    }

    /// Says whether what comes now is slow on purpose, a checkpoint say, and not to be counted.
    pub const fn excuse(&mut self, excused: bool) {
        self.excused = excused;
    }

    /// What was not taken, since the start.
    #[must_use]
    pub const fn not_taken(&self) -> NotTaken {
        self.not_taken
    }

    /// How many keys there are.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.samples.len()
    }

    /// The values of what came since the last report, by key. Keys with too few latencies wait for
    /// more; those that had none for long make place when it is needed.
    pub fn report(&mut self) -> Vec<(Key, Window)> {
        let crowded = self.samples.len() >= MAX_KEYS;
        self.samples.retain(|_, samples| !(crowded && samples.is_idle()));
        let (reports, length) = (self.samples.iter_mut(), self.length);
        reports.filter_map(|(key, samples)| Some((*key, samples.report(length)?))).collect()
    }
}

impl Samples {
    /// Takes one latency; says whether another that no report has covered gave way.
    fn push(&mut self, sample: Sample, length: WindowLength) -> bool {
        match self.latest.get_mut(length.place(self.total)) {
            Some(held) => *held = sample,
            None => self.latest.push(sample),
        }
        self.total += 1;
        self.since_report = self.since_report.saturating_add(1);
        self.since_report > u32::from(length.get())
    }

    fn report(&mut self, length: WindowLength) -> Option<Window> {
        self.reports_waited = self.reports_waited.saturating_add(1);
        let patient = self.reports_waited < TIMEOUT_REPORTS;
        if self.since_report == 0 || (self.since_report < ENOUGH_SAMPLES && patient) {
            return None;
        }
        let latest = self.latest_since_report(length);
        self.since_report = 0;
        self.reports_waited = 0;
        Some(metrics(&latest, self.total))
    }

    fn is_idle(&self) -> bool {
        self.since_report == 0 && self.reports_waited >= IDLE_REPORTS
    }

    fn latest_since_report(&self, length: WindowLength) -> Vec<Sample> {
        let count = u64::from(self.since_report.min(u32::from(length.get())));
        let numbers = self.total - count..self.total;
        numbers.map(|number| self.latest[length.place(number)]).collect()
    }
}

/// The values of at least one latency.
fn metrics(samples: &[Sample], last_sequence: u64) -> Window {
    let mut latencies_ns: Vec<u64> = samples.iter().map(|sample| sample.latency_ns).collect();
    latencies_ns.sort_unstable();
    let count = latencies_ns.len();
    let sum: u128 = latencies_ns.iter().map(|one| u128::from(*one)).sum();
    let divisor = u128::try_from(count).expect("a usize fits in a u128");
    let median_ns = latencies_ns[count / 2];
    // Nearest rank: the smallest latency that 95 of 100 do not exceed.
    let high_ns = latencies_ns[(count * 95).div_ceil(100) - 1];
    let mut distances_ns: Vec<u64> =
        latencies_ns.iter().map(|one| one.abs_diff(median_ns)).collect();
    distances_ns.sort_unstable();
    let counted =
        |count: usize| u32::try_from(count).expect("a window has at most 10,000 latencies");
    Window {
        count: counted(count),
        mean_ns: u64::try_from(sum / divisor).expect("a mean is no more than the largest"),
        median_ns,
        deviation_ns: distances_ns[count / 2],
        high_ns,
        last_sequence,
        late: counted(samples.iter().filter(|sample| sample.waited.late).count()),
        overlapped: counted(samples.iter().filter(|sample| sample.waited.overlapped).count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Waited = Waited { late: false, overlapped: false };

    fn warm() -> Windows<u8> {
        let mut windows = Windows::of(WindowLength::default());
        for _ in 0..WARM_UP_SAMPLES {
            windows.record(1, 1_000_000, ALONE);
        }
        windows
    }

    #[test]
    fn a_report_has_the_values_of_what_came_since_the_last() {
        let mut windows = warm();
        for latency_ns in 1..=10 {
            let waited = Waited { late: latency_ns > 8, overlapped: latency_ns == 10 };
            windows.record(1, latency_ns, waited);
        }
        let expected = Window {
            count: 10,
            mean_ns: 5,
            median_ns: 6,
            deviation_ns: 3,
            high_ns: 10,
            last_sequence: 10,
            late: 2,
            overlapped: 1,
        };
        assert_eq!(windows.report(), [(1, expected)]);
        assert_eq!(windows.report(), []);
        (0..5).for_each(|_| windows.record(1, 70, ALONE));
        let later = windows.report();
        assert_eq!((later[0].1.count, later[0].1.median_ns, later[0].1.last_sequence), (5, 70, 15));
        assert_eq!(windows.not_taken().warm_up, u64::from(WARM_UP_SAMPLES));
    }

    #[test]
    fn a_window_has_the_latest_hundred() {
        let mut windows = warm();
        (1..=250).for_each(|latency_ns| windows.record(1, latency_ns, ALONE));
        let window = windows.report()[0].1;
        assert_eq!((window.count, window.median_ns, window.high_ns), (100, 201, 245));
        assert_eq!(window.last_sequence, 250);
        assert_eq!(windows.not_taken().overwritten, 150);
    }

    #[test]
    fn a_window_may_be_longer_or_shorter() {
        for (length, expected) in [(10, (10, 246, 250)), (200, (200, 151, 240))] {
            let mut windows = Windows::of(WindowLength::new(length).unwrap());
            (0..WARM_UP_SAMPLES).for_each(|_| windows.record(1, 1_000_000, ALONE));
            (1..=250).for_each(|latency_ns| windows.record(1, latency_ns, ALONE));
            let window = windows.report()[0].1;
            assert_eq!((window.count, window.median_ns, window.high_ns), expected);
            assert_eq!(windows.not_taken().overwritten, 250 - u64::from(length));
        }
        assert_eq!([9, 10_001].map(WindowLength::new), [None, None]);
    }

    #[test]
    fn few_latencies_wait_for_more_but_not_for_ever() {
        let mut windows = warm();
        windows.record(1, 8, ALONE);
        let reported: Vec<bool> = (0..6).map(|_| !windows.report().is_empty()).collect();
        assert_eq!(reported, [false, false, false, false, true, false]);
    }

    #[test]
    fn a_checkpoint_counts_for_nothing() {
        let mut windows = warm();
        windows.excuse(true);
        (0..10).for_each(|_| windows.record(1, 9, ALONE));
        windows.excuse(false);
        assert_eq!(windows.report(), []);
        assert_eq!(windows.not_taken().excused, 10);
    }

    #[test]
    fn keys_are_bounded_and_idle_ones_make_place() {
        let mut windows = Windows::of(WindowLength::default());
        let keys = u32::try_from(MAX_KEYS).unwrap();
        (0..keys + 3).for_each(|key| windows.record(key, 1, ALONE));
        assert_eq!((windows.keys(), windows.not_taken().no_place), (MAX_KEYS, 3));
        for _ in 0..=IDLE_REPORTS {
            (0..20).for_each(|_| windows.record(7, 1, ALONE));
            windows.report();
        }
        windows.record(keys, 1, ALONE);
        assert_eq!(windows.keys(), 2, "key 7 and the new one");
    }
}
