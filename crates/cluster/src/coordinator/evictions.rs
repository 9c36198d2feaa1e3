//! Who may be taken out of its slot, and who is not, whatever the events say.
//!
//! Every eviction that no operator ordered passes through [`Budgets::allowed`].

use std::collections::{BTreeMap, BTreeSet};

use super::StepContext;
use super::budget::Spent;
use crate::incident::Hold;
use crate::message::JobOutcome;
use crate::node::{Bar, NodeName};
use crate::stored::{Phase, StoredState, Why};
use crate::time::Moment;

/// What may be done without an operator before a person has to look, and what was.
#[derive(Debug)]
pub(super) struct Budgets {
    evictions: Spent,
    restarts: Spent,
    failures: BTreeMap<NodeName, Spent>,
}

impl Budgets {
    /// As they stood when another led last.
    pub(super) fn restored(now: Moment, state: &StoredState) -> Self {
        let failures = state.failures.iter();
        let failures = failures.map(|(node, count)| (node.clone(), Spent::restored(now, *count)));
        Self {
            evictions: Spent::restored(now, state.evictions),
            restarts: Spent::restored(now, state.counted_restarts),
            failures: failures.collect(),
        }
    }

    /// Evictions that still count.
    pub(super) fn evictions(&mut self, context: &StepContext<'_>) -> u32 {
        self.evictions.count(context.now, context.policy.budget_window)
    }

    /// Restarts that still count.
    pub(super) fn restarts(&mut self, context: &StepContext<'_>) -> u32 {
        self.restarts.count(context.now, context.policy.budget_window)
    }

    /// Of the nodes that ought to be taken out of their slots, those that may be now, beside as many
    /// that were allowed already, and the reason for which others may not.
    pub(super) fn allowed(
        &mut self,
        context: &StepContext<'_>,
        wanted: &BTreeSet<NodeName>,
        already: usize,
        doubt: Option<Hold>,
    ) -> (BTreeSet<NodeName>, Option<Hold>) {
        if wanted.is_empty() {
            return (BTreeSet::new(), None);
        }
        if let Some(doubt) = doubt {
            return (BTreeSet::new(), Some(doubt));
        }
        let spent = self.evictions(context);
        let left = context.policy.eviction_budget.saturating_sub(spent);
        let left = usize::try_from(left).unwrap_or(usize::MAX).saturating_sub(already);
        let allowed: BTreeSet<NodeName> = wanted.iter().take(left).cloned().collect();
        let hold = (allowed.len() < wanted.len()).then_some(Hold::EvictionBudget);
        (allowed, hold)
    }

    /// Counts a failure of a node in the state that is to come, and bars the node when it has failed
    /// too often.
    pub(super) fn blame(
        &mut self,
        context: &StepContext<'_>,
        next: &mut StoredState,
        node: &NodeName,
    ) {
        let count = self.failures_of(context, node).saturating_add(1);
        next.failures.insert(node.clone(), count);
        if count >= context.policy.failures_to_quarantine {
            next.barred.entry(node.clone()).or_insert(Bar::Quarantined);
        }
    }

    /// Failures of a node that still count.
    pub(super) fn failures_of(&mut self, context: &StepContext<'_>, node: &NodeName) -> u32 {
        let window = context.policy.budget_window;
        self.failures.get_mut(node).map_or(0, |spent| spent.count(context.now, window))
    }

    /// Counts what a decision spends, once it is stored, and forgets what is too long ago.
    pub(super) fn spend(
        &mut self,
        context: &mut StepContext<'_>,
        why: &Why,
        former: &StoredState,
        next: &StoredState,
    ) {
        for _ in why.evicted() {
            context.metrics.evictions += 1;
            self.evictions.spend(context.now);
        }
        if resumes_after_giving_up(former, next) {
            self.restarts = Spent::default();
        }
        if counts_as_restart(why, former, next) {
            self.restarts.spend(context.now);
        }
        for (node, count) in &next.failures {
            if *count > self.failures_of(context, node) {
                self.failures.entry(node.clone()).or_default().spend(context.now);
            }
        }
        let window = context.policy.budget_window;
        self.failures.retain(|_, spent| spent.count(context.now, window) > 0);
        self.failures.retain(|node, _| next.failures.contains_key(node));
    }
}

/// Whether a decision counts against the budget of restarts.
pub(super) fn counts_as_restart(why: &Why, former: &StoredState, next: &StoredState) -> bool {
    next.epoch != former.epoch && matches!(why, Why::Incident { .. })
}

/// Whether a decision takes up a job that was given up, which only an operator does: the restarts that
/// it was given up for do not count any more, or the next crash would end it again.
pub(super) fn resumes_after_giving_up(former: &StoredState, next: &StoredState) -> bool {
    former.phase == Phase::Over(JobOutcome::GivenUp) && next.phase == Phase::Preparing
}
