//! One round of orders that every node with a slot must acknowledge: to prepare, or to start.
//!
//! An order is sent again when no answer comes, a few times, and then its node has failed. What
//! follows from that is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use super::leadership::Leadership;
use super::{Output, Scene, Stale};
use crate::incident::Sign;
use crate::message::{Acknowledgement, Activity, Assignment, Order, Ports, Step};
use crate::node::NodeName;
use crate::policy::Policy;
use crate::rank::Slot;
use crate::stored::{Phase, StoredState};
use crate::time::Moment;

/// Who has yet to acknowledge.
#[derive(Debug, Clone, Default)]
pub(super) struct Round {
    waiting: BTreeMap<NodeName, Wait>,
    /// Of those, who was asked often enough, is silent, or has said that it cannot.
    failed: BTreeSet<NodeName>,
    /// The port that rank 0's node found.
    pub(super) port: Option<NonZeroU16>,
    /// Since when a slot has been vacant without a spare for it.
    pub(super) vacant_since: Option<Moment>,
    /// When orders are looked through again.
    next_look: Moment,
}

/// How it stands with one node.
#[derive(Debug, Clone, Copy)]
struct Wait {
    /// When the order was last sent; none while the node has not registered with this leader.
    sent: Option<Moment>,
    tries: u32,
    /// Set once the node has said that it is stopping its workers: it must be done by then.
    stopping_until: Option<Moment>,
    /// Whether the node has said that it cannot.
    refused: bool,
}

impl Wait {
    const UNSENT: Self = Self { sent: None, tries: 0, stopping_until: None, refused: false };

    const fn sent(now: Moment) -> Self {
        Self { sent: Some(now), ..Self::UNSENT }
    }
}

impl Round {
    /// The round that a new leader finds itself in: it has sent nothing yet.
    pub(super) fn of(state: &StoredState, now: Moment) -> Self {
        let waits = matches!(state.phase, Phase::Preparing | Phase::Committed(_));
        let holders = state.map.holders().filter(|_| waits);
        let waiting = holders.map(|(_, node)| (node.clone(), Wait::UNSENT)).collect();
        Self { waiting, next_look: now, ..Self::default() }
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
        self.waiting.entry(node.clone()).or_insert(Wait::UNSENT);
        self.failed.insert(node.clone());
    }

    /// Nodes that were asked often enough, are silent, or have said that they cannot.
    pub(super) const fn failed(&self) -> &BTreeSet<NodeName> {
        &self.failed
    }
}

impl Leadership {
    /// Asks a node to prepare, as if it had never been asked.
    pub(super) fn prepare_anew(&mut self, scene: &mut Scene<'_>, node: &NodeName) {
        if self.state.map.slot_of(node) == Some(Slot(0)) {
            self.round.port = None;
        }
        self.round.failed.remove(node);
        self.round.waiting.insert(node.clone(), Wait::sent(scene.now));
        self.send_prepare(scene, node);
    }

    fn send_prepare(&mut self, scene: &mut Scene<'_>, node: &NodeName) {
        let first = self.state.map.slot_of(node) == Some(Slot(0));
        let ports = first.then(|| ports(scene.policy, &self.state));
        let planned = self.state.planned;
        self.send(scene, node, Order::Prepare { ports, planned });
    }

    /// Tells a node to start its workers.
    pub(super) fn commit_to(&mut self, scene: &mut Scene<'_>, node: &NodeName) {
        let Some(assignment) = self.assignment(scene, node) else { return };
        if let Some(wait) = self.round.waiting.get_mut(node) {
            wait.sent = Some(scene.now);
        }
        self.send(scene, node, Order::Commit(assignment));
    }

    /// What a node runs in the current epoch.
    fn assignment(&self, scene: &Scene<'_>, node: &NodeName) -> Option<Assignment> {
        let map = &self.state.map;
        let slot = map.slot_of(node)?;
        let Phase::Committed(master) = &self.state.phase else { return None };
        Some(Assignment {
            slot,
            slots: map.slot_count(),
            first_rank: map.first_rank(slot),
            workers: map.workers_per_node(),
            world_size: map.world_size(),
            master: master.clone(),
            restarts: self.state.restarts,
            digest: map.digest(),
            job: scene.job.name.clone(),
        })
    }

    /// Begins the round of a state that was just stored, with everybody in its map.
    pub(super) fn begin_round(&mut self, scene: &mut Scene<'_>) {
        self.round = Round::of(&self.state, scene.now);
        let known = |node: &&NodeName| {
            self.members.get(*node).is_some_and(|member| member.registered.is_some())
        };
        let nodes: Vec<NodeName> = self.round.waiting.keys().filter(known).cloned().collect();
        for node in &nodes {
            match self.state.phase {
                Phase::Preparing => self.prepare_anew(scene, node),
                _ => self.commit_to(scene, node),
            }
        }
    }

