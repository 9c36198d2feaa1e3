//! Whether a job fails in the same way each time it is started: then its program or its data is at fault, and not the
//! nodes that it runs on. One leader alone knows; the next one starts afresh.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::incident::{FaultEvent, Incident, Repetition};
use crate::node::NodeName;
use crate::observation::WorkerEnd;
use crate::rank::Rank;
use crate::time::Moment;

/// Until when after an epoch's start its failure is one of the start.
pub const STARTUP_WINDOW: Duration = Duration::from_secs(60);

/// How the latest epochs failed.
#[derive(Debug, Clone, Default)]
pub(super) struct Repeats {
    /// When the present epoch was committed; unknown of one that another leader committed.
    started: Option<Moment>,
    last: Option<Failure>,
    /// When that was.
    at: Moment,
    /// Nodes on which that rank failed in that way, without another failure in between.
    nodes: BTreeSet<NodeName>,
    failed_starts: u32,
}

/// The first failure of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    rank: Rank,
    way: Way,
}

/// How a worker failed: its end, and its exception without numbers, which may differ from one time to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    end: WorkerEnd,
    message: String,
}

impl Repeats {
    /// An epoch was committed.
    pub(super) const fn begin(&mut self, now: Moment) {
        self.started = Some(now);
    }

    /// The epoch ended in another way than by the failure of a worker.
    pub(super) fn forget(&mut self) {
        *self = Self { started: self.started, ..Self::default() };
    }

    /// How it stands once this incident has ended the epoch. Where no worker failed, or another node's fault explains
    /// that, nothing repeats; nor does what failed longer than the `window` ago.
    pub(super) fn after(&self, incident: &Incident, window: Duration) -> Self {
        let first = first_failure(incident).filter(|_| !incident.is_explained());
        let Some((node, rank, way, at)) = first else { return Self::default() };
        if at >= self.at.after(window) {
            let afresh = Self { started: self.started, ..Self::default() };
            return afresh.with(node, rank, way, at);
        }
        self.with(node, rank, way, at)
    }

    /// The same with one more failure.
    fn with(&self, node: NodeName, rank: Rank, way: Way, at: Moment) -> Self {
        let is_start = self.started.is_some_and(|started| at < started.after(STARTUP_WINDOW));
        let is_same = self.last.as_ref().is_some_and(|last| last.way == way);
        let failed_starts = match (is_start && way.is_of_the_program(), is_same) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => self.failed_starts.saturating_add(1),
        };
        let failure = Failure { rank, way };
        let mut nodes = match self.last == Some(failure.clone()) {
            true => self.nodes.clone(),
            false => BTreeSet::new(),
        };
        nodes.insert(node);
        Self { started: None, last: Some(failure), at, nodes, failed_starts }
    }

    /// The same for people, and for who is charged.
    pub(super) fn repetition(&self) -> Repetition {
        // A signal or an exit code alone is no proof that it was the same.
        let is_proven = self.last.as_ref().is_some_and(|last| !last.way.message.is_empty());
        let is_elsewhere = is_proven && self.nodes.len() > 1;
        let nodes = if is_elsewhere { self.nodes.clone() } else { BTreeSet::new() };
        Repetition { nodes, failed_starts: self.failed_starts }
    }
}

impl Way {
    /// Whether a worker ended by itself, or there is no such program: not by a signal, which someone sends, or which
    /// a machine's fault causes.
    fn is_of_the_program(&self) -> bool {
        self.end == WorkerEnd::NotStarted || !self.end.is_cause()
    }
}

