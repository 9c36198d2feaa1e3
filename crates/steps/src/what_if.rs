//! What steps would take with some durations replaced.
//!
//! The slow-down S is the time of the replayed steps, without the delays before operations begin, over the time
//! of the same with each operation at what is typical of its kind. Gaps between operations are such delays, unless
//! nothing else says what ranks compute. That of a part of the operations
//! is the time with these as they were and all others at what is typical, over the same.

use std::collections::BTreeMap;

use crate::kind::{Kinds, Nature};
use crate::step::{Placed, Step};
use crate::typical::Typical;

/// How much slower steps are than typical ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowdown {
    /// The mean time of a step as it was, without delays before operations began, in nanoseconds.
    pub actual_ns: f64,
    /// The same if all operations of a kind took equally long.
    pub typical_ns: f64,
}

impl Slowdown {
    /// S: how many times as long a step takes. 1 where there is no step.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.typical_ns > 0.0 { self.actual_ns / self.typical_ns } else { 1.0 }
    }
}

/// How much slower these steps are than typical ones.
#[must_use]
pub fn slowdown(steps: &[Step], kinds: &Kinds, typical: &Typical) -> Slowdown {
    let has_computations = kinds.all().any(|kind| kinds.nature(kind) == Nature::Compute);
    let is_delay = |one: &Placed| has_computations && kinds.nature(one.kind) == Nature::Between;
    let [actual_ns, typical_ns] = mean_times(steps, |one| match is_delay(one) {
        true => [0.0; 2],
        false => [one.work_ns as f64, typical.ns(one.kind)],
    });
    Slowdown { actual_ns, typical_ns }
}

/// The slow-down by each part of the operations alone. Those of no part are typical.
#[must_use]
pub fn by_part<Part: Ord>(
    steps: &[Step],
    typical: &Typical,
    part_of: impl Fn(&Placed) -> Option<Part>,
) -> BTreeMap<Part, f64> {
    let all = steps.iter().flat_map(Step::operations);
    let parts: BTreeMap<Part, ()> = all.filter_map(|one| Some((part_of(one)?, ()))).collect();
    let typical_ns = mean_time(steps, |one| typical.ns(one.kind));
    let with = |part: &Part| {
        let actual_ns = mean_time(steps, |one| match part_of(one) {
            Some(of) if of == *part => one.work_ns as f64,
            _ => typical.ns(one.kind),
        });
        Slowdown { actual_ns, typical_ns }.ratio()
    };
    parts.into_keys().map(|part| (with(&part), part)).map(|(ratio, part)| (part, ratio)).collect()
}

/// The mean time of a replayed step, in nanoseconds; 0 of none.
fn mean_time(steps: &[Step], work: impl Fn(&Placed) -> f64) -> f64 {
    let [time] = mean_times(steps, |one| [work(one)]);
    time
}

/// The same of several replays.
pub(crate) fn mean_times<const N: usize>(
    steps: &[Step],
    work: impl Fn(&Placed) -> [f64; N],
) -> [f64; N] {
    let mut sums = [0.0; N];
    for step in steps {
        let times = step.replays(&work);
        sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
    }
    sums.map(|sum| sum / steps.len().max(1) as f64)
}
