//! Who waits for whom in a job's steps, with the names of nodes.

use telltale_steps::{Step, Wait, waits};

use crate::detection::members::Members;
use crate::node::NodeName;
use crate::rank::Rank;

/// Pairs of ranks that are named.
const MAX_NAMED: usize = telltale_wire::limits::cluster::MAX_SLOW;
/// What is a smaller part of a step is not worth a name.
const LEAST_PART: f64 = 0.01;

/// How long a rank waits for another one.
#[derive(Debug, Clone, PartialEq)]
pub struct RankWait {
    /// Which waits.
    pub rank: Rank,
    /// Its node.
    pub node: Option<NodeName>,
    /// For which.
    pub awaited: Rank,
    /// Its node.
    pub awaited_node: Option<NodeName>,
    /// How long in one step, on the average, in nanoseconds.
    pub ns: f64,
}

/// The longest waits of some steps that take `step_ns`.
pub(super) fn longest(steps: &[Step], step_ns: f64, members: &Members) -> Vec<RankWait> {
    let node = |rank| members.of_rank(rank).map(|node| members.name(node).clone());
    let named = |one: Wait| {
        let (rank, awaited) = (Rank(one.rank), Rank(one.awaited));
        RankWait { rank, node: node(rank), awaited, awaited_node: node(awaited), ns: one.ns }
    };
    let long = waits(steps).into_iter().take_while(|one| one.ns >= LEAST_PART * step_ns);
    long.take(MAX_NAMED).map(named).collect()
}
