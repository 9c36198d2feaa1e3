//! A group of ranks that stands still: who waits in it, who is missing from it, and what it says of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::hang::{At, HangGroup};
use crate::detection::members::Members;
use crate::detection::stuck::StuckTransfer;
use crate::group::GroupId;
use crate::rank::Rank;
use crate::time::Moment;
use crate::verdict::{Evidence, MAX_EVIDENCE, VerdictKind};

/// Which ends have begun a transfer.
#[derive(Debug, Clone, Copy, Default)]
struct BegunAt {
    sender: bool,
    receiver: bool,
}

/// One group that stands still.
pub(super) struct Stalled<'a> {
    id: GroupId,
    pub(super) group: &'a HangGroup,
    for_long: Duration,
    /// The collective that a rank waits in; 0 where they only wait in transfers.
    pub(super) awaited: u64,
    /// Ranks that should be in the group and never reported it.
    never_seen: Vec<Rank>,
}

impl<'a> Stalled<'a> {
    pub(super) fn new(id: GroupId, group: &'a HangGroup, now: Moment, members: &Members) -> Self {
        // Who is in an earlier collective than others is not missing from theirs.
        let inside = group.ranks.values().filter(|at| at.is_inside());
        let awaited = inside.map(|at| at.finished.saturating_add(1)).min().unwrap_or(0);
        let never_seen = if id == GroupId::WORLD && awaited > 0 {
            members.ranks().filter(|rank| !group.ranks.contains_key(rank)).collect()
        } else {
            Vec::new()
        };
        Self { id, group, for_long: now.since(group.last_move), awaited, never_seen }
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> {
        self.group.ranks.keys().copied().chain(self.never_seen.iter().copied())
    }

    /// Whether a node that is not heard is part of it, and fell silent before the standstill was known: one
    /// that was heard for longer is no reason for it.
    pub(super) fn stands_still_for(
        &self,
        (node, last_heard): (u32, Moment),
        allowed: Duration,
        members: &Members,
    ) -> bool {
        last_heard < self.group.last_move.after(allowed)
            && self.ranks().any(|rank| members.of_rank(rank) == Some(node))
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = Rank> {
        self.group.ranks.iter().filter(|(_, at)| at.waits()).map(|(rank, _)| *rank)
    }

    /// Who has not entered the collective that others wait in, or is waited for in a transfer.
    pub(super) fn missing(&self) -> Vec<Rank> {
        let ranks = &self.group.ranks;
        if self.awaited == 0 {
            let awaited = self.awaited_in_transfers();
            let is_waiting = |rank: &Rank| ranks.get(rank).is_some_and(At::waits);
            return awaited.into_iter().filter(|rank| !is_waiting(rank)).collect();
        }
        let behind = ranks.iter().filter(|(_, at)| at.entered < self.awaited).map(|one| *one.0);
        behind.chain(self.never_seen.iter().copied()).collect()
    }

    /// Transfers that one end or both have begun: who sends, and who receives.
    fn transfers(&self) -> BTreeMap<(Rank, Rank), BegunAt> {
        let mut transfers: BTreeMap<(Rank, Rank), BegunAt> = BTreeMap::new();
        for (rank, at) in &self.group.ranks {
            for to in &at.sends_to {
                transfers.entry((*rank, *to)).or_default().sender = true;
            }
            for from in &at.receives_from {
                transfers.entry((*from, *rank)).or_default().receiver = true;
            }
        }
        transfers
    }

    /// How many transfers one end or both have begun.
    pub(super) fn transfers_begun(&self) -> usize {
        self.transfers().len()
    }

    /// Who is at the other end of a transfer that has begun.
    fn awaited_in_transfers(&self) -> BTreeSet<Rank> {
        let ends = |at: &'a At| at.sends_to.iter().chain(&at.receives_from).copied();
        self.group.ranks.values().flat_map(ends).collect()
    }

    /// Transfers that both ends have begun.
    pub(super) fn stuck_transfers(&self) -> Vec<StuckTransfer> {
        let (group, stalled) = (self.id, self.for_long);
        let stuck = |((from, to), begun): ((Rank, Rank), BegunAt)| {
            let evidence = Evidence::Stuck { group, from, to, stalled };
            (begun.sender && begun.receiver).then_some(StuckTransfer { from, to, evidence })
        };
        self.transfers().into_iter().filter_map(stuck).collect()
    }

    /// Ranks that have begun a transfer which is stuck.
    pub(super) fn in_stuck(&self) -> Vec<Rank> {
        let ends = |stuck: StuckTransfer| [stuck.from, stuck.to];
        self.stuck_transfers().into_iter().flat_map(ends).collect()
    }

    pub(super) fn behind(&self, rank: Rank) -> Evidence {
        let entered = self.group.ranks.get(&rank).map_or(0, |at| at.entered);
        let (group, awaited, stalled) = (self.id, self.awaited, self.for_long);
        Evidence::Behind { group, rank, entered, awaited, stalled }
    }

    fn inside(&self, rank: Rank) -> Evidence {
        let sequence = self.group.ranks.get(&rank).map_or(0, |at| at.finished.saturating_add(1));
        Evidence::Inside { group: self.id, rank, sequence, stalled: self.for_long }
    }

    /// Everybody is in it: the fault is in the communication.
    pub(super) fn all_inside(&self, members: &Members) -> Vec<DetectorFinding> {
        let kind = VerdictKind::CommunicationHang;
        // Who is waited for in a transfer and waits in none holds the others up.
        let transfers_none =
            |rank: &Rank| self.group.ranks.get(rank).is_some_and(|at| !at.transfers());
        let holders: Vec<Rank> =
            self.awaited_in_transfers().into_iter().filter(transfers_none).collect();
        if !holders.is_empty() {
            return self.one_among(kind, &holders, members);
        }
        let waiting: Vec<Rank> = self.waiting().collect();
        let finished = |rank: &Rank| self.group.ranks[rank].finished;
        let least = waiting.iter().map(finished).min();
        let behind: Vec<Rank> =
            waiting.iter().copied().filter(|rank| Some(finished(rank)) == least).collect();
        if behind.len() * 2 < self.group.ranks.len() {
            return by_node(kind, &behind, |rank| self.inside(rank), members);
        }
        self.one_among(kind, &waiting, members)
    }

    /// Every rank waits for another that waits, over several groups.
    pub(super) fn circle(&self, members: &Members) -> Option<DetectorFinding> {
        let ranks: Vec<Rank> = self.waiting().collect();
        self.one_among(VerdictKind::NonCommunicationHang, &ranks, members).pop()
    }

    fn one_among(
        &self,
        kind: VerdictKind,
        ranks: &[Rank],
        members: &Members,
    ) -> Vec<DetectorFinding> {
        let nodes: BTreeSet<u32> = ranks.iter().filter_map(|rank| members.of_rank(*rank)).collect();
        if nodes.is_empty() {
            return Vec::new();
        }
        let evidence = ranks.iter().take(MAX_EVIDENCE).map(|rank| self.inside(*rank)).collect();
        vec![DetectorFinding::of_one_among(kind, nodes, evidence)]
    }
}

/// A finding for each node, with the values of its ranks.
pub(super) fn by_node(
    kind: VerdictKind,
    ranks: &[Rank],
    evidence: impl Fn(Rank) -> Evidence,
    members: &Members,
) -> Vec<DetectorFinding> {
    let mut of_node: BTreeMap<u32, Vec<Evidence>> = BTreeMap::new();
    for rank in ranks {
        if let Some(node) = members.of_rank(*rank) {
            of_node.entry(node).or_default().push(evidence(*rank));
        }
    }
    let finding = |(node, evidence)| DetectorFinding::of_node(kind, node, 1.0, evidence);
    of_node.into_iter().map(finding).collect()
}
