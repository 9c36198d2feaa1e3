//! Whether a process's memory keeps rising. A training allocates and frees in each step, so what
//! counts is its floor: the lowest level in each of a few equal spans of time. The trend is the
//! median of the slopes between all pairs of floors (Theil and Sen), which one odd span cannot
//! bend; it rises if three quarters of the slopes do, and the last quarter of the floors still does.

use std::collections::{BTreeMap, VecDeque};

use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::Snapshot;

use super::findings::places;
use super::{Condition, Rule};

/// Into how many spans a rule's window is cut.
pub const MINIMA: usize = 16;

/// Processes on devices that are followed at one time, for all rules together.
pub const MAX_TRACKED: usize = 8192;

/// Spans that must be whole before there is a trend: three quarters of the window.
const ENOUGH: usize = MINIMA * 3 / 4;

const NANOSECONDS: f64 = 1e9;

/// How a level changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    /// The median slope.
    pub(super) bytes_per_second: f64,
    /// Whether three quarters of the slopes go up, and it has not stopped.
    pub(super) rises: bool,
}

/// The floors of each process on each device, for each rule that asks.
#[derive(Default)]
pub(super) struct Growth {
    /// By rule and process: each of its devices by its id.
    tracked: BTreeMap<(usize, ProcessIdentity), Vec<OnDevice>>,
    /// How many floors there are in all.
    count: usize,
}

/// A device's id, and the floors there.
type OnDevice = (Box<str>, Floors);

struct Floors {
    span_ns: u64,
    began_ns: u64,
    lowest: u64,
    minima: VecDeque<u64>,
    trend: Option<Trend>,
    seen: bool,
}

impl Growth {
    /// Takes note of a snapshot, for a rule that searches for leaks.
    pub(super) fn observe(&mut self, place: usize, rule: &Rule, now_ns: u64, snapshot: &Snapshot) {
        let Condition::Leak { space, window_seconds, .. } = rule.condition else { return };
        let spans = u64::try_from(MINIMA).unwrap_or(u64::MAX);
        let span_ns = (window_seconds.saturating_mul(1_000_000_000) / spans).max(1);
        for held in places(snapshot) {
            let Some(identity) = held.process.identity else { continue };
            let level = held.live_bytes(space);
            let of_process = self.tracked.entry((place, identity)).or_default();
            match of_process.iter_mut().find(|(device, _)| **device == *held.device.id) {
                Some((_, floors)) => floors.observe(span_ns, now_ns, level),
                None if self.count >= MAX_TRACKED => {}
                None => {
                    let device = held.device.id.as_str().into();
                    of_process.push((device, Floors::new(span_ns, now_ns, level)));
                    self.count += 1;
                }
            }
        }
    }

    /// The trend of a process on a device; none until enough is known.
    pub(super) fn of(
        &self,
        place: usize,
        identity: ProcessIdentity,
        device: &str,
    ) -> Option<Trend> {
        let of_process = self.tracked.get(&(place, identity))?;
        of_process.iter().find(|(of, _)| **of == *device).and_then(|(_, floors)| floors.trend)
    }

    /// Drops whom no rule has seen since the last call.
    pub(super) fn forget_the_unseen(&mut self) {
        self.count = 0;
        self.tracked.retain(|_, of_process| {
            of_process.retain_mut(|(_, floors)| std::mem::take(&mut floors.seen));
            self.count += of_process.len();
            !of_process.is_empty()
        });
    }
}

impl Floors {
    fn new(span_ns: u64, now_ns: u64, level: u64) -> Self {
        Self {
            span_ns,
            began_ns: now_ns,
            lowest: level,
            minima: VecDeque::new(),
            trend: None,
            seen: true,
        }
    }

    fn observe(&mut self, span_ns: u64, now_ns: u64, level: u64) {
        self.seen = true;
        let passed = now_ns.saturating_sub(self.began_ns) / self.span_ns;
        // The rule was changed, or there was no sample for more than a span: floors would be invented.
        if span_ns != self.span_ns || passed > 1 {
            *self = Self::new(span_ns, now_ns, level);
            return;
        }
        if passed == 1 {
            if self.minima.len() == MINIMA {
                self.minima.pop_front();
            }
            self.minima.push_back(self.lowest);
            self.began_ns += self.span_ns;
            self.lowest = level;
            self.trend = trend(&self.minima, self.span_ns);
        }
        self.lowest = self.lowest.min(level);
    }
}

/// The trend of floors that are one span apart.
fn trend(minima: &VecDeque<u64>, span_ns: u64) -> Option<Trend> {
    if minima.len() < ENOUGH {
        return None;
    }
    let span_seconds = span_ns as f64 / NANOSECONDS;
    let mut slopes = Vec::with_capacity(MINIMA * (MINIMA - 1) / 2);
    for (at, earlier) in minima.iter().enumerate() {
        for (apart, later) in minima.iter().skip(at + 1).enumerate() {
            slopes.push((*later as f64 - *earlier as f64) / ((apart + 1) as f64 * span_seconds));
        }
    }
    slopes.sort_by(f64::total_cmp);
    // A process that has warmed up rose for long and no longer does.
    let still = minima.back() > minima.get(minima.len() - 1 - minima.len() / 4);
    let rises = still && slopes[slopes.len() / 4] > 0.0;
    Some(Trend { bytes_per_second: slopes[slopes.len() / 2], rises })
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH, MINIMA, trend};

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_trend_needs_time_and_one_odd_floor_does_not_bend_it() {
        let floors = |count: usize, of: &dyn Fn(u64) -> u64| {
            trend(&(0..count as u64).map(of).collect(), 60 * SECOND)
        };
        assert_eq!(floors(ENOUGH - 1, &|at| at), None);
        let steady = floors(MINIMA, &|at| 1_000 + at * 600).unwrap();
        assert!((steady.bytes_per_second - 10.0).abs() < 1e-9 && steady.rises, "{steady:?}");
        let odd = floors(MINIMA, &|at| if at == 5 { 0 } else { 1_000 + at * 600 }).unwrap();
        assert!((odd.bytes_per_second - 10.0).abs() < 0.5 && odd.rises, "{odd:?}");
        for flat in [
            floors(MINIMA, &|_| 5_000).unwrap(),
            floors(MINIMA, &|at| if at % 2 == 0 { 4_000 } else { 6_000 }).unwrap(),
            // One jump, as a second model that is loaded.
            floors(MINIMA, &|at| if at < 2 { 4_000 } else { 9_000 }).unwrap(),
            floors(MINIMA, &|at| 90_000 - at * 600).unwrap(),
        ] {
            assert!(!flat.rises, "{flat:?}");
        }
    }
}
