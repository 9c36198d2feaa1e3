//! Collectives that do not end: who is not in them, or that all are.
//!
//! Ranks wait for each other over several groups at once, so a rank that is missing from one
//! collective may itself wait in another. The named rank is waited for and itself waits for none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::members::Members;
use crate::group::GroupId;
use crate::observation::{MAX_AWAITED_RANKS, MAX_PROGRESS_PER_REPORT, Observation, WorkerState};
use crate::rank::Rank;
use crate::time::Moment;
use crate::verdict::{Evidence, MAX_EVIDENCE, VerdictKind};

/// Pairs of a group and a rank that are kept at once.
const MAX_ENTRIES: usize = 4_000_000;
/// A standstill is a hang after this many times the longest pause of late.
const PAUSES: u32 = 3;
/// What is left of the longest pause after each movement: pauses of the past are forgotten.
const PAUSE_KEPT_PERCENT: u32 = 99;

/// When a standstill is a hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HangTimeout {
    /// At least this long.
    pub(super) after: Duration,
    /// At least this long while no collective of the group has finished yet.
    pub(super) at_start: Duration,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Hangs {
    groups: BTreeMap<GroupId, HangGroup>,
    entries: usize,
    /// Since when the system says that a worker is stopped, and it has done nothing.
    stopped: BTreeMap<Rank, Moment>,
    left: BTreeSet<Rank>,
    no_place: u64,
}

#[derive(Debug, Clone)]
struct HangGroup {
    ranks: BTreeMap<Rank, At>,
    last_move: Moment,
    longest_pause: Duration,
    has_finished_any: bool,
}

/// Where a rank is in its group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct At {
    entered: u64,
    finished: u64,
    awaits: Vec<Rank>,
    transferred: u64,
}

impl At {
    const fn is_inside(&self) -> bool {
        self.entered > self.finished
    }

    fn waits(&self) -> bool {
        self.is_inside() || !self.awaits.is_empty()
    }
}

impl Hangs {
    /// A new epoch begins.
    pub(super) fn forget(&mut self) {
        *self = Self { no_place: self.no_place, ..Self::default() };
    }

    /// Progress that was not taken for want of place or because the rank is not the node's.
    pub(super) const fn no_place(&self) -> u64 {
        self.no_place
    }

    /// Takes one node's report.
    pub(super) fn observe(
        &mut self,
        now: Moment,
        node: u32,
        observation: &Observation,
        members: &Members,
    ) {
        for worker in &observation.workers {
            if members.of_rank(worker.rank) != Some(node) {
                continue;
            }
            match worker.state {
                WorkerState::Stopped => drop(self.stopped.entry(worker.rank).or_insert(now)),
                WorkerState::Running => drop(self.stopped.remove(&worker.rank)),
                WorkerState::Finished | WorkerState::Ended | WorkerState::Failed { .. } => {
                    self.stopped.remove(&worker.rank);
                    self.left.insert(worker.rank);
                }
            }
        }
        for progress in observation.progress.iter().take(MAX_PROGRESS_PER_REPORT) {
            if members.of_rank(progress.rank) != Some(node) {
                self.no_place += 1;
                continue;
            }
            let entered = progress.entered.max(progress.finished);
            let awaits = progress.awaits.iter().copied().take(MAX_AWAITED_RANKS);
            let awaits = awaits.filter(|rank| *rank != progress.rank).collect();
            let (finished, transferred) = (progress.finished, progress.transferred);
            let at = At { entered, finished, awaits, transferred };
            let has_moved =
                self.move_to(now, progress.group, progress.rank, at, observation.excused);
            // One that is stopped and continued repeatedly is slow, and does not stand still.
            if has_moved && let Some(since) = self.stopped.get_mut(&progress.rank) {
                *since = now;
            }
        }
    }

    /// Says whether the rank has moved on since what it reported before.
    fn move_to(
        &mut self,
        now: Moment,
        group: GroupId,
        rank: Rank,
        at: At,
        is_excused: bool,
    ) -> bool {
        let is_known = self.groups.get(&group).is_some_and(|held| held.ranks.contains_key(&rank));
        if !is_known {
            if self.entries >= MAX_ENTRIES {
                self.no_place += 1;
                return false;
            }
            self.entries += 1;
        }
        let group = self.groups.entry(group).or_insert_with(|| HangGroup {
            ranks: BTreeMap::new(),
            last_move: now,
            longest_pause: Duration::ZERO,
            has_finished_any: false,
        });
        group.has_finished_any |= at.finished > 0;
        let has_moved = group.ranks.get(&rank) != Some(&at);
        if has_moved && !is_excused {
            let kept = group.longest_pause * PAUSE_KEPT_PERCENT / 100;
            group.longest_pause = kept.max(now.since(group.last_move));
        }
        if has_moved || is_excused {
            group.last_move = group.last_move.max(now);
        }
        group.ranks.insert(rank, at);
        has_moved && is_known
    }

