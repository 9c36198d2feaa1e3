//! Agents that know more of the job than the store does: it was emptied, or restored from an older copy.
//!
//! What is stored is then no ground to decide anything on. Nothing is decided and no node is commanded, so that
//! workers go on, until an operator has restored the store, ended those agents, or allowed a fresh start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::leadership::MAX_NODES;
use super::roster::overdue_after;
use super::{Output, Stale, StepContext};
use crate::epoch::{Epoch, JobIdentity, Revision};
use crate::message::{KnownJob, Registration};
use crate::node::{Incarnation, NodeName};
use crate::stored::{Phase, StoredState};
use crate::time::Moment;

/// Nodes that are named.
const NAMED: usize = 8;
/// The latest epoch of a job that another counts on from. An agent that reports a later one is broken, and an
/// epoch far beyond what any job reaches would leave no room for those that follow.
const MAX_COUNTED_ON: Epoch = Epoch::new(Epoch::MAX.number() / 2);
/// How long after a job has begun agents of others are ended for it, whose jobs were unknown until then.
const TAKEOVER_TIME: Duration = Duration::from_secs(600);

/// Agents know more than is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The first of them, by name.
    pub nodes: Vec<NodeName>,
    /// How many there are.
    pub count: usize,
    /// The latest epoch that one of them knows.
    pub known: Epoch,
    /// The last that is stored.
    pub stored: Epoch,
    /// Whether nothing at all is stored.
    pub is_empty: bool,
}

impl fmt::Display for Behind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<&str> = self.nodes.iter().map(NodeName::as_str).collect();
        let more = self.count.saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let ends = match self.is_empty {
            true => String::from("it is empty"),
            false => format!("it ends at epoch {}", self.stored),
        };
        let (nodes, know) = if self.count == 1 { ("node", "knows") } else { ("nodes", "know") };
        write!(
            formatter,
            "it knows less than agents do: {ends}, and {nodes} {}{more} {know} of epoch {}; nothing is decided, and \
             workers go on. Restore it and start this coordinator again; or, to restart the job from scratch, start it \
             with --reset-job, which ends what runs there, or end these agents",
            named.join(", "),
            self.known
        )
    }
}

/// Permission to end agents that know more than is stored, for a job that begins.
#[derive(Debug, Default)]
pub(super) enum Takeover {
    /// Not specified.
    #[default]
    Refused,
    /// As long as the job has not begun.
    Granted,
    /// The job has begun: for agents that come late.
    Until(Moment),
}

impl Takeover {
    pub(super) fn holds(&self, now: Moment) -> bool {
        match self {
            Self::Refused => false,
            Self::Granted => true,
            Self::Until(end) => now < *end,
        }
    }

    /// Bounds it once the job has begun: an agent that is connected by mistake much later runs something else.
    pub(super) fn see(&mut self, now: Moment, has_begun: bool) {
        *self = match std::mem::take(self) {
            Self::Granted if has_begun => Self::Until(now.after(TAKEOVER_TIME)),
            Self::Until(end) if !has_begun && now < end => Self::Granted,
            same => same,
        };
    }
}

/// What an agent said that knows more than is stored.
#[derive(Debug)]
struct Claim {
    epoch: Epoch,
    said: Moment,
    /// Whether the agent's end closed the connection since then.
    closed: bool,
}

/// Agents that know more than the store.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// What keeps the coordinator from deciding.
    blocking: BTreeMap<NodeName, Claim>,
    /// Lives of agents of other jobs, of which it was said.
    strays: BTreeMap<NodeName, Incarnation>,
    /// The latest epoch of a job that is ended for this one: its epochs count on.
    pub(super) ended: Option<Epoch>,
    /// Whether this leader found a job that had not begun, or has ended one: with leave to take over, it ends
    /// agents of others also once its own has begun.
    pub(super) begins_here: bool,
    /// Jobs that are ended for this one as an operator wished; at most [`MAX_NODES`].
    pub(super) ended_jobs: BTreeSet<JobIdentity>,
}

/// What is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) state: &'a StoredState,
    pub(super) revision: Revision,
}

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegistrationOutcome {
    /// Its agent knows no more than is stored.
    NoNews,
    /// It is not registered.
    Refused,
    /// Its job is ended for this one.
    Ended {
        job: JobIdentity,
        /// Whether that is the job that is stored, and has begun.
        is_stored: bool,
    },
}

impl Ahead {
    /// What a leader knows that finds this state.
    pub(super) fn of(state: &StoredState) -> Self {
        Self { begins_here: state.phase == Phase::Forming, ..Self::default() }
    }

