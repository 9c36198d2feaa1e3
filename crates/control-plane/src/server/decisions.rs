//! The latest decisions, for clients.

use std::collections::VecDeque;

use telltale_wire::cluster::message;

use crate::protocol::encode;
use crate::store::{DecisionRecord, SideState};
use telltale_cluster::message::JobOutcome;
use telltale_cluster::node::NodeName;
use telltale_cluster::stored::{Decision, Phase, Why};

/// Decisions that are shown.
const MAX_DECISIONS: usize = 256;

/// The latest decisions, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Decisions(VecDeque<message::DecisionSummary>);

impl Decisions {
    /// Takes over what the store kept, of unknown age.
    pub(super) fn restore(&mut self, kept: &SideState) {
        self.0 = kept.decisions().map(of_record).collect();
        while self.0.len() > MAX_DECISIONS {
            self.0.pop_front();
        }
    }

    /// Adds one that was stored just now.
    pub(super) fn add(&mut self, decision: &Decision, stored_unix_ms: u64) {
        if self.0.len() >= MAX_DECISIONS {
            self.0.pop_front();
        }
        let phase = &decision.state.phase;
        let mut summary = summary(&decision.why, phase);
        summary.term = decision.term.number();
        summary.number = decision.number.0;
        summary.epoch = decision.state.epoch.number();
        summary.stored_unix_ms = stored_unix_ms;
        self.0.push_back(summary);
    }

    /// The newest, the newest first.
    pub(super) fn list(&self, limit: usize) -> Vec<message::DecisionSummary> {
        self.0.iter().rev().take(limit).cloned().collect()
    }
}

/// What was decided, for the log.
pub(super) fn sentence(decision: &Decision) -> String {
    let summary = summary(&decision.why, &decision.state.phase);
    let incident = summary.incident.map(|id| format!(" (incident {id})")).unwrap_or_default();
    let evicted = match summary.evicted.as_slice() {
        [] => String::new(),
        nodes => format!("; replaced: {}", nodes.join(", ")),
    };
    let outcome = match &decision.state.phase {
        Phase::Over(JobOutcome::Finished) => ": it has finished",
        Phase::Over(JobOutcome::GivenUp) => ": it failed too often",
        Phase::Forming | Phase::Preparing | Phase::Committed(_) => "",
    };
    let (epoch, why) = (decision.state.epoch, summary.why);
    format!("epoch {epoch}: {why}{outcome}{incident}{evicted}")
}

fn of_record(record: &DecisionRecord) -> message::DecisionSummary {
    let mut summary = summary(&record.why, &record.phase);
    summary.term = record.term.number();
    summary.number = record.number.0;
    summary.epoch = record.epoch.number();
    summary
}

fn summary(why: &Why, to: &Phase) -> message::DecisionSummary {
    let who;
    let (text, incident) = match why {
        Why::Formed => ("enough nodes are there for the first epoch", None),
        Why::Incident { incident, .. } => (
            "the failure is answered: all stop, and this epoch is prepared",
            Some(incident.to_string()),
        ),
        Why::Unanswered { .. } => ("nodes that did not answer are replaced", None),
        Why::Quarantined { .. } => ("a node that failed too often is replaced", None),
        Why::Left { nodes } => {
            let nodes = names(nodes).join(", ");
            who = format!("agents that were asked to end have given up their slots: {nodes}");
            (who.as_str(), None)
        }
        Why::Absent { nodes } => {
            let nodes = names(nodes).join(", ");
            who = format!(
                "nodes that are not there have lost their slots, and are not charged: {nodes}"
            );
            (who.as_str(), None)
        }
        Why::Filled => ("spares have come for vacant slots", None),
        Why::Shrunk => ("no spare has come, and the job goes on with fewer nodes", None),
        Why::Prepared => ("all nodes ready", None),
        Why::Over(_) => ("the job is over", None),
        Why::Ordered => ("an operator ordered it", None),
        Why::Reset => ("another job was stored, and is ended", None),
    };
    message::DecisionSummary {
        term: 0,
        number: 0,
        epoch: 0,
        phase: phase(to).into(),
        why: text.to_owned(),
        evicted: names(why.evicted()),
        incident,
        stored_unix_ms: 0,
    }
}

/// How far an epoch has come.
pub(super) const fn phase(from: &Phase) -> message::JobPhase {
    match from {
        Phase::Forming => message::JobPhase::Forming,
        Phase::Preparing => message::JobPhase::Preparing,
        Phase::Committed(_) => message::JobPhase::Committed,
        Phase::Over(_) => message::JobPhase::Over,
    }
}

/// How a job that is over has ended.
pub(super) fn outcome(from: &Phase) -> message::JobOutcome {
    match from {
        Phase::Over(outcome) => encode::outcome(*outcome),
        _ => message::JobOutcome::Unspecified,
    }
}

fn names(nodes: &[NodeName]) -> Vec<String> {
    nodes.iter().map(|node| node.as_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_cluster::coordinator::OperatorOrder;
    use telltale_cluster::epoch::{Epoch, Revision, Term};
    use telltale_cluster::incident::IncidentId;
    use telltale_cluster::policy::{Job, Mode};
    use telltale_cluster::rank::WorkersPerNode;
    use telltale_cluster::stored::{DecisionNumber, StoreOutcome, StoredState};

    #[test]
    fn the_log_speaks_to_people() {
        let name = |text: &str| NodeName::new(text).unwrap();
        let workers = WorkersPerNode::new(1).unwrap();
        let job = Job { name: "job".to_owned(), slots: 1, workers };
        let decision = |why, phase| Decision {
            term: Term::new(1),
            number: DecisionNumber(1),
            expected: Revision::EMPTY,
            why,
            state: StoredState {
                epoch: Epoch::new(7),
                phase,
                ..StoredState::initial(&job, Mode::Act)
            },
        };
        let incident = IncidentId { term: Term::new(2), number: 3 };
        let why = Why::Incident { incident, evicted: vec![name("a"), name("b")] };
        let over = Phase::Over(JobOutcome::GivenUp);
        let cases = [
            (
                sentence(&decision(why, Phase::Preparing)),
                "epoch 7: the failure is answered: all stop, and this epoch is prepared (incident 2-3); \
                 replaced: a, b",
            ),
            (
                sentence(&decision(Why::Over(JobOutcome::GivenUp), over)),
                "epoch 7: the job is over: it failed too often",
            ),
            (
                sentence(&decision(
                    Why::Left { nodes: vec![name("a"), name("b")] },
                    Phase::Preparing,
                )),
                "epoch 7: agents that were asked to end have given up their slots: a, b",
            ),
            (OperatorOrder::Drain(name("a")).to_string(), "drain node a"),
            (OperatorOrder::SetMode(Mode::Observe).to_string(), "set the mode to observe"),
            (
                StoreOutcome::Failed.to_string(),
                "the store did not take it; it is decided again; the log above has the store's error",
            ),
        ];
        for (reported, expected) in cases {
            assert_eq!(reported, expected);
        }
    }
}