/// The worker that failed first; of those killed, if any was: others fail with it.
fn first_failure(incident: &Incident) -> Option<(NodeName, Rank, Way, Moment)> {
    let failed = incident.events.iter().filter_map(|event| match event {
        FaultEvent::WorkerFailed { node, rank, end, at, detail } => {
            let message = detail.message.replace(|letter: char| letter.is_ascii_digit(), "");
            Some((node.clone(), *rank, Way { end: *end, message }, *at))
        }
        _ => None,
    });
    failed.min_by_key(|(_, rank, way, at)| (!way.end.is_cause(), *at, *rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::{Epoch, Term};
    use crate::incident::IncidentId;
    use crate::observation::FailureDetail;

    const SECOND: u64 = 1_000_000_000;
    const WINDOW: Duration = Duration::from_secs(3600);

    /// The failure of one worker `after` so many seconds.
    fn failure(node: &str, rank: u32, end: WorkerEnd, message: &str, after: u64) -> Incident {
        let id = IncidentId { term: Term::new(1), number: 1 };
        let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
        let at = Moment::from_ns(after * SECOND);
        let detail = FailureDetail { message: message.to_owned(), log: String::new() };
        let (node, rank) = (NodeName::new(node).unwrap(), Rank(rank));
        incident.add(at, FaultEvent::WorkerFailed { node, rank, end, at, detail });
        incident
    }

    /// What stands after these failures, each of an epoch that began at 0.
    fn after(incidents: &[Incident]) -> Repetition {
        let mut repeats = Repeats::default();
        for incident in incidents {
            repeats.begin(Moment::from_ns(0));
            repeats = repeats.after(incident, WINDOW);
        }
        repeats.repetition()
    }

    #[test]
    fn starts_that_fail_alike_are_counted() {
        let code = WorkerEnd::Code(1);
        let syntax = |rank, after| failure("a", rank, code, "SyntaxError: line 3", after);
        assert_eq!(after(&[syntax(0, 2), syntax(1, 3), syntax(0, 59)]).failed_starts, 3);
        let other = failure("a", 0, code, "ValueError: no such file", 2);
        assert_eq!(after(&[syntax(0, 2), other, syntax(0, 2)]).failed_starts, 1);
        assert_eq!(after(&[syntax(0, 2), syntax(0, 61), syntax(0, 2)]).failed_starts, 1);
        let killed = failure("a", 0, WorkerEnd::Signal(9), "", 2);
        assert_eq!(after(&[killed.clone(), killed]).failed_starts, 0);
        let absent = failure("a", 0, WorkerEnd::NotStarted, "no such file", 0);
        assert_eq!(after(&[absent.clone(), absent]).failed_starts, 2);
    }

    #[test]
    fn an_epoch_that_another_leader_began_is_no_failed_start() {
        let failure = failure("a", 0, WorkerEnd::Code(1), "", 2);
        let repeats = Repeats::default().after(&failure, WINDOW);
        assert_eq!(repeats.repetition().failed_starts, 0);
    }

    #[test]
    fn survivors_of_lost_nodes_repeat_nothing() {
        let survivor = |lost: &str| {
            let mut incident = failure("a", 0, WorkerEnd::Code(1), "NCCL error: remote error", 5);
            let node = NodeName::new(lost).unwrap();
            incident.add(Moment::from_ns(6 * SECOND), FaultEvent::Silent { node });
            incident
        };
        let all = ["b", "c", "d", "e", "f", "g"].map(survivor);
        assert_eq!(after(&all), Repetition::default());
        let mut missed = failure("a", 0, WorkerEnd::Code(1), "NCCL error: remote error", 5);
        missed.miss([NodeName::new("b").unwrap()]);
        assert_eq!(after(&[missed.clone(), missed]), Repetition::default());
    }

    #[test]
    fn what_failed_long_ago_or_left_no_message_proves_nothing() {
        let at = |node, message, seconds| failure(node, 3, WorkerEnd::Code(1), message, seconds);
        let nodes = |incidents: &[Incident]| after(incidents).nodes.len();
        assert_eq!(nodes(&[at("a", "ValueError", 500), at("b", "ValueError", 4_000)]), 2);
        assert_eq!(nodes(&[at("a", "ValueError", 500), at("b", "ValueError", 4_200)]), 0);
        assert_eq!(nodes(&[at("a", "", 500), at("b", "", 600)]), 0);
    }

    #[test]
    fn a_rank_that_fails_alike_elsewhere_names_the_nodes() {
        let at = |node, batch: u32| {
            failure(node, 3, WorkerEnd::Code(1), &format!("ValueError: bad batch {batch}"), 500)
        };
        let names = |repetition: Repetition| -> Vec<String> {
            repetition.nodes.iter().map(|node| node.as_str().to_owned()).collect()
        };
        assert_eq!(names(after(&[at("a", 1), at("a", 2)])), [""; 0], "the node may be ill");
        assert_eq!(names(after(&[at("a", 1), at("a", 2), at("b", 3)])), ["a", "b"]);
        let other = failure("a", 2, WorkerEnd::Code(1), "ValueError: bad batch 4", 500);
        assert_eq!(names(after(&[at("a", 1), other, at("b", 3)])), [""; 0]);
    }
}