    /// Who is suspected of what stands still, while these nodes are not heard, each since some moment. A group with
    /// one of them stands still because of that, and has no verdict of its own.
    pub(super) fn findings(
        &self,
        now: Moment,
        timeout: HangTimeout,
        unheard: &[(u32, Moment)],
        members: &Members,
    ) -> Vec<DetectorFinding> {
        let stalled: Vec<Stalled<'_>> = self
            .groups
            .iter()
            .filter(|(_, group)| self.is_stalled(now, group, timeout))
            .map(|(id, group)| Stalled::new(*id, group, now, members))
            .collect();
        let waiting: BTreeSet<Rank> = stalled.iter().flat_map(Stalled::waiting).collect();
        let (explained, own): (Vec<&Stalled<'_>>, Vec<&Stalled<'_>>) =
            stalled.iter().partition(|group| {
                let allowed = Self::allowed(group.group, timeout);
                unheard.iter().any(|one| group.stands_still_for(*one, allowed, members))
            });
        let mut findings = Vec::new();
        for group in own {
            findings.extend(self.explain(group, &waiting, members));
        }
        if findings.is_empty() {
            findings.extend(self.long_stopped(now, timeout, members));
        }
        if findings.is_empty() && explained.is_empty() {
            findings.extend(stalled.iter().filter_map(|group| group.circle(members)));
        }
        findings
    }

    /// Who is stopped and does not go on, whatever its group's progress says, also without a report
    /// of any. Where most are, the job was stopped on purpose, and no node is named alone.
    fn long_stopped(
        &self,
        now: Moment,
        timeout: HangTimeout,
        members: &Members,
    ) -> Vec<DetectorFinding> {
        let long = self.stopped.iter().filter(|(_, since)| now.since(**since) >= timeout.after);
        let ranks: Vec<Rank> = long.map(|(rank, _)| *rank).collect();
        let kind = VerdictKind::NonCommunicationHang;
        let evidence = |rank| Evidence::ProcessStopped { rank };
        if ranks.len() * 2 <= members.ranks().count() {
            return by_node(kind, &ranks, evidence, members);
        }
        let nodes: BTreeSet<u32> = ranks.iter().filter_map(|rank| members.of_rank(*rank)).collect();
        let evidence = ranks.iter().copied().take(MAX_EVIDENCE).map(evidence).collect();
        vec![DetectorFinding::of_one_among(kind, nodes, evidence)]
    }

    /// Whether a group has stood still for half of what makes it hang.
    pub(super) fn is_half_stalled(&self, now: Moment, timeout: HangTimeout) -> bool {
        let half = |group: &HangGroup| Self::allowed(group, timeout) / 2;
        self.groups.values().any(|group| self.stands_still(now, group, half(group)))
    }

    /// How long a group may stand still.
    fn allowed(group: &HangGroup, timeout: HangTimeout) -> Duration {
        let least = if group.has_finished_any { timeout.after } else { timeout.at_start };
        least.max(group.longest_pause * PAUSES)
    }

    fn is_stalled(&self, now: Moment, group: &HangGroup, timeout: HangTimeout) -> bool {
        self.stands_still(now, group, Self::allowed(group, timeout))
    }

    fn stands_still(&self, now: Moment, group: &HangGroup, for_long: Duration) -> bool {
        // Where a rank has left, the others' waiting is an end of the job or an echo.
        now.since(group.last_move) >= for_long
            && group.ranks.values().any(At::waits)
            && !group.ranks.keys().any(|rank| self.left.contains(rank))
    }

    fn explain(
        &self,
        stalled: &Stalled<'_>,
        waiting: &BTreeSet<Rank>,
        members: &Members,
    ) -> Vec<DetectorFinding> {
        let stopped: Vec<Rank> =
            stalled.ranks().filter(|rank| self.stopped.contains_key(rank)).collect();
        if !stopped.is_empty() {
            let evidence = |rank| Evidence::ProcessStopped { rank };
            return by_node(VerdictKind::NonCommunicationHang, &stopped, evidence, members);
        }
        let missing = stalled.missing();
        if missing.is_empty() {
            return stalled.all_inside(members);
        }
        let causes: Vec<Rank> =
            missing.iter().copied().filter(|rank| !waiting.contains(rank)).collect();
        let nodes = |ranks: &[Rank]| {
            ranks.iter().filter_map(|rank| members.of_rank(*rank)).collect::<BTreeSet<u32>>()
        };
        let everybody: Vec<Rank> = stalled.ranks().collect();
        let evidence = |rank| stalled.behind(rank);
        if nodes(&causes).len() * 2 > nodes(&everybody).len() {
            let evidence = causes.iter().take(MAX_EVIDENCE).map(|rank| evidence(*rank)).collect();
            let kind = VerdictKind::NonCommunicationHang;
            return vec![DetectorFinding::of_one_among(kind, nodes(&causes), evidence)];
        }
        by_node(VerdictKind::NonCommunicationHang, &causes, evidence, members)
    }
}

