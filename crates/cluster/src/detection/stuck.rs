//! Transfers that both ends have begun and that do not end, and what they have in common.
//!
//! The sender has given its data to the network and the receiver waits for them, so what holds them lies
//! between the two, or is a half of one of them. A transfer that only one end has begun waits for the
//! other end, and says nothing about the network.

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
/// have begun seem stuck, the ends do not tell those that the network has from those that wait for data.
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
    let is_one_piece = pairs.len() > 1 && is_connected(pairs.keys().copied().collect());
    let culprits = culprits(pairs);
    if culprits.is_empty() || (all_are_stuck && culprits.len() > 1 && is_one_piece) {
        return None;
    }
    let kind = VerdictKind::CommunicationHang;
    let evidence = transfers.iter().map(|transfer| transfer.evidence.clone()).collect();
    Some(DetectorFinding::of_culprits(kind, culprits, evidence))
}

/// The fewest places that all pairs have in common, found by taking the node with the most of them first;
/// of a pair alone it cannot be told whether it is the link or one of its ends.
fn culprits(mut pairs: BTreeMap<Pair, Ways>) -> Vec<Culprit> {
    let mut culprits = BTreeSet::new();
    loop {
        let mut peers: BTreeMap<u32, u32> = BTreeMap::new();
        for (one, other) in pairs.keys() {
            *peers.entry(*one).or_default() += 1;
            // What is stuck within a node is its own.
            *peers.entry(*other).or_default() += 1;
        }
        let most = peers.into_iter().max_by_key(|(node, count)| (*count, std::cmp::Reverse(*node)));
        let Some((node, _)) = most.filter(|(_, count)| *count > 1) else { break };
        pairs.retain(|(one, other), _| *one != node && *other != node);
        culprits.insert(Culprit::Node(node));
    }
    let has_one_pair = culprits.is_empty() && pairs.len() == 1;
    for ((one, other), ways) in pairs {
        culprits.insert(match ways {
            Ways { up: true, down: false } => Culprit::OneWay(one, other),
            Ways { up: false, .. } => Culprit::OneWay(other, one),
            Ways { up: true, down: true } => Culprit::BothWays(one, other),
        });
        if has_one_pair {
            culprits.extend([Culprit::Node(one), Culprit::Node(other)]);
        }
    }
    culprits.into_iter().collect()
}

/// Whether one can get from each node to each other over these pairs.
fn is_connected(mut pairs: Vec<Pair>) -> bool {
    let mut reached: BTreeSet<u32> =
        pairs.pop().into_iter().flat_map(|pair| [pair.0, pair.1]).collect();
    loop {
        let before = pairs.len();
        pairs.retain(|(one, other)| {
            let is_reached = reached.contains(one) || reached.contains(other);
            if is_reached {
                reached.extend([*one, *other]);
            }
            !is_reached
        });
        if pairs.is_empty() || pairs.len() == before {
            return pairs.is_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[Pair]) -> Vec<Culprit> {
        culprits(pairs.iter().map(|pair| (*pair, Ways { up: true, down: false })).collect())
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
        assert!(culprits(back).contains(&Culprit::OneWay(2, 1)));
        let both = BTreeMap::from([((1, 2), Ways { up: true, down: true })]);
        assert!(culprits(both).contains(&Culprit::BothWays(1, 2)));
    }
}
