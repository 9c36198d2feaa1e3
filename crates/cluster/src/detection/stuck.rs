//! Transfers that both ends have begun and that do not end, and what they have in common.
//!
//! The sender has given its data to the network and the receiver waits for them, so what holds them lies
//! between the two, or is a half of one of them. A transfer that only one end has begun waits for the
//! other end, and says nothing about the network.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::detection::finding::DetectorFinding;
use crate::detection::members::Members;
use crate::detection::suspicion::Culprit;
use crate::rank::Rank;
use crate::verdict::{Evidence, VerdictKind};

/// A transfer that both ends have begun and that does not end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StuckTransfer {
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) evidence: Evidence,
}

/// Nodes, smaller number first; twice the same where the transfer stays on its node.
type Pair = (u32, u32);

/// Which ways between two nodes are stuck.
#[derive(Debug, Clone, Copy, Default)]
struct Ways {
    up: bool,
    down: bool,
}

/// Where these transfers are stuck; none when that is anywhere. Each place could be at fault: a node that
/// has several of them, a link that has one, or one thing that all these need. Where all transfers that
/// have begun seem stuck, the ends do not say which of them wait for data.
///
/// It is never certain: of a client that reports beginnings alone, a transfer may wait for a device at both ends.
pub(super) fn located(
    transfers: &[StuckTransfer],
    all_are_stuck: bool,
    members: &Members,
) -> Option<DetectorFinding> {
    let mut pairs: BTreeMap<Pair, Ways> = BTreeMap::new();
    for transfer in transfers {
        let ends = (members.of_rank(transfer.from), members.of_rank(transfer.to));
        let (Some(from), Some(to)) = ends else { continue };
        let ways = pairs.entry((from.min(to), from.max(to))).or_default();
        if from <= to {
            ways.up = true;
        } else {
            ways.down = true;
        }
    }
    if pairs.is_empty() || (all_are_stuck && pairs.len() > 1 && is_connected(&pairs)) {
        return None;
    }
    let kind = VerdictKind::CommunicationHang;
    let evidence = transfers.iter().map(|transfer| transfer.evidence.clone()).collect();
    let finding = DetectorFinding::of_culprits(kind, culprits(&pairs), evidence);
    Some(DetectorFinding { is_certain: false, ..finding })
}

/// The nodes at the other end of each node's pairs; a node itself for what is stuck within it.
fn neighbours(pairs: &BTreeMap<Pair, Ways>) -> BTreeMap<u32, Vec<u32>> {
    let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (one, other) in pairs.keys() {
        neighbours.entry(*one).or_default().push(*other);
        neighbours.entry(*other).or_default().push(*one);
    }
    neighbours
}

/// The fewest places that all pairs have in common, found by taking the node with the most of them first;
/// of a pair alone the link and its ends.
fn culprits(pairs: &BTreeMap<Pair, Ways>) -> Vec<Culprit> {
    let neighbours = neighbours(pairs);
    let mut counts: BTreeMap<u32, usize> =
        neighbours.iter().map(|(node, others)| (*node, others.len())).collect();
    let mut by_count: BTreeSet<(usize, Reverse<u32>)> =
        counts.iter().map(|(node, count)| (*count, Reverse(*node))).collect();
    let mut nodes = BTreeSet::new();
    while let Some((_, Reverse(node))) = by_count.pop_last().filter(|(count, _)| *count > 1) {
        nodes.insert(node);
        counts.remove(&node);
        for other in &neighbours[&node] {
            if let Some(count) = counts.get_mut(other) {
                by_count.remove(&(*count, Reverse(*other)));
                *count -= 1;
                by_count.insert((*count, Reverse(*other)));
            }
        }
    }
    let mut culprits: BTreeSet<Culprit> = nodes.iter().copied().map(Culprit::Node).collect();
    for ((one, other), ways) in pairs {
        if nodes.contains(one) || nodes.contains(other) {
            continue;
        }
        culprits.insert(match ways {
            Ways { up: true, down: false } => Culprit::OneWay(*one, *other),
            Ways { up: false, .. } => Culprit::OneWay(*other, *one),
            Ways { up: true, down: true } => Culprit::BothWays(*one, *other),
        });
        if pairs.len() == 1 {
            culprits.extend([Culprit::Node(*one), Culprit::Node(*other)]);
        }
    }
    culprits.into_iter().collect()
}

/// Whether one can get from each node to each other over these pairs.
fn is_connected(pairs: &BTreeMap<Pair, Ways>) -> bool {
    let neighbours = neighbours(pairs);
    let mut ahead: Vec<u32> = neighbours.keys().copied().take(1).collect();
    let mut reached: BTreeSet<u32> = ahead.iter().copied().collect();
    while let Some(node) = ahead.pop() {
        ahead.extend(neighbours[&node].iter().filter(|other| reached.insert(**other)));
    }
    reached.len() == neighbours.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[Pair]) -> Vec<Culprit> {
        culprits(&pairs.iter().map(|pair| (*pair, Ways { up: true, down: false })).collect())
    }

    #[test]
    fn what_all_stuck_transfers_have_in_common_is_suspected() {
        let [one, two] = [1, 2].map(Culprit::Node);
        assert_eq!(of(&[(1, 2)]), [one, two, Culprit::OneWay(1, 2)]);
        assert_eq!(of(&[(1, 2), (2, 3)]), [two], "the node in the middle");
        assert_eq!(of(&[(2, 2)]), [two], "within a node");
        let cut = [Culprit::OneWay(1, 2), Culprit::OneWay(3, 4)];
        assert_eq!(of(&[(1, 2), (3, 4)]), cut, "what both links need");
        let two_of_them = [two, Culprit::OneWay(5, 6)];
        assert_eq!(of(&[(0, 2), (1, 2), (5, 6)]), two_of_them);
        assert_eq!(of(&[]), []);
        let back = BTreeMap::from([((1, 2), Ways { up: false, down: true })]);
        assert!(culprits(&back).contains(&Culprit::OneWay(2, 1)));
        let both = BTreeMap::from([((1, 2), Ways { up: true, down: true })]);
        assert!(culprits(&both).contains(&Culprit::BothWays(1, 2)));
    }
}
