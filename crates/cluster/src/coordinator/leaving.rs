//! Nodes whose agents were asked to end: their slots are given away at once, spare or not.
//!
//! Nobody judges here, so no budget is spent and nobody is charged. A goodbye that is lost, or comes to a
//! leader that does not know its node yet, is made up for by the node's silence.

use super::Scene;
use super::leadership::Leadership;
use crate::node::NodeName;
use crate::policy::Mode;
use crate::stored::{Phase, StoredState, Why};

impl Leadership {
    /// Takes a node's last word, and answers it, so that its agent need not wait.
    pub(super) fn leave(&mut self, scene: &mut Scene<'_>, node: &NodeName) {
        let order = self.order_without_slot(node);
        self.send(scene, node, order);
        self.spares.remove(node);
        if self.has_slot(node) || self.is_given_slot(node) {
            self.leaving.insert(node.clone());
        } else {
            self.forget(node);
        }
    }

    /// The state without those who leave, where the coordinator may act. Who has finished leaves nothing
    /// to be done, and keeps its slot.
    pub(super) fn release_leaving(&self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        let runs = matches!(self.state.phase, Phase::Committed(_));
        let may = runs || self.state.phase == Phase::Preparing;
        if self.leaving.is_empty() || !may || self.state.mode == Mode::Observe {
            return None;
        }
        let finished = |node: &NodeName| runs && self.finished.contains(node);
        let goes = |node: &&NodeName| self.has_slot(node) && !finished(node);
        let nodes: Vec<NodeName> = self.leaving.iter().filter(goes).cloned().collect();
        if nodes.is_empty() {
            return None;
        }
        let next = self.without(scene, self.state.clone(), &nodes);
        Some((Why::Left { nodes }, next))
    }
}
