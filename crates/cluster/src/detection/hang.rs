//! Collectives that do not end: who is not in them, or that all are.
//!
//! Ranks wait for each other over several groups at once, so a rank that is missing from one
//! collective may itself wait in another. The named rank is waited for and itself waits for none.

mod stalled;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::hang::stalled::{Stalled, by_node};
use crate::detection::members::Members;
use crate::detection::stuck::{self, StuckTransfer};
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
    sends_to: Vec<Rank>,
    receives_from: Vec<Rank>,
    transferred: u64,
}

impl At {
    const fn is_inside(&self) -> bool {
        self.entered > self.finished
    }

    fn waits(&self) -> bool {
        self.is_inside() || self.transfers()
    }

    const fn transfers(&self) -> bool {
        !self.sends_to.is_empty() || !self.receives_from.is_empty()
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
            let others = |ranks: &[Rank]| {
                let taken = ranks.iter().copied().take(MAX_AWAITED_RANKS);
                taken.filter(|rank| *rank != progress.rank).collect::<Vec<Rank>>()
            };
            let (sends_to, receives_from) =
                (others(&progress.sends_to), others(&progress.receives_from));
            let (finished, transferred) = (progress.finished, progress.transferred);
            let at = At { entered, finished, sends_to, receives_from, transferred };
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
        let stalled = self.stalled(now, timeout, members);
        let waiting: BTreeSet<Rank> = stalled.iter().flat_map(Stalled::waiting).collect();
        let (explained, own): (Vec<&Stalled<'_>>, Vec<&Stalled<'_>>) =
            stalled.iter().partition(|group| {
                let allowed = Self::allowed(group.group, timeout);
                unheard.iter().any(|one| group.stands_still_for(*one, allowed, members))
            });
        let stuck = self.stuck(&own, members);
        let held: BTreeSet<Rank> =
            own.iter().filter(|_| stuck.is_some()).flat_map(|group| group.in_stuck()).collect();
        let mut findings = Vec::from_iter(stuck);
        for group in own.into_iter().filter(|one| self.is_stalled(now, one.group, timeout)) {
            findings.extend(self.explain(group, &waiting, &held, members));
        }
        if findings.is_empty() {
            findings.extend(self.long_stopped(now, timeout, members));
        }
        if findings.is_empty() && explained.is_empty() {
            findings.extend(stalled.iter().filter_map(|group| group.circle(members)));
        }
        findings
    }

    /// The groups that stand still: once one does for too long, also those that have stood still for half of the
    /// shortest limit. Ranks wait in these and transfers are stuck, but who is missing there may be on its way.
    fn stalled(&self, now: Moment, timeout: HangTimeout, members: &Members) -> Vec<Stalled<'_>> {
        if !self.groups.values().any(|group| self.is_stalled(now, group, timeout)) {
            return Vec::new();
        }
        let stalled = self
            .groups
            .iter()
            .filter(|(_, group)| self.stands_still(now, group, timeout.after / 2));
        stalled.map(|(id, group)| Stalled::new(*id, group, now, members)).collect()
    }

    /// Where transfers are stuck, of all groups that stand still; not while a process is stopped, which takes
    /// no data either.
    fn stuck(&self, stalled: &[&Stalled<'_>], members: &Members) -> Option<DetectorFinding> {
        let mut ranks = stalled.iter().flat_map(|group| group.ranks());
        if ranks.any(|rank| self.stopped.contains_key(&rank)) {
            return None;
        }
        let transfers: Vec<StuckTransfer> =
            stalled.iter().flat_map(|group| group.stuck_transfers()).collect();
        let begun: usize = stalled.iter().map(|group| group.transfers_begun()).sum();
        stuck::located(&transfers, transfers.len() == begun, members)
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
        held: &BTreeSet<Rank>,
        members: &Members,
    ) -> Vec<DetectorFinding> {
        let stopped: Vec<Rank> =
            stalled.ranks().filter(|rank| self.stopped.contains_key(rank)).collect();
        if !stopped.is_empty() {
            let evidence = |rank| Evidence::ProcessStopped { rank };
            return by_node(VerdictKind::NonCommunicationHang, &stopped, evidence, members);
        }
        let missing = stalled.missing();
        // Who is waited for in a transfer only may be held up by a stuck one, and has nothing to send.
        let is_held = stalled.ranks().any(|rank| held.contains(&rank));
        if is_held && (missing.is_empty() || stalled.awaited == 0) {
            return Vec::new();
        }
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
