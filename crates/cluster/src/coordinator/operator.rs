//! What an operator may order, and the state that it leads to.
//!
//! Orders need no budget and no continuity: a person has decided. No node is charged for the epoch that
//! follows from one. Orders wait while a decision is on its way to the store.

use std::fmt;

use super::roster::Roster;
use crate::message::JobOutcome;
use crate::node::{Bar, NodeName};
use crate::policy::{Job, Mode};
use crate::rank::Slot;
use crate::stored::{Phase, StoredState, Why};
use thiserror::Error;

/// Orders that may wait at once.
pub const MAX_WAITING_ORDERS: usize = 64;

/// Distinguishes orders and their answers; the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What an operator orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorOrder {
    /// Restart the job, with the same nodes where they are there; also a job that is over. Of one that was
    /// given up, the restarts are counted from zero.
    Restart,
    /// Take a node out as soon as a spare can take its slot, and give it no other.
    Drain(NodeName),
    /// Take a node out now, spare or not.
    Remove(NodeName),
    /// Let a node take slots again, and forget its failures.
    Readmit(NodeName),
    /// Does this much without orders.
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

/// What the next state is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planner<'a> {
    pub(super) job: &'a Job,
    pub(super) state: &'a StoredState,
    pub(super) roster: &'a Roster,
}

impl Planner<'_> {
    /// Fills vacant slots with spares, in the order of slots and of names, those whose health has failed last; and
    /// adds slots where the job has fewer than it should and spares are left.
    pub(super) fn fill(&self, next: &mut StoredState) {
        let free =
            |node: &&NodeName| !next.barred.contains_key(*node) && next.map.slot_of(node).is_none();
        let mut spares: Vec<NodeName> = self.roster.spares.iter().filter(free).cloned().collect();
        spares.sort_by_key(|spare| self.roster.unhealthy.contains(spare));
        let mut spares = spares.into_iter();
        let vacancies: Vec<Slot> = next.map.vacancies().collect();
        for slot in vacancies {
            let Some(spare) = spares.next() else { return };
            let filled = next.map.fill(slot, &spare);
            assert!(filled, "the slot is vacant and a spare has no slot");
        }
        let slots = next.map.slot_count();
        for (slot, spare) in (slots..self.job.slots).zip(spares) {
            next.map.grow_to(slot + 1);
            let filled = next.map.fill(Slot(slot), &spare);
            assert!(filled, "the slot is new and a spare has no slot");
        }
    }

    /// The state that an order leads to; `None` when it is so already.
    pub(super) fn carry_out(
        &self,
        order: &OperatorOrder,
    ) -> Result<Option<StoredState>, OrderRefused> {
        let next = match order {
            OperatorOrder::Restart => return self.restart(),
            OperatorOrder::Drain(node) => self.bar(node, Bar::Draining)?,
            OperatorOrder::Remove(node) => self.bar(node, Bar::Removed)?,
            OperatorOrder::Readmit(node) => {
                self.known(node)?;
                let mut next = self.state.clone();
                next.barred.remove(node);
                next.failures.remove(node);
                next
            }
            OperatorOrder::SetMode(mode) => StoredState { mode: *mode, ..self.state.clone() },
        };
        Ok((next != *self.state).then_some(next))
    }

    fn restart(&self) -> Result<Option<StoredState>, OrderRefused> {
        match self.state.phase {
            Phase::Forming => Err(OrderRefused::NotStarted),
            // It is on its way; from here on it is as good as ordered.
            Phase::Preparing => {
                let next = StoredState { planned: true, ..self.state.clone() };
                Ok((next != *self.state).then_some(next))
            }
            Phase::Committed(_) | Phase::Over(_) => {
                let mut next = self.state.clone().next_epoch(true);
                if self.state.phase == Phase::Over(JobOutcome::Finished) {
                    self.give_up_absent(&mut next);
                }
                // Who is not there otherwise does not answer, and is replaced for that.
                self.fill(&mut next);
                Ok(Some(next))
            }
        }
    }

    /// Takes the slots of nodes that are not there, for spares that are or will come. Only where every rank has finished:
    /// nothing runs anywhere, however many are gone, so neither the budget nor mass silence speak against it.
    fn give_up_absent(&self, next: &mut StoredState) {
        let holders = self.state.map.holders().map(|(_, node)| node);
        for node in holders.filter(|node| !self.roster.is_there(node)) {
            next.map.vacate(node);
        }
    }

    fn known(&self, node: &NodeName) -> Result<(), OrderRefused> {
        let known = self.roster.members.contains_key(node)
            || self.state.has_slot(node)
            || self.state.barred.contains_key(node)
            || self.state.failures.contains_key(node);
        if known { Ok(()) } else { Err(OrderRefused::UnknownNode { node: node.clone() }) }
    }

    fn bar(&self, node: &NodeName, bar: Bar) -> Result<StoredState, OrderRefused> {
        self.known(node)?;
        let mut next = self.state.clone();
        next.barred.insert(node.clone(), bar);
        let spare = self.roster.spares.iter().any(|spare| spare != node);
        if self.state.has_slot(node) && (bar == Bar::Removed || spare) {
            return Ok(self.without(next, std::slice::from_ref(node)));
        }
        Ok(next)
    }

    /// `next` with nodes taken out: in a new epoch if one is committed.
    pub(super) fn without(&self, mut next: StoredState, nodes: &[NodeName]) -> StoredState {
        if matches!(next.phase, Phase::Committed(_)) {
            next = next.next_epoch(true);
        }
        for node in nodes {
            next.map.vacate(node);
        }
        if next.phase == Phase::Preparing {
            self.fill(&mut next);
        }
        next
    }

    /// Replaces a draining node, now that a spare is there.
    pub(super) fn drain_when_possible(&self) -> Option<(Why, StoredState)> {
        if self.roster.spares.is_empty() {
            return None;
        }
        let mut draining = self.state.barred.iter().filter(|(_, bar)| **bar == Bar::Draining);
        let (node, _) = draining.find(|(node, _)| self.state.has_slot(node))?;
        let next = self.without(self.state.clone(), std::slice::from_ref(node));
        Some((Why::Ordered, next))
    }
}
