//! What is slow among transfers that were measured while their ranks waited for others.
//!
//! In a ring, a pipeline or a round of exchanges, each rank begins when the one before it lets it: one slow link
//! or node makes all of their transfers long, and those of its neighbours as long as its own. Such
//! latencies show that something among these nodes is slow, and not which; so they name no single node.
//!
//! A short transfer is held up by long ones: what a healthy long one varies by is many times what the short one takes.
//! So what counts is how much longer a transfer takes against the longest that it may have waited for.

use std::collections::BTreeMap;

use crate::detection::finding::DetectorFinding;
use crate::detection::matrix::{Matrix, MatrixCell, SlowFrom};
use crate::detection::members::Members;
use crate::detection::slowness::nanoseconds;
use crate::detection::suspicion::Culprit;
use crate::verdict::{Evidence, VerdictKind};

/// A transfer is slow if it takes longer than usual by this many times the longest usual one among those that wait for
/// each other. The load of a healthy job comes and goes by a third of that, and waits add up.
const LEAST_EXCESS: f64 = 1.0;
/// Edges whose values go into one finding.
const SHOWN_EDGES: usize = 6;

/// One finding for each set of nodes that wait for one another and have become slow.
pub(super) fn findings(
    matrix: &Matrix,
    members: &Members,
    limit: SlowFrom,
) -> Vec<DetectorFinding> {
    let held_up =
        || matrix.cells().iter().filter(|cell| cell.is_held_up && matrix.is_present(cell));
    let may_be_slow = |cell: &&MatrixCell| {
        let level = cell.change.level();
        level.is_some_and(|level| cell.change.is_warm() && limit.is_slow(cell, level))
    };
    if !held_up().any(|cell| cell.change.is_alarmed() && may_be_slow(&cell)) {
        return Vec::new();
    }
    // An edge that has just nothing to say still joins its ends: a finding is known again by its nodes.
    let joining = matrix.cells().iter().filter(|cell| {
        cell.is_held_up
            && matrix.is_recent(cell)
            && [cell.from, cell.to].iter().all(|node| members.holds_slot(*node))
    });
    let mut joined = Joined::by(joining.chain(held_up()));
    let mut longest: BTreeMap<u32, f32> = BTreeMap::new();
    for (cell, usual) in matrix.usual_of_keys().filter(|(cell, _)| cell.is_held_up) {
        let of_set = longest.entry(joined.set_of(cell.from)).or_insert(usual);
        *of_set = of_set.max(usual);
    }
    let mut slow: BTreeMap<u32, Vec<&MatrixCell>> = BTreeMap::new();
    for cell in held_up().filter(may_be_slow) {
        let set = joined.set_of(cell.from);
        let longest = longest.get(&set).copied().unwrap_or(cell.usual);
        if excess_ns(cell) >= LEAST_EXCESS * f64::from(longest).exp() {
            slow.entry(set).or_default().push(cell);
        }
    }
    let mut sets = joined.sets();
    let alarmed =
        slow.into_iter().filter(|(_, cells)| cells.iter().any(|cell| cell.change.is_alarmed()));
    alarmed
        .map(|(set, cells)| {
            let is_news = cells.iter().any(|cell| matrix.is_news(cell));
            let nodes = sets.remove(&set).unwrap_or_default();
            DetectorFinding { is_news, ..finding(nodes, cells, members) }
        })
        .collect()
}

/// By how much longer than usual transfers of a cell take.
fn excess_ns(cell: &MatrixCell) -> f64 {
    let level = cell.change.level().unwrap_or(0.0);
    f64::from(cell.usual + level).exp() - f64::from(cell.usual).exp()
}

fn finding(nodes: Vec<u32>, mut slow: Vec<&MatrixCell>, members: &Members) -> DetectorFinding {
    let level = |cell: &MatrixCell| cell.change.level().unwrap_or(0.0);
    slow.sort_by(|one, other| level(other).total_cmp(&level(one)));
    let connections = u32::try_from(slow.len()).unwrap_or(u32::MAX);
    let mut evidence = vec![Evidence::HeldUp { connections }];
    evidence.extend(slow.iter().take(SHOWN_EDGES).map(|cell| Evidence::Slower {
        from: members.name(cell.from).clone(),
        to: members.name(cell.to).clone(),
        usual_ns: nanoseconds(cell.usual),
        now_ns: nanoseconds(cell.usual + level(cell)),
    }));
    // Any of these nodes, or what lies between two of them.
    DetectorFinding {
        confidence: 1.0 / nodes.len() as f64,
        kind: VerdictKind::SlowLink,
        culprits: nodes.into_iter().map(Culprit::Node).collect(),
        is_certain: false,
        evidence,
        is_news: true,
    }
}

/// Nodes that are joined by edges, directly or by others. A set has the number of its smallest node.
struct Joined {
    leader: BTreeMap<u32, u32>,
}

impl Joined {
    fn by<'a>(cells: impl Iterator<Item = &'a MatrixCell>) -> Self {
        let mut joined = Self { leader: BTreeMap::new() };
        for MatrixCell { from, to, .. } in cells {
            let (one, other) = (joined.set_of(*from), joined.set_of(*to));
            joined.leader.insert(one.max(other), one.min(other));
        }
        joined
    }

    /// The number of a node's set. The way there is short for the next one who asks.
    fn set_of(&mut self, node: u32) -> u32 {
        let mut set = node;
        while let Some(next) = self.leader.get(&set).filter(|next| **next != set) {
            set = *next;
        }
        let mut at = node;
        while let Some(next) = self.leader.insert(at, set).filter(|next| *next != at) {
            at = next;
        }
        set
    }

    /// All sets, with their nodes in order.
    fn sets(mut self) -> BTreeMap<u32, Vec<u32>> {
        let nodes: Vec<u32> = self.leader.keys().copied().collect();
        let mut sets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        nodes.into_iter().for_each(|node| sets.entry(self.set_of(node)).or_default().push(node));
        sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_is_one_set_and_is_found_fast() {
        // Each edge joins a set to one with a smaller number: without short ways the last is far from its set.
        let nodes = 200_000;
        let mut joined = Joined { leader: BTreeMap::new() };
        for node in (0..nodes).rev() {
            let (one, other) = (joined.set_of(node), joined.set_of(node + 1));
            joined.leader.insert(one.max(other), one.min(other));
        }
        let sets = joined.sets();
        assert_eq!(sets.len(), 1);
        assert!(sets[&0].iter().copied().eq(0..=nodes));
    }
}
