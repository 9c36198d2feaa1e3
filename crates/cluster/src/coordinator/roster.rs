//! Who is there: nodes that have registered or have a slot, and how each stands.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::StepContext;
use super::health::UnhealthyNodes;
use crate::epoch::Epoch;
use crate::incident::FaultEvent;
use crate::message::{AgentActivity, FromNode};
use crate::node::{HostAddress, Incarnation, NodeName};
use crate::policy::{self, Policy};
use crate::rank::WorkersPerNode;
use crate::stored::{Phase, StoredState};
use crate::time::Moment;

/// All nodes that are known.
#[derive(Debug, Default)]
pub(super) struct Roster {
    pub(super) members: BTreeMap<NodeName, NodeRecord>,
    /// For each member that is not silent, a moment at which to check it again.
    pub(super) checks: BTreeSet<(Moment, NodeName)>,
    /// Members that could take a slot.
    pub(super) spares: BTreeSet<NodeName>,
    /// Members that have not been heard for most of the keep-alive, or longer.
    pub(super) overdue: BTreeSet<NodeName>,
    /// Members with a slot that are silent.
    pub(super) silent: BTreeSet<NodeName>,
    /// Members with a slot that have not registered with this leader yet.
    pub(super) unheard: BTreeSet<NodeName>,
    /// Members with a slot whose workers have all ended well in this epoch.
    pub(super) finished: BTreeSet<NodeName>,
    /// Members whose agents said that they end, in which life, and that have a slot, or will once a decision
    /// is stored.
    pub(super) leaving: BTreeMap<NodeName, Incarnation>,
    /// Members whose health has failed, as they reported last.
    pub(super) unhealthy: UnhealthyNodes,
}

/// What is known of one node.
#[derive(Debug, Clone)]
pub(super) struct NodeRecord {
    /// What it registered with; none for one that is known from the store alone.
    pub(super) registered: Option<Registered>,
    /// When it was heard last, or the leader began.
    pub(super) heard: Moment,
    pub(super) silent: bool,
    /// Whether its connection was closed at its end since then.
    pub(super) closed: bool,
    pub(super) activity: AgentActivity,
    /// The last epoch in which a failure of its workers was seen.
    pub(super) failed_in: Option<Epoch>,
}

/// What a node registered with.
#[derive(Debug, Clone)]
pub(super) struct Registered {
    pub(super) incarnation: Incarnation,
    pub(super) address: HostAddress,
    pub(super) workers: WorkersPerNode,
    pub(super) sequence: u64,
}

impl NodeRecord {
    /// A node that has a slot and has not been heard by this leader.
    pub(super) const fn unheard(now: Moment) -> Self {
        Self {
            registered: None,
            heard: now,
            silent: false,
            closed: false,
            activity: AgentActivity::Idle,
            failed_in: None,
        }
    }

    /// Whether it was heard no longer ago than `time`.
    pub(super) fn heard_within(&self, now: Moment, time: Duration) -> bool {
        now.since(self.heard) <= time
    }
}

/// How long a node may be unheard before it is overdue.
pub(super) fn overdue_after(policy: &Policy) -> Duration {
    policy::overdue_after(policy.keep_alive)
}

impl Roster {
    /// See [`super::Coordinator::knows_later_life`].
    pub(super) fn knows_later_life(&self, message: &FromNode) -> bool {
        let member = self.members.get(&message.node).and_then(|member| member.registered.as_ref());
        member.is_some_and(|known| message.incarnation < known.incarnation)
    }

    /// A node that has come to a slot and is not known any more, since it went away while that was being stored,
    /// counts as heard just now: its silence is noticed as any other's.
    pub(super) fn expect_all(&mut self, now: Moment, policy: &Policy, state: &StoredState) {
        let holders = state.map.holders().map(|(_, node)| node);
        let strangers = holders.filter(|node| !self.members.contains_key(*node));
        let strangers: Vec<NodeName> = strangers.cloned().collect();
        for node in strangers {
            self.checks.insert((now.after(overdue_after(policy)), node.clone()));
            self.unheard.insert(node.clone());
            self.members.insert(node, NodeRecord::unheard(now));
        }
    }

