//! How far each rank is in its steps, and in which steps operations are missing that were lost on the way: a step without
//! them is not what the ranks did.

use std::collections::{BTreeMap, BTreeSet};

use crate::detection::members::Members;
use crate::rank::Rank;
use crate::work::{FinishedOperation, Operations, Work};

/// By so many steps reports of ranks of one job may be apart.
const MOST_AHEAD: u64 = 256;
/// A rank that is this many steps behind most, and has reported none for [`EVALUATIONS_TO_BEGIN`], is not waited for.
const MOST_BEHIND: u64 = 32;
/// In this many evaluations every rank that does report operations has begun to.
const EVALUATIONS_TO_BEGIN: u32 = 30;

/// What each rank and node has reported in one epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct StepProgress {
    ranks: BTreeMap<Rank, Reported>,
    /// How many operations each node has reported or lost.
    counts: BTreeMap<u32, u64>,
    /// Ranks of which operations may be lost since the latest that they have reported.
    lacking: BTreeSet<Rank>,
    /// Steps of which operations may be lost.
    torn: BTreeSet<u64>,
    /// The first step that is not over.
    next: u64,
    evaluations: u32,
}

/// What one rank has reported.
#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    /// The first step that it has not ended.
    next: u64,
    /// In which evaluation it was heard last.
    heard: u32,
}

impl StepProgress {
    /// Whether no rank has reported anything.
    pub(super) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Whether a rank has reported an operation.
    pub(super) fn has_begun(&self, rank: Rank) -> bool {
        self.ranks.contains_key(&rank)
    }

    /// How many ranks have reported.
    pub(super) fn count(&self) -> usize {
        self.ranks.len()
    }

    /// Begins with a node's report. Says whether all operations before it were reported.
    pub(super) fn begin_report(
        &mut self,
        node: u32,
        operations: &Operations,
        members: &Members,
    ) -> bool {
        let Some(before) = operations.before.filter(|_| !operations.list.is_empty()) else {
            return true;
        };
        let count = u64::try_from(operations.list.len()).unwrap_or(u64::MAX);
        let known = self.counts.insert(node, before.saturating_add(count)).unwrap_or(0);
        if before != known {
            let own = members.ranks().filter(|rank| members.of_rank(*rank) == Some(node));
            self.lacking.extend(own);
        }
        before == known
    }

    /// Takes an operation of a report that is whole or not, and says whether its step is open. `first` is the first step
    /// of which there are operations. What comes after its step was over is not kept; its step went without it. Nor is
    /// what is far ahead of the others: no job's ranks are so far apart.
    pub(super) fn take(&mut self, one: &FinishedOperation, first: u64, is_whole: bool) -> bool {
        let reported = self.ranks.entry(one.rank).or_default();
        let is_now = one.step >= self.next && one.step.saturating_sub(first) < MOST_AHEAD;
        if self.lacking.contains(&one.rank) && is_now && one.step >= reported.next {
            let from = reported.next.max(self.next).max(one.step.saturating_sub(MOST_AHEAD));
            self.torn.extend(from..=one.step);
            // Some may have been lost behind all of a report that is not whole.
            if is_whole {
                self.lacking.remove(&one.rank);
            }
        }
        reported.heard = self.evaluations;
        reported.next = reported.next.max(match one.work {
            Work::StepEnd => one.step.saturating_add(1),
            _ => one.step,
        });
        is_now && !matches!(one.work, Work::StepEnd)
    }

    /// Begins an evaluation. Says whether the steps can be judged: that all ranks have begun to report, or will not.
    pub(super) fn evaluate(&mut self, members: &Members) -> bool {
        self.evaluations = self.evaluations.saturating_add(1);
        let all_report = members.ranks().all(|rank| self.ranks.contains_key(&rank));
        all_report || self.evaluations >= EVALUATIONS_TO_BEGIN
    }

    /// The first step that is not over: that some rank has not ended, of those that are waited for.
    pub(super) fn over(&self) -> u64 {
        let mut next: Vec<u64> = self.ranks.values().map(|one| one.next).collect();
        let middle = next.len() / 2;
        let (_, most, _) = next.select_nth_unstable(middle);
        let least = most.saturating_sub(MOST_BEHIND);
        let is_waited_for = |one: &&Reported| {
            one.next >= least || self.evaluations.saturating_sub(one.heard) < EVALUATIONS_TO_BEGIN
        };
        self.ranks.values().filter(is_waited_for).map(|one| one.next).min().unwrap_or(0)
    }

    /// Steps before this one are over.
    pub(super) fn go_on_at(&mut self, next: u64) {
        self.next = self.next.max(next);
        self.torn = self.torn.split_off(&self.next);
    }

    /// Whether operations of a step may be lost.
    pub(super) fn is_torn(&self, step: u64) -> bool {
        self.torn.contains(&step)
    }
}