    /// Notes that a job is ended for this one, if there is room for it.
    fn end(&mut self, job: JobIdentity, epoch: Epoch) -> bool {
        let has_room = self.ended_jobs.len() < MAX_NODES || self.ended_jobs.contains(&job);
        if has_room {
            self.ended_jobs.insert(job);
            self.ended = self.ended.max(Some(epoch).filter(|epoch| *epoch <= MAX_COUNTED_ON));
        }
        has_room
    }

    /// Takes a registration of one who may know more than is stored.
    pub(super) fn take(
        &mut self,
        context: &mut StepContext<'_>,
        stored: Stored<'_>,
        (node, incarnation): (&NodeName, Incarnation),
        registration: &Registration,
    ) -> RegistrationOutcome {
        self.blocking.remove(node);
        let Some(epoch) = stored.news(registration) else { return RegistrationOutcome::NoNews };
        let has_begun = stored.state.phase != Phase::Forming;
        let identity = stored.state.identity;
        let is_stored = |known: KnownJob| identity.is_none_or(|identity| identity == known.job);
        let is_this_job = registration.known.is_some_and(is_stored);
        let is_ended = |known: &KnownJob| self.ended_jobs.contains(&known.job);
        let may_end = context.takes_over && (self.begins_here || is_this_job);
        if let Some(known) = registration.known.filter(|known| may_end || is_ended(known)) {
            if !self.end(known.job, epoch) {
                context.metrics.refused_nodes += 1;
                return RegistrationOutcome::Refused;
            }
            return RegistrationOutcome::Ended {
                job: known.job,
                is_stored: has_begun && is_this_job,
            };
        }
        if has_begun && !is_this_job {
            // Its own job may be somewhere else; this one goes on.
            if self.strays.len() >= MAX_NODES {
                self.strays.clear();
            }
            if self.strays.insert(node.clone(), incarnation) != Some(incarnation) {
                context.outputs.push(Output::Stray { node: node.clone(), epoch });
            }
            context.refuse(node.clone(), Stale::OtherJob);
            return RegistrationOutcome::Refused;
        }
        let claim = Claim { epoch, said: context.now, closed: false };
        self.blocking.insert(node.clone(), claim);
        context.refuse(node.clone(), Stale::Behind);
        RegistrationOutcome::Refused
    }

    /// Forgets agents that knew more and have not registered again: for the keep-alive where they have ended, else
    /// for as long as a crowd may be silent, since a network that is cut proves nothing.
    pub(super) fn forget(&mut self, context: &StepContext<'_>) {
        let ended = context.policy.keep_alive;
        let cut_off = ended.saturating_add(context.policy.mass_silence_timeout);
        let lasts = |claim: &Claim| claim.said.after(if claim.closed { ended } else { cut_off });
        self.blocking.retain(|_, claim| context.now < lasts(claim));
    }

    /// An agent that knew more has closed its connection. While it was heard just before, no timeout can have done
    /// that.
    pub(super) fn closed(&mut self, context: &StepContext<'_>, node: &NodeName) {
        if let Some(claim) = self.blocking.get_mut(node) {
            claim.closed |= context.now.since(claim.said) < overdue_after(context.policy);
        }
    }

    /// Whether the store is behind its agents, so that nothing may be decided.
    pub(super) fn blocks(&self) -> bool {
        !self.blocking.is_empty()
    }

    /// See [`super::Coordinator::behind`].
    pub(super) fn behind(&self, stored: Stored<'_>) -> Option<Behind> {
        let blocking = &self.blocking;
        let known = blocking.values().map(|claim| claim.epoch).max()?;
        let nodes = blocking.keys().take(NAMED).cloned().collect();
        let (epoch, is_empty) = (stored.state.epoch, stored.is_empty());
        Some(Behind { nodes, count: blocking.len(), known, stored: epoch, is_empty })
    }
}

impl Stored<'_> {
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
        self.revision == Revision::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn jobs_that_are_ended_are_remembered_up_to_a_limit() {
        let mut ahead = Ahead::default();
        let count = u64::try_from(MAX_NODES).unwrap();
        let job = |number| JobIdentity::new(NonZeroU64::new(number).unwrap());
        assert!((1..=count).all(|number| ahead.end(job(number), Epoch::new(3))));
        assert!(!ahead.end(job(count + 1), Epoch::new(9)));
        assert!(ahead.end(job(count), Epoch::new(4)));
        assert_eq!((ahead.ended_jobs.len(), ahead.ended), (MAX_NODES, Some(Epoch::new(4))));
    }
}
