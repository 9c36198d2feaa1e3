//! Crowds of nodes that fall silent at once: the network or this coordinator is suspected, not they.
//!
//! Machines do not die in crowds, networks do. A crowd is held, and acted on only when it has been silent
//! for the policy's timeout, or when what is alive proves its nodes dead.

use std::collections::VecDeque;
use std::time::Duration;

use super::StepContext;
use super::roster::Roster;
use crate::incident::Incident;
use crate::node::NodeName;
use crate::policy::Policy;
use crate::stored::{StoredState, Why};
use crate::time::Moment;

/// Fewer nodes that fall silent together are no crowd, however small the job is.
const LEAST_CROWD: usize = 3;

/// What is known of crowds.
#[derive(Debug, Default)]
pub(super) struct MassSilence {
    /// Until when no node is judged.
    until: Option<Moment>,
    /// When nodes were heard last that were replaced for their silence: they are part of the crowd that
    /// falls silent after them.
    replaced: VecDeque<Moment>,
}

/// What identifies a crowd.
#[derive(Clone, Copy)]
pub(super) struct SilenceEvidence<'a> {
    pub(super) roster: &'a Roster,
    pub(super) state: &'a StoredState,
    /// The incident that is open, or was answered last.
    pub(super) incident: Option<&'a Incident>,
}

impl MassSilence {
    /// Notes whether a crowd is silent at present.
    pub(super) fn watch(&mut self, context: &StepContext<'_>, seen: SilenceEvidence<'_>) {
        let keep_alive = context.policy.keep_alive;
        let forget = keep_alive * 2 + context.policy.mass_silence_timeout;
        self.replaced.retain(|heard| context.now.since(*heard) < forget);
        // They do not come back in the same moment either, and the last is no more to blame than the first.
        let lingers = context.now.after(keep_alive);
        let everybody = !seen.roster.members.is_empty()
            && seen.roster.overdue.len() == seen.roster.members.len();
        if everybody {
            self.until = Some(lingers);
        } else if let Some(acted_on) = self.crowd(context, seen) {
            self.until = Some(lingers.min(acted_on));
        }
    }

    /// Whether a crowd is silent, or was less than the keep-alive ago.
    pub(super) fn is_recent(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// How much longer the crowd that is silent is held, if it stays silent; nothing where it is everybody,
    /// which is held without a bound.
    pub(super) fn left(
        &self,
        seen: SilenceEvidence<'_>,
        now: Moment,
        policy: &Policy,
    ) -> Option<Duration> {
        self.until.filter(|until| now < *until)?;
        let silent = seen.roster.overdue.iter().filter(|node| seen.is_missed(node));
        let last = silent.filter_map(|node| seen.acted_on(node, policy)).max()?;
        let everybody = seen.roster.overdue.len() == seen.roster.members.len();
        (!everybody && now < last).then(|| last.since(now))
    }

    /// Until when a crowd that is silent is held, if there is one: nodes with a slot that were heard
    /// last within one keep-alive of each other.
    fn crowd(&self, context: &StepContext<'_>, seen: SilenceEvidence<'_>) -> Option<Moment> {
        // Nodes do not fall silent in the same moment, so overdue nodes count.
        let missed = seen.roster.overdue.iter().filter(|node| seen.is_missed(node));
        let held = missed.filter_map(|node| {
            let acted_on = seen.acted_on(node, context.policy)?;
            let heard = seen.roster.members.get(node)?.heard;
            (context.now < acted_on).then_some((heard, Some(acted_on)))
        });
        let mut silent: Vec<(Moment, Option<Moment>)> = held.collect();
        if silent.is_empty() {
            return None;
        }
        silent.extend(self.replaced.iter().map(|heard| (*heard, None)));
        silent.sort_unstable();
        let least = context.policy.mass_silence_share * as_share(seen.state.map.holder_count());
        let mut last = 0;
        let crowds = (0..silent.len()).filter_map(|first| {
            let end = silent[first].0.after(context.policy.keep_alive);
            while last < silent.len() && silent[last].0 <= end {
                last += 1;
            }
            let crowd = &silent[first..last];
            let is_crowd = crowd.len() >= LEAST_CROWD && as_share(crowd.len()) > least;
            // Who was heard later is held for longer.
            let mut held = crowd.iter().rev().filter_map(|(_, acted_on)| *acted_on);
            if is_crowd { held.next() } else { None }
        });
        crowds.max()
    }

    /// Remembers who is replaced for its silence by a decision.
    pub(super) fn note_replaced(&mut self, roster: &Roster, why: &Why) {
        for node in why.evicted() {
            if let Some(member) = roster.members.get(node).filter(|member| member.silent) {
                self.replaced.push_back(member.heard);
            }
        }
    }
}

impl SilenceEvidence<'_> {
    /// Whether a node has a slot, and neither said that it ends nor is proven dead: its connection was closed
    /// at its end, and others that are alive failed as those do who have lost a peer.
    fn is_missed(&self, node: &NodeName) -> bool {
        let is_closed = self.roster.members.get(node).is_some_and(|member| member.closed);
        let is_dead = is_closed && self.have_survivors_failed();
        self.state.has_slot(node) && !self.roster.leaving.contains_key(node) && !is_dead
    }

    /// Whether workers of nodes that are heard have failed as survivors do, and none of them otherwise: so the
    /// cause is with those who are not heard.
    fn have_survivors_failed(&self) -> bool {
        self.incident.is_some_and(|incident| {
            incident.has_only_survivors(|node| {
                !self.roster.overdue.contains(node) && self.roster.members.contains_key(node)
            })
        })
    }

    fn acted_on(&self, node: &NodeName, policy: &Policy) -> Option<Moment> {
        let heard = self.roster.members.get(node)?.heard;
        Some(heard.after(policy.keep_alive).after(policy.mass_silence_timeout))
    }
}

/// A count as a number that shares are taken of; nodes are far fewer than what it holds exactly.
fn as_share(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
