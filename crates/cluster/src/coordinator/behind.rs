//! Agents that know more of the job than the store does: it was emptied, or restored from an older copy.
//!
//! What is stored is then no ground to decide anything on. Nothing is decided and nobody is commanded, so that
//! workers go on, until an operator has restored the store, ended those agents, or allowed to begin anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::leadership::{Leadership, MAX_NODES};
use super::{Output, Scene, Stale};
use crate::epoch::{Epoch, JobIdentity, Revision};
use crate::message::{KnownJob, Order, Registration};
use crate::node::{Incarnation, NodeName};
use crate::stored::{Phase, StoredState};
use crate::time::Moment;

/// Nodes that are named.
const NAMED: usize = 8;

/// Agents know more than is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Whose.
    pub nodes: Vec<NodeName>,
    /// The latest epoch that one of them knows.
    pub known: Epoch,
    /// The last that is stored.
    pub stored: Epoch,
    /// Whether nothing at all is stored.
    pub is_empty: bool,
}

impl fmt::Display for Behind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<&str> = self.nodes.iter().take(NAMED).map(NodeName::as_str).collect();
        let more = self.nodes.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let ends = match self.is_empty {
            true => String::from("it is empty"),
            false => format!("it ends at epoch {}", self.stored),
        };
        let (nodes, know) =
            if self.nodes.len() == 1 { ("node", "knows") } else { ("nodes", "know") };
        write!(
            formatter,
            "it knows less than agents do: {ends}, and {nodes} {}{more} {know} of epoch {}; nothing is decided, and \
             workers go on. Restore it and start this coordinator again; or, to begin the job anew, start it \
             with --reset-job, which ends what runs there, or end these agents",
            named.join(", "),
            self.known
        )
    }
}

/// Agents that know more than the store.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// What keeps the coordinator from deciding, and when it was last said.
    blocking: BTreeMap<NodeName, (Epoch, Moment)>,
    /// Lives of agents of other jobs, of which it was said.
    strays: BTreeMap<NodeName, Incarnation>,
    /// The latest epoch of a job that is ended for this one: its epochs count on.
    pub(super) ended: Option<Epoch>,
    /// Whether this leader found a job that had not begun, or has ended one: with leave to take over, it ends
    /// agents of others also once its own has begun.
    pub(super) begins_here: bool,
    /// Jobs that are ended for this one as an operator wished.
    pub(super) ended_jobs: BTreeSet<JobIdentity>,
}

impl Ahead {
    /// What a leader knows that finds this state.
    pub(super) fn of(state: &StoredState) -> Self {
        Self { begins_here: state.phase == Phase::Forming, ..Self::default() }
    }
}

impl Leadership {
    /// The latest epoch that an agent knows, if it knows more than is stored: a later epoch, or another job.
    fn news(&self, registration: &Registration) -> Option<Epoch> {
        let stored = self.state.epoch;
        let doing = registration.activity.epoch();
        let later = |epoch: Epoch| (epoch > stored).then_some(epoch);
        match (registration.known, self.state.identity) {
            // Nothing of that job ever ran.
            (Some(known), _) if known.epoch == Epoch::NONE_RAN => None,
            (Some(known), Some(identity)) if known.job != identity => Some(known.epoch),
            // An empty store has no identity, and neither has one that an earlier version wrote.
            (Some(known), None) if self.is_empty() => Some(known.epoch),
            (Some(known), _) => later(doing.map_or(known.epoch, |doing| doing.max(known.epoch))),
            (None, _) => doing.and_then(later),
        }
    }

    /// Whether nothing was ever stored.
    fn is_empty(&self) -> bool {
        self.revision() == Revision::EMPTY
    }

    /// Takes a registration of one who may know more than is stored; says whether it does.
    pub(super) fn is_ahead(
        &mut self,
        scene: &mut Scene<'_>,
        node: &NodeName,
        incarnation: Incarnation,
        registration: &Registration,
    ) -> bool {
        self.ahead.blocking.remove(node);
        let Some(epoch) = self.news(registration) else { return false };
        let has_begun = self.state.phase != Phase::Forming;
        let stored = self.state.identity;
        let is_stored = |known: KnownJob| stored.is_none_or(|identity| identity == known.job);
        let is_this_job = registration.known.is_some_and(is_stored);
        let is_ended = |known: &KnownJob| self.ahead.ended_jobs.contains(&known.job);
        let may_end = scene.takes_over && (self.ahead.begins_here || is_this_job);
        if let Some(known) = registration.known.filter(|known| may_end || is_ended(known)) {
            self.ahead.ended = self.ahead.ended.max(Some(epoch));
            self.ahead.ended_jobs.insert(known.job);
            self.ends_other_job |= has_begun && is_this_job;
            self.send(scene, node, Order::Forget(known.job));
            return true;
        }
        if has_begun && !is_this_job {
            // Its own job may be somewhere else; this one goes on.
            if self.ahead.strays.len() >= MAX_NODES {
                self.ahead.strays.clear();
            }
            if self.ahead.strays.insert(node.clone(), incarnation) != Some(incarnation) {
                scene.outputs.push(Output::Stray { node: node.clone(), epoch });
            }
            scene.refuse(node.clone(), Stale::OtherJob);
            return true;
        }
        self.ahead.blocking.insert(node.clone(), (epoch, scene.now));
        scene.refuse(node.clone(), Stale::Behind);
        true
    }

    /// Forgets agents that knew more and have not registered again for the keep-alive.
    pub(super) fn forget_ahead(&mut self, scene: &Scene<'_>) {
        let keep_alive = scene.policy.keep_alive;
        self.ahead.blocking.retain(|_, (_, said)| scene.now < said.after(keep_alive));
    }

    /// Whether the store is behind its agents, so that nothing may be decided.
    pub(super) fn is_blocked(&self) -> bool {
        !self.ahead.blocking.is_empty()
    }

    /// See [`super::Coordinator::behind`].
    pub(super) fn behind(&self) -> Option<Behind> {
        let known = self.ahead.blocking.values().map(|(epoch, _)| *epoch).max()?;
        let nodes = self.ahead.blocking.keys().cloned().collect();
        Some(Behind { nodes, known, stored: self.state.epoch, is_empty: self.is_empty() })
    }
}
