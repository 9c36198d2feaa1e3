//! Who may be taken out of its slot, and who is not, whatever the signs say.
//!
//! Every eviction that no operator ordered passes through [`Leadership::allowed`].

use std::collections::BTreeSet;

use super::Scene;
use super::budget::Spent;
use super::leadership::Leadership;
use crate::incident::Hold;
use crate::message::Outcome;
use crate::node::{Bar, NodeName};
use crate::stored::{Phase, StoredState, Why};

impl Leadership {
    /// Of the nodes that ought to be taken out of their slots, those that may be now, beside as many
    /// that were allowed already, and the reason for which others may not.
    pub(super) fn allowed(
        &mut self,
        scene: &Scene<'_>,
        wanted: &BTreeSet<NodeName>,
        already: usize,
    ) -> (BTreeSet<NodeName>, Option<Hold>) {
        if wanted.is_empty() {
            return (BTreeSet::new(), None);
        }
        if let Some(doubt) = self.doubt(scene) {
            return (BTreeSet::new(), Some(doubt));
        }
        let window = scene.policy.budget_window;
        let spent = self.evictions.count(scene.now, window);
        let left = scene.policy.eviction_budget.saturating_sub(spent);
        let left = usize::try_from(left).unwrap_or(usize::MAX).saturating_sub(already);
        let allowed: BTreeSet<NodeName> = wanted.iter().take(left).cloned().collect();
        let hold = (allowed.len() < wanted.len()).then_some(Hold::EvictionBudget);
        (allowed, hold)
    }

    /// Whether a new leader has yet to hear enough: the keep-alive has not passed since it began, or
    /// fewer nodes have registered than half of those with a slot. Spares count, so that a job of one
    /// node does not wait for that node.
    fn in_grace(&self, scene: &Scene<'_>) -> bool {
        let early = scene.now < self.since.after(scene.policy.keep_alive);
        let registered = self.members.len().saturating_sub(self.unheard.len());
        (early && !self.unheard.is_empty()) || registered * 2 < self.state.map.holder_count()
    }

    /// Why nobody may be judged now: it is too early, or too many nodes are out of reach.
    pub(super) fn doubt(&self, scene: &Scene<'_>) -> Option<Hold> {
        let grace = self.in_grace(scene).then_some(Hold::Grace);
        grace.or_else(|| self.was_mass_silent(scene).then_some(Hold::MassSilence))
    }

    /// Counts a failure of a node in the state that is to come, and bars the node when it has failed
    /// too often.
    pub(super) fn blame(&mut self, scene: &Scene<'_>, next: &mut StoredState, node: &NodeName) {
        let count = self.failures_of(scene, node).saturating_add(1);
        next.failures.insert(node.clone(), count);
        if count >= scene.policy.failures_to_quarantine {
            next.barred.entry(node.clone()).or_insert(Bar::Quarantined);
        }
    }

    /// Failures of a node that still count.
    pub(super) fn failures_of(&mut self, scene: &Scene<'_>, node: &NodeName) -> u32 {
        let window = scene.policy.budget_window;
        self.failures.get_mut(node).map_or(0, |spent| spent.count(scene.now, window))
    }

    /// Counts what a decision spends, once it is stored, and forgets what is too long ago.
    pub(super) fn spend(&mut self, scene: &mut Scene<'_>, why: &Why, next: &StoredState) {
        self.note_replaced(why);
        for _ in why.evicted() {
            scene.figures.evictions += 1;
            self.evictions.spend(scene.now);
        }
        if self.resumes_after_giving_up(next) {
            self.restarts = Spent::default();
        }
        if self.counts_as_restart(why, next) {
            self.restarts.spend(scene.now);
        }
        for (node, count) in &next.failures {
            if *count > self.failures_of(scene, node) {
                self.failures.entry(node.clone()).or_default().spend(scene.now);
            }
        }
        let window = scene.policy.budget_window;
        self.failures.retain(|_, spent| spent.count(scene.now, window) > 0);
        self.failures.retain(|node, _| next.failures.contains_key(node));
    }

    /// Whether a decision counts against the budget of restarts.
    pub(super) fn counts_as_restart(&self, why: &Why, next: &StoredState) -> bool {
        next.epoch != self.state.epoch && matches!(why, Why::Incident { .. })
    }

    /// Whether a decision takes up a job that was given up, which only an operator does: the restarts that
    /// it was given up for do not count any more, or the next crash would end it again.
    pub(super) fn resumes_after_giving_up(&self, next: &StoredState) -> bool {
        self.state.phase == Phase::Over(Outcome::GivenUp) && next.phase == Phase::Preparing
    }
}
