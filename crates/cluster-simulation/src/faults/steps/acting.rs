//! Jobs of training steps under the shipped coordinator, which may act: who is replaced, and by how many restarts.

use std::collections::BTreeSet;
use std::time::Duration;

use telltale_cluster::detection::Rule;
use telltale_cluster::node::NodeName;
use telltale_cluster::policy::{Mode, Policy};

use super::case::Case;
use super::job::Steps;
use crate::faults::machine::{Noise, SimulatedFault, name};
use crate::faults::week::{Plan, WeekOutcome, check_job};

/// What the coordinator did about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acted {
    /// Slow nodes that were replaced.
    pub replaced: BTreeSet<NodeName>,
    /// Slow nodes that were not, and cost enough that they must be named.
    pub left: BTreeSet<NodeName>,
    /// Healthy nodes that were replaced.
    pub innocent: BTreeSet<NodeName>,
    /// How often the job was restarted.
    pub restarts: u64,
    /// Whether all ranks run at the end.
    pub runs: bool,
}

/// Lets the coordinator act on a job for so long, with a spare for each node.
#[must_use]
pub fn act(case: &Case, time: Duration) -> Acted {
    let faults = case.faults();
    let ranks = case.traits.shape.ranks();
    let job = Steps::new(case.traits, false, case.seed);
    let plan = case.plan(time, Mode::Act, ranks);
    let WeekOutcome { barred, epoch, runs, .. } = check_job(&plan, job);
    let node = |fault| match fault {
        SimulatedFault::Node(node) => Some(name(node)),
        _ => None,
    };
    let slow: BTreeSet<NodeName> = faults.iter().filter_map(|one| node(one.slow.fault)).collect();
    let due = faults.iter().filter(|one| one.is_due).filter_map(|one| node(one.slow.fault));
    let barred: BTreeSet<NodeName> = barred.into_iter().collect();
    Acted {
        left: due.filter(|node| !barred.contains(node)).collect(),
        replaced: &barred & &slow,
        innocent: &barred - &slow,
        restarts: epoch.saturating_sub(1),
        runs,
    }
}

impl Case {
    /// How it is looked after.
    pub(super) fn plan(&self, time: Duration, mode: Mode, spares: u32) -> Plan {
        Plan {
            nodes: self.traits.shape.ranks(),
            spares,
            time,
            reports: self.reports,
            noise: Noise::CALM,
            rule: Rule::OwnHistory,
            mode,
            continuity_windows: Policy::default().continuity_windows,
            seed: self.seed,
            slow: self.slow.clone(),
            kept_evaluations: 1,
        }
    }
}
