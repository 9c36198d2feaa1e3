//! Ranks that are slow against the others of their role.

use std::collections::BTreeMap;

use super::means::Means;
use super::{SlowRank, Slowness};
use crate::kind::{Kinds, Nature};
use crate::roles::Roles;
use crate::spread::{average, error, spread};
use crate::step::Step;

/// A rank that computes less than this many times as long as the others is not slow.
pub(super) const MEANINGFUL: f64 = 1.15;
/// In more than this part of the steps it must be so: a rank whose processor is limited is not slow in each.
const MOST_STEPS: f64 = 0.5;
/// How many times its own error the average over the steps must be: what varies from step to step may be chance, and each
/// look at many ranks is another one. Of few steps the error itself is uncertain, so there it must be more times.
const ERRORS: f64 = 4.5;
const ERRORS_OF_FEW: f64 = 30.0;
/// How many times the usual difference between ranks of one role in one step a slow one must differ by.
const DEVIATIONS: f64 = 4.0;

/// Of what a rank computes longer than the only other one of its role, this part must be left in all of its own time.
const LEAST_TOTAL: f64 = 0.5;

/// A rank's own time in one step, and what is usual of its role, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct OwnTime {
    computed: f64,
    usual_computed: f64,
    between: f64,
    usual_between: f64,
}

/// What of its own time a rank is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Computations,
    Gaps,
    All,
}

/// The slow ranks. What they cost is not known yet.
pub(super) fn slow(steps: &[Step], kinds: &Kinds, roles: &Roles, means: &Means) -> Vec<SlowRank> {
    let times: Vec<BTreeMap<u32, OwnTime>> =
        steps.iter().map(|step| own_times(step, kinds, means)).collect();
    let are_computations_measured = means.are_computations_measured(kinds);
    let mut slow = Vec::new();
    for role in roles.all() {
        let ranks = roles.ranks(role);
        if ranks.len() < 2 {
            continue;
        }
        let [computing, between, all] =
            [By::Computations, By::Gaps, By::All].map(|by| Judged::of(ranks, &times, by));
        for rank in ranks {
            let [computes_slowly, is_slow_between] =
                [&computing, &between].map(|by| by.is_slow(*rank));
            let judged = match (computes_slowly, is_slow_between) {
                (false, false) => continue,
                (true, false) if !takes_longer(*rank, ranks, &times) => continue,
                (true, false) => &computing,
                (false, true) => &between,
                (true, true) => &all,
            };
            let is_between = !computes_slowly && are_computations_measured;
            let (slow_steps, steps) = judged.slow_steps(*rank);
            slow.push(SlowRank {
                rank: *rank,
                slowness: Slowness {
                    ratio: judged.ratio(*rank),
                    slow_steps,
                    steps,
                    ..Slowness::default()
                },
                is_between,
                withheld: 0.0,
            });
        }
    }
    slow
}

/// Whether a rank that computes longer than the only other one of its role also takes longer for all that is its own.
/// Otherwise the other's computations are short because they are not all measured, or because it says so. Of three ranks
/// two would have to.
fn takes_longer(rank: u32, ranks: &[u32], times: &[BTreeMap<u32, OwnTime>]) -> bool {
    let [one, other] = ranks else { return true };
    let other = if *one == rank { *other } else { *one };
    let longer = |of: fn(&OwnTime) -> f64| -> f64 {
        let both = times.iter().filter_map(|times| Some((times.get(&rank)?, times.get(&other)?)));
        both.map(|(own, others)| of(own) - of(others)).sum()
    };
    longer(|own| own.computed + own.between) > LEAST_TOTAL * longer(|own| own.computed)
}

/// How many times as long ranks of one role took in each step as is usual of it, in logarithms.
struct Judged {
    logs: BTreeMap<u32, Vec<f64>>,
    /// From which average on a rank is slow.
    limit: f64,
}

impl Judged {
    fn of(ranks: &[u32], times: &[BTreeMap<u32, OwnTime>], by: By) -> Self {
        let of_rank = |rank: &u32| -> Vec<f64> {
            times.iter().filter_map(|of| of.get(rank)?.log_ratio(by)).collect()
        };
        let logs: BTreeMap<u32, Vec<f64>> =
            ranks.iter().map(|rank| (*rank, of_rank(rank))).collect();
        let spread = spread(logs.values().map(|logs| average(logs)));
        Self { logs, limit: MEANINGFUL.ln().max(DEVIATIONS * spread) }
    }

    fn is_slow(&self, rank: u32) -> bool {
        let (slow, steps) = self.slow_steps(rank);
        let is_mostly_slow = f64::from(slow) > MOST_STEPS * f64::from(steps);
        let logs = &self.logs[&rank];
        let errors = ERRORS + ERRORS_OF_FEW / logs.len() as f64;
        is_mostly_slow && average(logs) > self.limit.max(errors * error(logs))
    }

    /// In how many steps it was slow, and of how many.
    fn slow_steps(&self, rank: u32) -> (u32, u32) {
        let logs = &self.logs[&rank];
        let slow = logs.iter().filter(|log| **log > MEANINGFUL.ln()).count();
        [slow, logs.len()].map(|count| u32::try_from(count).unwrap_or(u32::MAX)).into()
    }

    fn ratio(&self, rank: u32) -> f64 {
        average(&self.logs[&rank]).exp()
    }
}

impl OwnTime {
    /// How many times as long as is usual it took, as a logarithm; nothing where there was none.
    fn log_ratio(self, by: By) -> Option<f64> {
        let (own, usual) = match by {
            By::Computations => (self.computed, self.usual_computed),
            // Against all that is its own: a gap that is nothing is easily a hundred times as long.
            By::Gaps if self.usual_between > 0.0 => {
                (self.usual_computed + self.between, self.usual_computed + self.usual_between)
            }
            By::Gaps => (0.0, 0.0),
            By::All => (self.computed + self.between, self.usual_computed + self.usual_between),
        };
        (own > 0.0 && usual > 0.0).then(|| (own / usual).ln())
    }
}

/// Each rank's own time in a step.
fn own_times(step: &Step, kinds: &Kinds, means: &Means) -> BTreeMap<u32, OwnTime> {
    let mut times: BTreeMap<u32, OwnTime> = BTreeMap::new();
    for one in step.operations() {
        let (own, usual) = (one.work_ns as f64, means.of_role(one));
        match kinds.nature(one.kind) {
            Nature::Communication => {}
            Nature::Compute => {
                let time = times.entry(one.rank).or_default();
                time.computed += own;
                time.usual_computed += usual;
            }
            Nature::Between => {
                let time = times.entry(one.rank).or_default();
                time.between += own;
                time.usual_between += usual;
            }
        }
    }
    times
}