/// One group that stands still.
struct Stalled<'a> {
    id: GroupId,
    group: &'a HangGroup,
    for_long: Duration,
    /// The collective that a rank waits in; 0 where they only wait in transfers.
    awaited: u64,
    /// Ranks that should be in the group and never reported it.
    never_seen: Vec<Rank>,
}

impl<'a> Stalled<'a> {
    fn new(id: GroupId, group: &'a HangGroup, now: Moment, members: &Members) -> Self {
        let inside = group.ranks.values().filter(|at| at.is_inside());
        let awaited = inside.map(|at| at.finished.saturating_add(1)).max().unwrap_or(0);
        let never_seen = if id == GroupId::WORLD && awaited > 0 {
            members.ranks().filter(|rank| !group.ranks.contains_key(rank)).collect()
        } else {
            Vec::new()
        };
        Self { id, group, for_long: now.since(group.last_move), awaited, never_seen }
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> {
        self.group.ranks.keys().copied().chain(self.never_seen.iter().copied())
    }

    /// Whether a node that is not heard is part of it, and fell silent before the standstill was known: one
    /// that was heard for longer is no reason for it.
    fn stands_still_for(
        &self,
        (node, last_heard): (u32, Moment),
        allowed: Duration,
        members: &Members,
    ) -> bool {
        last_heard < self.group.last_move.after(allowed)
            && self.ranks().any(|rank| members.of_rank(rank) == Some(node))
    }

    fn waiting(&self) -> impl Iterator<Item = Rank> {
        self.group.ranks.iter().filter(|(_, at)| at.waits()).map(|(rank, _)| *rank)
    }

    /// Who has not entered the collective that others wait in, or is waited for in a transfer.
    fn missing(&self) -> Vec<Rank> {
        let ranks = &self.group.ranks;
        if self.awaited == 0 {
            let awaited: BTreeSet<Rank> =
                ranks.values().flat_map(|at| at.awaits.iter().copied()).collect();
            let is_waiting = |rank: &Rank| ranks.get(rank).is_some_and(At::waits);
            return awaited.into_iter().filter(|rank| !is_waiting(rank)).collect();
        }
        let behind = ranks.iter().filter(|(_, at)| at.entered < self.awaited).map(|one| *one.0);
        behind.chain(self.never_seen.iter().copied()).collect()
    }

    fn behind(&self, rank: Rank) -> Evidence {
        let entered = self.group.ranks.get(&rank).map_or(0, |at| at.entered);
        let (group, awaited, stalled) = (self.id, self.awaited, self.for_long);
        Evidence::Behind { group, rank, entered, awaited, stalled }
    }

    fn inside(&self, rank: Rank) -> Evidence {
        let sequence = self.group.ranks.get(&rank).map_or(0, |at| at.finished.saturating_add(1));
        Evidence::Inside { group: self.id, rank, sequence, stalled: self.for_long }
    }

    /// Everybody is in it: the fault is in the communication.
    fn all_inside(&self, members: &Members) -> Vec<DetectorFinding> {
        let waiting: Vec<Rank> = self.waiting().collect();
        let finished = |rank: &Rank| self.group.ranks[rank].finished;
        let least = waiting.iter().map(finished).min();
        let behind: Vec<Rank> =
            waiting.iter().copied().filter(|rank| Some(finished(rank)) == least).collect();
        if behind.len() * 2 < self.group.ranks.len() {
            let evidence = |rank| self.inside(rank);
            return by_node(VerdictKind::CommunicationHang, &behind, evidence, members);
        }
        // Who is waited for in a transfer and waits in none holds the others up.
        let awaited: BTreeSet<Rank> =
            waiting.iter().flat_map(|rank| self.group.ranks[rank].awaits.clone()).collect();
        let holders: Vec<Rank> = awaited
            .into_iter()
            .filter(|rank| self.group.ranks.get(rank).is_some_and(|at| at.awaits.is_empty()))
            .collect();
        let suspects = if holders.is_empty() { waiting } else { holders };
        self.one_among(VerdictKind::CommunicationHang, &suspects, members)
    }

    /// Every rank waits for another that waits, over several groups.
    fn circle(&self, members: &Members) -> Option<DetectorFinding> {
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
fn by_node(
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
