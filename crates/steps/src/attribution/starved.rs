//! Ranks that get less of a processor than they want, and hold up the others by it.
//!
//! That shows where their computations do not: a stage of one rank has no peer, and a rank whose
//! limit bites while it communicates makes communication slow for all.

use std::collections::BTreeMap;

use super::{SlowRank, Slowness};
use crate::kind::{Kinds, Nature};
use crate::processors::Processors;
use crate::spread::middle;
use crate::step::Step;

/// From which part of the time on it matters that a processor is withheld.
pub(super) const MEANINGFUL: f64 = 0.1;
/// The steps must lose this part at least of what is withheld: a device may have work enough meanwhile.
const LEAST_LOST: f64 = 0.5;

/// How long nothing of each rank runs in one step, in nanoseconds.
pub(super) struct Gaps {
    of_ranks: BTreeMap<u32, f64>,
    middle_ns: f64,
}

impl Gaps {
    pub(super) fn of(steps: &[Step], kinds: &Kinds) -> Self {
        let mut of_ranks: BTreeMap<u32, f64> = BTreeMap::new();
        for one in steps.iter().flat_map(Step::operations) {
            let sum = of_ranks.entry(one.rank).or_default();
            if kinds.nature(one.kind) == Nature::Between {
                *sum += one.work_ns as f64 / steps.len() as f64;
            }
        }
        let mut all: Vec<f64> = of_ranks.values().copied().collect();
        let middle_ns = if all.is_empty() { 0.0 } else { middle(&mut all) };
        Self { of_ranks, middle_ns }
    }

    /// How much longer than of the rank in the middle.
    pub(super) fn excess_ns(&self, rank: u32) -> f64 {
        self.of_ranks.get(&rank).map_or(0.0, |own| (own - self.middle_ns).max(0.0))
    }
}

/// Those from whom the processor is withheld for longer than from the rank in the middle. `lost_ns` says what a step of
/// `actual_ns` loses to what may be one rank's fault.
pub(super) fn slow(
    steps: &[Step],
    processors: &Processors,
    actual_ns: f64,
    lost_ns: impl Fn(u32) -> f64,
) -> Vec<SlowRank> {
    let steps = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let excess = processors.lasting_excess();
    excess
        .filter(|(rank, part)| {
            *part >= MEANINGFUL && lost_ns(*rank) >= LEAST_LOST * part * actual_ns
        })
        .map(|(rank, part)| {
            let cost_ns = lost_ns(rank).min(part * actual_ns);
            SlowRank {
                rank,
                slowness: Slowness {
                    ratio: 1.0 / (1.0 - part).max(f64::MIN_POSITIVE),
                    cost_ns,
                    alone_ns: cost_ns,
                    slow_steps: steps,
                    steps,
                },
                is_between: false,
                withheld: part,
            }
        })
        .collect()
}
