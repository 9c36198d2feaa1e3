//! What an operator may order, and what becomes of it.
//!
//! Orders need no budget and no continuity: a person has decided. Nobody is charged for the epoch that
//! follows from one. Orders wait while a decision is on its way to the store.

use std::fmt;

use super::leadership::Leadership;
use super::{Output, Scene};
use crate::message::Outcome;
use crate::node::{Bar, NodeName};
use crate::policy::Mode;
use crate::stored::{Phase, StoredState, Why};
use thiserror::Error;

/// Orders that may wait at once.
pub const MAX_WAITING_ORDERS: usize = 64;

/// Tells orders and their answers apart; the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What an operator orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorOrder {
    /// Restart the job, with the same nodes where they are there; also a job that is over. Of one that was
    /// given up, the restarts are counted anew.
    Restart,
    /// Take a node out as soon as a spare can take its slot, and give it no other.
    Drain(NodeName),
    /// Take a node out now, spare or not.
    Remove(NodeName),
    /// Let a node take slots again, and forget its failures.
    Readmit(NodeName),
    /// Do this much without being told.
    SetMode(Mode),
}

impl fmt::Display for OperatorOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restart => formatter.write_str("restart the job"),
            Self::Drain(node) => write!(formatter, "drain node {node}"),
            Self::Remove(node) => write!(formatter, "remove node {node}"),
            Self::Readmit(node) => write!(formatter, "readmit node {node}"),
            Self::SetMode(mode) => write!(formatter, "set the mode to {mode}"),
        }
    }
}

/// Why an order is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OrderRefused {
    /// Another coordinator leads, or none.
    #[error("this coordinator does not lead; ask the one that does")]
    NotLeading,
    /// The node is not known.
    #[error("no node {node} is known; `telltale cluster nodes` lists them")]
    UnknownNode {
        /// Which.
        node: NodeName,
    },
    /// The job has not started yet.
    #[error("the job waits for its first nodes, so there is nothing to restart")]
    NotStarted,
    /// Too many orders wait.
    #[error("{MAX_WAITING_ORDERS} orders wait already; try again when the store answers")]
    TooMany,
    /// Agents know more of the job than the store.
    #[error(
        "the store knows less of the job than agents do; `telltale cluster status` says what to do"
    )]
    Behind,
    /// The store does not take decisions.
    #[error("the decision could not be stored; `telltale cluster status` says why")]
    NotStored,
}

impl Leadership {
    /// Takes an order, to be carried out as soon as a decision may be made.
    pub(super) fn order(
        &mut self,
        scene: &mut Scene<'_>,
        request: RequestId,
        order: OperatorOrder,
    ) {
        if self.orders.len() < MAX_WAITING_ORDERS {
            self.orders.push_back((request, order));
        } else {
            scene.outputs.push(Output::Answer { request, answer: Err(OrderRefused::TooMany) });
        }
    }

    /// The state that an order leads to; `None` when it is so already.
    pub(super) fn carry_out(
        &mut self,
        scene: &Scene<'_>,
        order: &OperatorOrder,
    ) -> Result<Option<StoredState>, OrderRefused> {
        let next = match order {
            OperatorOrder::Restart => return self.restart(scene),
            OperatorOrder::Drain(node) => self.bar(scene, node, Bar::Draining)?,
            OperatorOrder::Remove(node) => self.bar(scene, node, Bar::Removed)?,
            OperatorOrder::Readmit(node) => {
                self.known(node)?;
                let mut next = self.state.clone();
                next.barred.remove(node);
                next.failures.remove(node);
                next
            }
            OperatorOrder::SetMode(mode) => StoredState { mode: *mode, ..self.state.clone() },
        };
        Ok((next != self.state).then_some(next))
    }

    fn restart(&mut self, scene: &Scene<'_>) -> Result<Option<StoredState>, OrderRefused> {
        match self.state.phase {
            Phase::Forming => Err(OrderRefused::NotStarted),
            // It is on its way; from here on it is as good as ordered.
            Phase::Preparing => {
                let next = StoredState { planned: true, ..self.state.clone() };
                Ok((next != self.state).then_some(next))
            }
            Phase::Committed(_) | Phase::Over(_) => {
                let mut next = self.state.clone().next_epoch(true);
                if self.state.phase == Phase::Over(Outcome::Finished) {
                    self.give_up_absent(&mut next);
                }
                // Who is not there otherwise does not answer, and is replaced for that.
                self.fill(scene, &mut next);
                Ok(Some(next))
            }
        }
    }

    /// Takes the slots of nodes that are not there, for spares that are or will come. Only where every rank has finished:
    /// nothing runs anywhere, however many are gone, so neither the budget nor mass silence speak against it.
    fn give_up_absent(&self, next: &mut StoredState) {
        let holders = self.state.map.holders().map(|(_, node)| node);
        for node in holders.filter(|node| !self.is_there(node)) {
            next.map.vacate(node);
        }
    }

    /// Whether a node's agent is there, as far as is known.
    pub(super) fn is_there(&self, node: &NodeName) -> bool {
        let member = self.members.get(node);
        let is_heard = member.is_some_and(|one| one.registered.is_some() && !one.silent);
        is_heard && !self.leaving.contains_key(node)
    }

    fn known(&self, node: &NodeName) -> Result<(), OrderRefused> {
        let known = self.members.contains_key(node)
            || self.has_slot(node)
            || self.state.barred.contains_key(node)
            || self.state.failures.contains_key(node);
        if known { Ok(()) } else { Err(OrderRefused::UnknownNode { node: node.clone() }) }
    }

    fn bar(
        &mut self,
        scene: &Scene<'_>,
        node: &NodeName,
        bar: Bar,
    ) -> Result<StoredState, OrderRefused> {
        self.known(node)?;
        let mut next = self.state.clone();
        next.barred.insert(node.clone(), bar);
        let spare = self.spares.iter().any(|spare| spare != node);
        if self.has_slot(node) && (bar == Bar::Removed || spare) {
            return Ok(self.without(scene, next, std::slice::from_ref(node)));
        }
        Ok(next)
    }

    /// `next` with nodes taken out: in a new epoch if one is committed.
    pub(super) fn without(
        &self,
        scene: &Scene<'_>,
        mut next: StoredState,
        nodes: &[NodeName],
    ) -> StoredState {
        if matches!(next.phase, Phase::Committed(_)) {
            next = next.next_epoch(true);
        }
        for node in nodes {
            next.map.vacate(node);
        }
        if next.phase == Phase::Preparing {
            self.fill(scene, &mut next);
        }
        next
    }

    /// Replaces a node that is to be drained, now that a spare is there.
    pub(super) fn drain_when_possible(&self, scene: &Scene<'_>) -> Option<(Why, StoredState)> {
        if self.spares.is_empty() {
            return None;
        }
        let mut draining = self.state.barred.iter().filter(|(_, bar)| **bar == Bar::Draining);
        let (node, _) = draining.find(|(node, _)| self.has_slot(node))?;
        let next = self.without(scene, self.state.clone(), std::slice::from_ref(node));
        Some((Why::Ordered, next))
    }
}
