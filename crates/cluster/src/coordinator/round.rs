//! One round of orders that every node with a slot must acknowledge: to prepare, or to start.
//!
//! An order is sent again when no answer comes, a few times, and then its node has failed. What
//! follows from that is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use crate::node::NodeName;
use crate::stored::{Phase, StoredState};
use crate::time::Moment;

/// Who has yet to acknowledge.
#[derive(Debug, Clone, Default)]
pub(super) struct Round {
    pub(super) waiting: BTreeMap<NodeName, NodeWait>,
    /// Of those, who was asked often enough, is silent, or has said that it cannot.
    pub(super) failed: BTreeSet<NodeName>,
    /// The port that rank 0's node found.
    pub(super) port: Option<NonZeroU16>,
    /// Since when a slot has been vacant without a spare for it.
    pub(super) vacant_since: Option<Moment>,
    /// When orders are checked again.
    pub(super) next_evaluation: Moment,
}

/// How it stands with one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeWait {
    /// When the order was last sent; none while the node has not registered with this leader.
    pub(super) sent: Option<Moment>,
    pub(super) tries: u32,
    /// Set once the node has said that it is stopping its workers: it must be done by then.
    pub(super) stopping_until: Option<Moment>,
    /// Whether the node has said that it cannot.
    pub(super) refused: bool,
}

impl NodeWait {
    const UNSENT: Self = Self { sent: None, tries: 0, stopping_until: None, refused: false };

    pub(super) const fn sent(now: Moment) -> Self {
        Self { sent: Some(now), ..Self::UNSENT }
    }
}

impl Round {
    /// The round that a new leader finds itself in: it has sent nothing yet.
    pub(super) fn of(state: &StoredState, now: Moment) -> Self {
        let waits = matches!(state.phase, Phase::Preparing | Phase::Committed(_));
        let holders = state.map.holders().filter(|_| waits);
        let waiting = holders.map(|(_, node)| (node.clone(), NodeWait::UNSENT)).collect();
        Self { waiting, next_evaluation: now, ..Self::default() }
    }

    /// Whether everybody has acknowledged.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a node was sent the order by this leader, or has acknowledged it already.
    pub(super) fn knows(&self, node: &NodeName) -> bool {
        self.waiting.get(node).is_none_or(|wait| wait.sent.is_some())
    }

    /// Whether a node is waited for and was sent nothing by this leader.
    pub(super) fn is_first_word(&self, node: &NodeName) -> bool {
        self.waiting.get(node).is_some_and(|wait| wait.sent.is_none())
    }

    pub(super) fn is_waiting(&self, node: &NodeName) -> bool {
        self.waiting.contains_key(node)
    }

    pub(super) fn forget(&mut self, node: &NodeName) {
        self.waiting.remove(node);
        self.failed.remove(node);
    }

    /// A node is out of reach: whatever it has acknowledged, it is not ready.
    pub(super) fn lose(&mut self, node: &NodeName) {
        self.waiting.entry(node.clone()).or_insert(NodeWait::UNSENT);
        self.failed.insert(node.clone());
    }

    /// Nodes that were asked often enough, are silent, or have said that they cannot.
    pub(super) const fn failed(&self) -> &BTreeSet<NodeName> {
        &self.failed
    }
}