    /// Marks that a node was heard, which ends its silence.
    pub(super) fn note_heard(
        &mut self,
        context: &StepContext<'_>,
        state: &StoredState,
        node: &NodeName,
        sequence: u64,
    ) {
        let Some(member) = self.members.get_mut(node) else { return };
        member.heard = context.now;
        member.closed = false;
        if let Some(registered) = &mut member.registered {
            registered.sequence = registered.sequence.max(sequence);
        }
        self.overdue.remove(node);
        if member.silent {
            member.silent = false;
            self.silent.remove(node);
            self.checks.insert((context.now.after(overdue_after(context.policy)), node.clone()));
            self.refresh_spare(context, state, node);
        }
    }

    /// Forgets a node without a slot. It registers again when it comes back.
    pub(super) fn forget(&mut self, node: &NodeName) {
        self.members.remove(node);
        self.spares.remove(node);
        self.overdue.remove(node);
        self.leaving.remove(node);
        self.unhealthy.forget(node);
    }

    /// Checks again whether a node could take a slot.
    pub(super) fn refresh_spare(
        &mut self,
        context: &StepContext<'_>,
        state: &StoredState,
        node: &NodeName,
    ) {
        let able = self.members.get(node).is_some_and(|member| {
            let registered = member.registered.as_ref();
            !member.silent && registered.is_some_and(|one| one.workers >= context.job.workers)
        });
        let stays = !self.leaving.contains_key(node) && !state.barred.contains_key(node);
        if able && stays && !state.has_slot(node) {
            self.spares.insert(node.clone());
        } else {
            self.spares.remove(node);
        }
    }

    /// How many spares are there whose health has not failed.
    pub(super) fn healthy_spares(&self) -> usize {
        self.spares.iter().filter(|spare| !self.unhealthy.contains(spare)).count()
    }

    /// Nodes whose health has failed for long enough while they work in the running epoch, each once.
    pub(super) fn notice_health(
        &mut self,
        context: &StepContext<'_>,
        state: &StoredState,
    ) -> Vec<FaultEvent> {
        if !matches!(state.phase, Phase::Committed(_)) {
            return Vec::new();
        }
        let mut unhealthy = std::mem::take(&mut self.unhealthy);
        let events = unhealthy.notice(context, state.epoch, |node| self.is_at_work(state, node));
        self.unhealthy = unhealthy;
        events
    }

    /// Whether a node has a slot, is heard and has not finished or left.
    pub(super) fn is_at_work(&self, state: &StoredState, node: &NodeName) -> bool {
        state.has_slot(node)
            && !self.silent.contains(node)
            && !self.finished.contains(node)
            && !self.leaving.contains_key(node)
    }

    /// Whether a node's agent is there, as far as is known.
    pub(super) fn is_there(&self, node: &NodeName) -> bool {
        let member = self.members.get(node);
        let is_heard = member.is_some_and(|one| one.registered.is_some() && !one.silent);
        is_heard && !self.leaving.contains_key(node)
    }

    /// Whether a node with a slot had gone missing when another failed.
    pub(super) fn is_missed_since(
        &self,
        state: &StoredState,
        node: &NodeName,
        failed: Moment,
    ) -> bool {
        let member = self.members.get(node).filter(|member| member.heard < failed);
        let is_gone = member.is_some_and(|member| member.closed || self.overdue.contains(node));
        is_gone
            && state.has_slot(node)
            && !self.finished.contains(node)
            && !self.leaving.contains_key(node)
    }

    /// Recomputes which nodes are spare, silent or unheard after slots or bars have changed.
    pub(super) fn sort(&mut self, context: &StepContext<'_>, state: &StoredState) {
        let has_slot = |node: &NodeName| state.has_slot(node);
        self.silent.retain(&has_slot);
        self.unheard.retain(&has_slot);
        self.finished.retain(&has_slot);
        self.members.retain(|node, member| {
            let known = member.registered.is_some() && !member.silent;
            known || has_slot(node)
        });
        let nodes: Vec<NodeName> = self.members.keys().cloned().collect();
        for node in &nodes {
            self.refresh_spare(context, state, node);
        }
        self.spares.retain(|node| self.members.contains_key(node));
        self.overdue.retain(|node| self.members.contains_key(node));
        self.unhealthy.retain(|node| self.members.contains_key(node));
        self.checks.retain(|(_, node)| self.members.contains_key(node));
    }
}
