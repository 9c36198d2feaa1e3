//! What is kept beside the state: the last decisions without their states, and the last incidents.
//!
//! Both are for people who look back; nothing is decided by them.

use std::collections::{BTreeMap, VecDeque};

use telltale_cluster::epoch::{Epoch, Term};
use telltale_cluster::incident::IncidentId;
use telltale_cluster::stored::{Decision, DecisionNumber, Phase, Why};

/// Decisions that are kept.
pub const MAX_KEPT_DECISIONS: usize = 1024;
/// Incidents that are kept.
pub const MAX_KEPT_INCIDENTS: usize = 64;
/// Bytes of one incident.
pub const MAX_INCIDENT_BYTES: usize = 64 << 10;

/// A decision that was stored, without the state that it led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRecord {
    /// The term of the leader who made it.
    pub term: Term,
    /// Its number among that leader's decisions.
    pub number: DecisionNumber,
    /// How many decisions were stored up to this one, by any coordinator.
    pub count: u64,
    /// The epoch that it led to.
    pub epoch: Epoch,
    /// The phase that it led to.
    pub phase: Phase,
    /// Why it was made.
    pub why: Why,
}

impl DecisionRecord {
    pub(super) fn of(decision: &Decision, count: u64) -> Self {
        Self {
            term: decision.term,
            number: decision.number,
            count,
            epoch: decision.state.epoch,
            phase: decision.state.phase.clone(),
            why: decision.why.clone(),
        }
    }
}

/// An incident, for those who look back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentRecord {
    /// Its number. A later record of the same number takes the place of an earlier.
    pub id: IncidentId,
    /// What is kept of it, in a form that its keeper chooses; at most [`MAX_INCIDENT_BYTES`].
    pub content: Vec<u8>,
}

/// What is kept beside the state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SideState {
    decisions: VecDeque<DecisionRecord>,
    incidents: BTreeMap<IncidentId, Vec<u8>>,
}

impl SideState {
    /// The last decisions, the oldest first; at most [`MAX_KEPT_DECISIONS`].
    pub fn decisions(&self) -> impl Iterator<Item = &DecisionRecord> {
        self.decisions.iter()
    }

    /// The last incidents, the oldest first; at most [`MAX_KEPT_INCIDENTS`].
    pub fn incidents(&self) -> impl Iterator<Item = (IncidentId, &[u8])> {
        self.incidents.iter().map(|(id, content)| (*id, content.as_slice()))
    }

    /// Adds a decision, in the order in which they were stored.
    pub(super) fn log(&mut self, decision: DecisionRecord) {
        if self.decisions.len() >= MAX_KEPT_DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision);
    }

    /// Adds an incident, and returns those that made room for it.
    pub(super) fn keep(&mut self, incident: IncidentRecord) -> Vec<IncidentId> {
        self.incidents.insert(incident.id, incident.content);
        let mut removed = Vec::new();
        while self.incidents.len() > MAX_KEPT_INCIDENTS {
            removed.extend(self.incidents.pop_first().map(|(id, _)| id));
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident(number: u32) -> IncidentRecord {
        IncidentRecord { id: IncidentId { term: Term::new(1), number }, content: vec![1] }
    }

    #[test]
    fn the_oldest_make_room() {
        let mut kept = SideState::default();
        let most = u32::try_from(MAX_KEPT_INCIDENTS).unwrap();
        for number in 0..most {
            assert_eq!(kept.keep(incident(number)), []);
        }
        assert_eq!(kept.keep(incident(3)), [], "a record of the same incident is replaced");
        assert_eq!(kept.keep(incident(most)), [incident(0).id]);
        assert_eq!(kept.incidents().count(), MAX_KEPT_INCIDENTS);
    }
}
