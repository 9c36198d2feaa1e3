//! Nodes whose agents were asked to end: their slots are given away at once, spare or not.
//!
//! Nothing is judged here, so no budget is spent and no node is charged. A lost goodbye is made up for by
//! the agent's next life, which says with its registration how those before it ended; or by the node's silence.

use super::StepContext;
use super::roster::Roster;
use crate::message::AgentActivity;
use crate::node::{Incarnation, NodeName};
use crate::policy::Mode;
use crate::stored::{Phase, StoredState};

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

impl Roster {
    /// Takes what a registration says of the lives before it. Where each of them was asked to end, that is the
    /// goodbye of the one that had the slot, should it not have been heard.
    pub(super) fn begin_life(
        &mut self,
        state: &StoredState,
        node: &NodeName,
        lives: Lives,
        activity: AgentActivity,
    ) -> Life {
        let Lives { former, present, planned_since } = lives;
        let life = match former {
            Some(former) if former != present => {
                let is_planned = planned_since.is_some_and(|since| since <= former);
                let has_said_so = self.leaving.get(node) == Some(&former);
                if is_planned || has_said_so { Life::AfterPlan } else { Life::AfterFailure }
            }
            _ => Life::Known,
        };
        let runs = matches!(state.phase, Phase::Committed(_));
        // A new leader sees from what an agent runs whether it received the order.
        let is_another = runs && activity.epoch() != Some(state.epoch);
        let ended = match life {
            Life::AfterPlan => former,
            Life::Known => planned_since.filter(|_| former.is_none() && is_another),
            Life::AfterFailure => None,
        };
        let holds = runs && state.has_slot(node) && !self.finished.contains(node);
        match ended {
            Some(ended) if holds => {
                self.leaving.insert(node.clone(), ended);
            }
            // Its slot is given up all the same; it may take one afterwards.
            Some(_) if self.is_released(state, node) => {}
            // What it says again is no news of the life before it, whose departure may have to wait.
            None if former == Some(present) && self.leaving.get(node) != Some(&present) => {}
            _ => {
                self.leaving.remove(node);
            }
        }
        life
    }

    /// Whether a node leaves, and its slot is given away for that as soon as a decision can be made.
    pub(super) fn is_released(&self, state: &StoredState, node: &NodeName) -> bool {
        let runs = matches!(state.phase, Phase::Committed(_));
        let may = runs || state.phase == Phase::Preparing;
        let finished = runs && self.finished.contains(node);
        may && !finished && state.mode != Mode::Observe && self.leaving.contains_key(node)
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

    /// Forgets those who left and have lost their slots; nodes that are back already may take another.
    pub(super) fn see_off(&mut self, context: &StepContext<'_>, state: &StoredState) {
        let gone = self.leaving.iter().filter(|(node, _)| !state.has_slot(node));
        let gone: Vec<(NodeName, Incarnation)> =
            gone.map(|(node, life)| (node.clone(), *life)).collect();
        for (node, life) in gone {
            let registered = self.members.get(&node).and_then(|member| member.registered.as_ref());
            if registered.is_some_and(|known| known.incarnation != life) {
                self.leaving.remove(&node);
                self.refresh_spare(context, state, &node);
            } else {
                self.forget(&node);
            }
        }
    }
}