    /// Takes an acknowledgement. One that comes after later messages of its node counts only while it
    /// is waited for.
    pub(super) fn acknowledged(
        &mut self,
        scene: &mut Scene<'_>,
        node: &NodeName,
        acknowledgement: Acknowledgement,
        is_late: bool,
    ) {
        let Acknowledgement { epoch, step } = acknowledgement;
        let phase_of_step = match self.state.phase {
            Phase::Preparing => step != Step::Started,
            Phase::Committed(_) => step == Step::Started,
            Phase::Forming | Phase::Over(_) => false,
        };
        if epoch != self.state.epoch || !phase_of_step {
            scene.figures.stale_epochs += 1;
            scene.refuse(node.clone(), Stale::Epoch);
            return;
        }
        if is_late && !self.round.is_waiting(node) {
            scene.figures.stale_sequences += 1;
            scene.refuse(node.clone(), Stale::Sequence);
            return;
        }
        if step == Step::Started {
            self.started(node);
            return;
        }
        let is_first = self.state.map.slot_of(node) == Some(Slot(0));
        let last_port = self.state.last_port;
        let Some(wait) = self.round.waiting.get_mut(node) else { return };
        match step {
            Step::Stopping => {
                let until = scene.now.after(scene.policy.prepare_deadline);
                let until = *wait.stopping_until.get_or_insert(until);
                wait.tries = 0;
                // It was silent, or was asked too often, and has come back to its orders.
                if !wait.refused && scene.now < until {
                    self.round.failed.remove(node);
                }
            }
            Step::NotPrepared(why) => {
                wait.refused = true;
                if self.round.failed.insert(node.clone()) {
                    scene.outputs.push(Output::NotPrepared { node: node.clone(), why });
                }
            }
            // Without a port, it was meant for another slot of the same epoch.
            Step::Prepared { port } if is_first && (port.is_none() || port == last_port) => {}
            Step::Prepared { port } => {
                self.round.forget(node);
                if is_first {
                    self.round.port = port;
                }
                let member = self.members.get_mut(node);
                if let Some(member) = member {
                    member.activity = Activity::Preparing(epoch);
                }
            }
            Step::Started => {}
        }
    }

    /// A node has started its workers of the current epoch.
    pub(super) fn started(&mut self, node: &NodeName) {
        if matches!(self.state.phase, Phase::Committed(_)) {
            self.round.forget(node);
            if let Some(member) = self.members.get_mut(node) {
                member.activity = Activity::Committed(self.state.epoch);
            }
        }
    }

    /// Sends again what was not answered, and marks who has not answered often enough.
    pub(super) fn repeat_orders(&mut self, scene: &mut Scene<'_>) {
        if self.round.waiting.is_empty() || scene.now < self.round.next_look {
            return;
        }
        let interval = scene.policy.command_interval;
        self.round.next_look = scene.now.after(interval / 4);
        let mut again = Vec::new();
        let mut failed = Vec::new();
        let committed = matches!(self.state.phase, Phase::Committed(_));
        for (node, wait) in &mut self.round.waiting {
            let Some(member) = self.members.get(node) else { continue };
            let due = wait.sent.is_some_and(|sent| scene.now.since(sent) >= interval);
            if due {
                wait.tries += 1;
                wait.sent = Some(scene.now);
                again.push(node.clone());
            }
            let unanswered =
                wait.tries > scene.policy.command_retries && wait.stopping_until.is_none();
            let overdue = wait.stopping_until.is_some_and(|until| scene.now >= until);
            // Workers of an epoch that is committed may run unheard: that is a silence, not a refusal.
            let fails = if committed {
                unanswered && member.heard_within(scene.now, interval * 2)
            } else {
                unanswered || overdue || member.silent
            };
            if fails && self.round.failed.insert(node.clone()) {
                failed.push(node.clone());
            }
        }
        for node in again {
            scene.figures.repeated_orders += 1;
            match self.state.phase {
                Phase::Preparing => self.send_prepare(scene, &node),
                _ => self.commit_to(scene, &node),
            }
        }
        if committed {
            for node in failed {
                self.sign(scene, Sign::NotStarted { node });
            }
        }
    }
}

/// The ports that rank 0's node may take: all but the last epoch's, which precedes their first. Its agent takes one at
/// random.
fn ports(policy: &Policy, state: &StoredState) -> Ports {
    let (least, greatest) = (policy.least_port, policy.greatest_port);
    let range = Ports { first: least, least, greatest };
    Ports { first: state.last_port.map_or(least, |last| range.after(last)), ..range }
}
