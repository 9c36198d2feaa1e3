//! Nodes whose agents were asked to end: their slots are given away at once, spare or not.
//!
//! Nobody judges here, so no budget is spent and nobody is charged. A goodbye that is lost, or comes to a
//! leader that does not know its node yet, is made up for by the node's silence.

use super::Scene;
use super::leadership::Leadership;
use crate::node::{Incarnation, NodeName};
use crate::policy::Mode;
use crate::stored::{Phase, StoredState, Why};

impl Leadership {
    /// Takes a node's last message, and answers it, so that its agent need not wait.
    pub(super) fn leave(&mut self, scene: &mut Scene<'_>, node: &NodeName, life: Incarnation) {
        let order = self.order_without_slot(node);
        self.send(scene, node, order);
        self.spares.remove(node);
        if self.has_slot(node) || self.is_given_slot(node) {
            self.leaving.insert(node.clone(), life);
        } else {
            self.forget(node);
        }
    }

    /// The state without those who leave, where the coordinator may act. Who has finished leaves nothing
    /// to be done, and keeps its slot.
    pub(super) fn release_leaving(&self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        let released = |node: &&NodeName| self.has_slot(node) && self.is_released(node);
        let nodes: Vec<NodeName> = self.leaving.keys().filter(released).cloned().collect();
        if nodes.is_empty() {
            return None;
        }
        let next = self.without(scene, self.state.clone(), &nodes);
        Some((Why::Left { nodes }, next))
    }

    /// Whether a node leaves, and its slot is given away for that as soon as a decision can be made.
    pub(super) fn is_released(&self, node: &NodeName) -> bool {
        let runs = matches!(self.state.phase, Phase::Committed(_));
        let may = runs || self.state.phase == Phase::Preparing;
        let finished = runs && self.finished.contains(node);
        may && !finished && self.state.mode != Mode::Observe && self.leaving.contains_key(node)
    }

    /// Forgets those who left and have lost their slots; whoever is back already may take another.
    pub(super) fn see_off(&mut self, scene: &Scene<'_>) {
        let gone = self.leaving.iter().filter(|(node, _)| !self.has_slot(node));
        let gone: Vec<(NodeName, Incarnation)> =
            gone.map(|(node, life)| (node.clone(), *life)).collect();
        for (node, life) in gone {
            let registered = self.members.get(&node).and_then(|member| member.registered.as_ref());
            if registered.is_some_and(|known| known.incarnation != life) {
                self.leaving.remove(&node);
                self.refresh_spare(scene, &node);
            } else {
                self.forget(&node);
            }
        }
    }
}
