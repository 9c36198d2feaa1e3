//! Nodes whose agents were asked to end: their slots are given away at once, spare or not.
//!
//! Nobody judges here, so no budget is spent and nobody is charged. A goodbye that nobody heard is made up for by
//! the agent's next life, which says with its registration how those before it ended; or by the node's silence.

use super::Scene;
use super::leadership::Leadership;
use crate::message::Activity;
use crate::node::{Incarnation, NodeName};
use crate::policy::Mode;
use crate::stored::{Phase, StoredState, Why};

/// Lives of one agent, as a registration shows them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lives {
    /// The last that this leader knew.
    pub(super) former: Option<Incarnation>,
    pub(super) present: Incarnation,
    /// The first since which every one was asked to end, up to the last before the present one.
    pub(super) planned_since: Option<Incarnation>,
}

/// How the life of an agent that is heard came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// It was heard before, or is the first that this leader hears.
    Known,
    /// It has taken the place of one that was asked to end.
    AfterPlan,
    /// It has taken the place of one that ended otherwise, as far as is known.
    AfterFailure,
}

impl Leadership {
    /// Takes what a registration says of the lives before it. Where each of them was asked to end, that is the
    /// goodbye of the one that had the slot, should it not have been heard.
    pub(super) fn begin_life(&mut self, node: &NodeName, lives: Lives, activity: Activity) -> Life {
        let Lives { former, present, planned_since } = lives;
        let life = match former {
            Some(former) if former != present => {
                let is_planned = planned_since.is_some_and(|since| since <= former);
                let has_said_so = self.leaving.get(node) == Some(&former);
                if is_planned || has_said_so { Life::AfterPlan } else { Life::AfterFailure }
            }
            _ => Life::Known,
        };
        let runs = matches!(self.state.phase, Phase::Committed(_));
        // To a new leader, what an agent runs tells whether it is the one that was told to.
        let is_another = runs && activity.epoch() != Some(self.state.epoch);
        let ended = match life {
            Life::AfterPlan => former,
            Life::Known => planned_since.filter(|_| former.is_none() && is_another),
            Life::AfterFailure => None,
        };
        let holds = runs && self.has_slot(node) && !self.finished.contains(node);
        match ended {
            Some(ended) if holds => {
                self.leaving.insert(node.clone(), ended);
            }
            // Its slot is given up all the same; it may take one afterwards.
            Some(_) if self.is_released(node) => {}
            // What it says again is no news of the life before it, whose departure may have to wait.
            None if former == Some(present) && self.leaving.get(node) != Some(&present) => {}
            _ => {
                self.leaving.remove(node);
            }
        }
        life
    }

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

    /// The state without those who have never spoken to this leader, and are silent. They may have said goodbye to
    /// the leader before it, or to nobody: that they are gone says nothing against them.
    pub(super) fn release_unheard(&self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        let is_unheard = |node: &&NodeName| {
            self.unheard.contains(*node) && self.has_slot(node) && !self.finished.contains(*node)
        };
        let nodes: Vec<NodeName> = self.silent.iter().filter(is_unheard).cloned().collect();
        if nodes.is_empty() || self.state.mode == Mode::Observe || self.doubt(scene).is_some() {
            return None;
        }
        let next = self.without(scene, self.state.clone(), &nodes);
        Some((Why::Absent { nodes }, next))
    }

    /// Whether a node leaves, and its slot is given away for that as soon as a decision can be made.
    pub(super) fn is_released(&self, node: &NodeName) -> bool {
        let runs = matches!(self.state.phase, Phase::Committed(_));
        let may = runs || self.state.phase == Phase::Preparing;
        let finished = runs && self.finished.contains(node);
        may && !finished && self.state.mode != Mode::Observe && self.leaving.contains_key(node)
    }

    /// Forgets departures of those who are back, once another epoch begins in which they have kept their slots.
    pub(super) fn welcome_back(&mut self) {
        let members = &self.members;
        let is_back = |node: &NodeName, life: &Incarnation| {
            let registered = members.get(node).and_then(|member| member.registered.as_ref());
            registered.is_some_and(|known| known.incarnation != *life)
        };
        self.leaving.retain(|node, life| !is_back(node, life));
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
