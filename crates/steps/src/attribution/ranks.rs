//! Ranks that are slow against the others of their role.

use std::collections::BTreeMap;

use super::SlowRank;
use super::means::Means;
use crate::kind::{Kinds, Nature};
use crate::roles::Roles;
use crate::step::Step;

/// A rank that computes less than this many times as long as the others is not slow.
const MEANINGFUL: f64 = 1.15;
/// In this part of the steps it must be so.
const MOST_STEPS: f64 = 0.75;
/// How many times the usual difference between ranks of one role in one step a slow one must differ by.
const DEVIATIONS: f64 = 4.0;

/// The slow ranks, costliest first. `cost` says what a step takes longer by one of them.
pub(super) fn slow(
    steps: &[Step],
    kinds: &Kinds,
    roles: &Roles,
    means: &Means,
    cost: impl Fn(u32) -> f64,
) -> Vec<SlowRank> {
    let ratios: Vec<BTreeMap<u32, f64>> =
        steps.iter().map(|step| ratios(step, kinds, means)).collect();
    let mut slow = Vec::new();
    for role in roles.all() {
        let ranks = roles.ranks(role);
        if ranks.len() < 2 {
            continue;
        }
        let logs: BTreeMap<u32, Vec<f64>> = ranks
            .iter()
            .map(|rank| (*rank, ratios.iter().filter_map(|of| Some(of.get(rank)?.ln())).collect()))
            .collect();
        let spread = spread(logs.values().map(|logs| average(logs)));
        for (rank, logs) in &logs {
            let limit = MEANINGFUL.ln().max(DEVIATIONS * spread);
            let slow_steps = logs.iter().filter(|log| **log > MEANINGFUL.ln()).count();
            let is_slow =
                average(logs) > limit && slow_steps as f64 >= MOST_STEPS * logs.len() as f64;
            if is_slow {
                slow.push(SlowRank {
                    rank: *rank,
                    ratio: average(logs).exp(),
                    cost_ns: cost(*rank),
                    slow_steps: u32::try_from(slow_steps).unwrap_or(u32::MAX),
                    steps: u32::try_from(logs.len()).unwrap_or(u32::MAX),
                });
            }
        }
    }
    slow.sort_by(|one, other| other.cost_ns.total_cmp(&one.cost_ns));
    slow
}

/// How many times as long each rank computed in a step as is usual of its role.
fn ratios(step: &Step, kinds: &Kinds, means: &Means) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for one in step.operations().iter().filter(|one| kinds.nature(one.kind) == Nature::Compute) {
        let (own, usual) = sums.entry(one.rank).or_default();
        *own += one.work_ns as f64;
        *usual += means.of_role(one);
    }
    let known = sums.into_iter().filter(|(_, (own, usual))| *own > 0.0 && *usual > 0.0);
    known.map(|(rank, (own, usual))| (rank, own / usual)).collect()
}

fn average(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The usual distance from the middle: 1.4826 times the median of the distances, which of a normal distribution
/// is the standard deviation. Of two nothing can be said.
fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.len() < 3 {
        return 0.0;
    }
    let middle = middle(&mut values);
    let mut distances: Vec<f64> = values.iter().map(|one| (one - middle).abs()).collect();
    1.4826 * self::middle(&mut distances)
}

/// The lower of the two in the middle.
fn middle(values: &mut [f64]) -> f64 {
    let place = (values.len() - 1) / 2;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}
