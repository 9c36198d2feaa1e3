//! Ranks that have nobody to be compared with, and get less of a processor than they want.

use std::collections::BTreeMap;

use super::spread::{average, middle};
use super::{Replays, SlowRank};
use crate::roles::Roles;
use crate::step::Placed;

/// A rank whose work takes less than this many times as long as it would is not slow.
const MEANINGFUL: f64 = 1.25;
/// What is withheld can hardly be more of a rank's work than this: the rest is measured with an error.
const MOST_WITHHELD: f64 = 0.95;

/// Those of a role of their own that would work faster by [`MEANINGFUL`] if no more were withheld from them than from the
/// rank in the middle: on hosts that are busy for everybody no one is at fault.
pub(super) fn slow(
    replays: &Replays<'_>,
    roles: &Roles,
    withheld: &BTreeMap<u32, f64>,
) -> Vec<SlowRank> {
    let alone = roles.all().filter_map(|role| match roles.ranks(role) {
        [rank] => Some(*rank),
        _ => None,
    });
    let mut parts: Vec<f64> = withheld.values().copied().collect();
    let usual = if parts.is_empty() { 0.0 } else { middle(&mut parts) };
    alone
        .filter_map(|rank| {
            let part = withheld.get(&rank).map(|part| part - usual).filter(|part| *part > 0.0)?;
            let (mut ratios, mut slow_steps) = (Vec::new(), 0);
            for step in replays.steps {
                let own = step.operations().iter().filter(|one| one.rank == rank);
                let work_ns: f64 =
                    own.filter(|one| replays.is_work(one)).map(|one| one.work_ns as f64).sum();
                let withheld_ns = (part * step.longest_ns() as f64).min(MOST_WITHHELD * work_ns);
                if work_ns > 0.0 {
                    let ratio = work_ns / (work_ns - withheld_ns);
                    slow_steps += u32::from(ratio > MEANINGFUL);
                    ratios.push(ratio);
                }
            }
            let steps = u32::try_from(ratios.len()).unwrap_or(u32::MAX);
            let ratio = average(&ratios);
            if ratio <= MEANINGFUL {
                return None;
            }
            let actual = |one: &Placed| one.work_ns as f64;
            let without = |one: &Placed| match one.rank == rank {
                true => actual(one) / ratio,
                false => actual(one),
            };
            let cost_ns = replays.time(actual) - replays.time(without);
            let (is_between, withheld) = (false, part);
            Some(SlowRank { rank, ratio, cost_ns, slow_steps, steps, is_between, withheld })
        })
        .collect()
}
