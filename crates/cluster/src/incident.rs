//! One fault, however many events of it there are.
//!
//! Survivors of a crash fail too, within milliseconds; acting on each report would evict the
//! innocent. Events are collected for as long as it is open what they mean, and then there is one
//! decision.

mod event;

pub use event::{FaultEvent, HookOutcome};

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use event::Weight;

use crate::epoch::{Epoch, Term};
use crate::node::NodeName;
use crate::time::Moment;

/// Events that one incident keeps; more are counted and dropped.
pub const MAX_EVENTS: usize = 256;

/// The number of an incident, unique among all leaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IncidentId {
    /// The term of the leader that saw it first.
    pub term: Term,
    /// Counted by that leader, from 1.
    pub number: u32,
}

impl fmt::Display for IncidentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.term, self.number)
    }
}

/// How an incident stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Events are collected.
    Collecting,
    /// It would be acted on, but for this reason.
    Held(Hold),
    /// The job is restarted in this epoch.
    Answered(Epoch),
    /// All events have gone by themselves, or the job has finished in spite of them.
    Passed,
    /// The job was given up, since its restarts are used up, or it fails in the same way at each start.
    GivenUp,
    /// The job was ended, and another begun in its place.
    Reset,
}

/// Why nothing is done, for now: about an incident, or to go on with an epoch that is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// The coordinator only observes, or only recovers what has failed already.
    Mode,
    /// A new leader has not heard from enough nodes for long enough.
    Grace,
    /// So many nodes fell silent at once that the network or the coordinator is suspected.
    MassSilence,
    /// Too many nodes were evicted lately.
    EvictionBudget,
    /// A suspicion has not been seen often enough in a row, or does not name one node.
    Unsure,
    /// There is no spare for a node that is only suspected and still runs.
    NoSpare,
    /// The command that runs before nodes are drained has not ended.
    BeforeDrain,
    /// The job still runs, and one more restart would end it.
    RestartBudget,
}

/// One incident.
#[derive(Debug, Clone, PartialEq)]
pub struct Incident {
    /// Its number.
    pub id: IncidentId,
    /// The epoch that it is about.
    pub epoch: Epoch,
    /// When its first event came.
    pub opened: Moment,
    /// When its last event came.
    pub last_event: Moment,
    /// When the first event came after which the job cannot go on.
    pub ended: Option<Moment>,
    /// Its events, in the order they came; at most [`MAX_EVENTS`], of which those are kept on which most
    /// depends.
    pub events: Vec<FaultEvent>,
    /// Events that were dropped.
    pub dropped_events: u64,
    /// Whether something that was planned explains all that survivors do: an operator's order, or agents that were
    /// asked to end. Only what is certain has a cause then.
    pub excused: bool,
    /// Nodes that were heard last before the first failure, and were overdue or had closed their connections until
    /// the epoch that answers it ran: workers of others that failed as survivors do may have missed them. At most
    /// [`MAX_EVENTS`].
    pub missed: BTreeSet<NodeName>,
    /// How the failures before it were like it, once it is answered.
    pub repetition: Repetition,
    /// How it stands.
    pub standing: Standing,
}

/// How far a failure repeats those before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repetition {
    /// Nodes on which the same rank failed in the same way, epoch after epoch: then the program or its data is at
    /// fault. Empty where it was one node.
    pub nodes: BTreeSet<NodeName>,
    /// Epochs in a row that failed in the same way shortly after their start.
    pub failed_starts: u32,
}

/// The node that a failure is attributed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Which.
    pub node: NodeName,
    /// Whether that is certain: a worker of it ended as no survivor does. Otherwise it may be an echo of a
    /// fault that is not known yet.
    pub certain: bool,
}

impl Incident {
    /// A new incident without an event.
    #[must_use]
    pub const fn new(id: IncidentId, epoch: Epoch, opened: Moment) -> Self {
        Self {
            id,
            epoch,
            opened,
            last_event: opened,
            ended: None,
            events: Vec::new(),
            dropped_events: 0,
            excused: false,
            missed: BTreeSet::new(),
            repetition: Repetition { nodes: BTreeSet::new(), failed_starts: 0 },
            standing: Standing::Collecting,
        }
    }

    /// Adds an event. Where there are too many, the latest of those on which least depends gives way to
    /// one on which more does.
    pub fn add(&mut self, now: Moment, event: FaultEvent) {
        self.last_event = now;
        if event.ends_the_epoch() {
            self.ended.get_or_insert(now);
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
            return;
        }
        self.dropped_events = self.dropped_events.saturating_add(1);
        let held = self.events.iter().map(FaultEvent::weight).enumerate();
        let lightest = held.min_by_key(|(place, weight)| (*weight, Reverse(*place)));
        if let Some((place, weight)) = lightest
            && weight < event.weight()
        {
            self.events.remove(place);
            self.events.push(event);
        }
    }

    /// Whether an event says that the job cannot go on.
    #[must_use]
    pub const fn ends_the_epoch(&self) -> bool {
        self.ended.is_some()
    }

    /// When to act on it, if no further event comes. At once, when no other event could change
    /// the answer: a worker was killed, which is no echo of anything, or all of the `nodes` that still
    /// ran have reported how they failed. Events are collected from the first on that ends the epoch: a
    /// suspicion that was there for hours says nothing of how many are yet to fail.
    #[must_use]
    pub fn due(&self, coalescing: Duration, settling: Duration, nodes: usize) -> Moment {
        if self.has_killed() || self.is_everybody(nodes) {
            return self.opened;
        }
        let first = self.ended.unwrap_or(self.opened);
        first.after(coalescing).min(self.last_event.after(settling))
    }

    /// Whether a worker was killed, as far as the events show.
    #[must_use]
    pub fn has_killed(&self) -> bool {
        self.events.iter().any(|event| event.killed().is_some())
    }

    /// Whether workers of nodes that are heard have failed as survivors do, and those nodes report nothing
    /// else that would end the epoch.
    #[must_use]
    pub fn has_only_survivors(&self, is_heard: impl Fn(&NodeName) -> bool) -> bool {
        let ends = self.events.iter().filter_map(|event| match event {
            FaultEvent::WorkerFailed { node, end, .. } => Some((node, !end.is_cause())),
            FaultEvent::AgentRestarted { node } | FaultEvent::NotStarted { node } => {
                Some((node, false))
            }
            FaultEvent::Silent { .. }
            | FaultEvent::Suspected(_)
            | FaultEvent::Unhealthy { .. }
            | FaultEvent::BeforeDrain(_) => None,
        });
        let mut heard = ends.filter(|(node, _)| is_heard(node)).peekable();
        heard.peek().is_some() && heard.all(|(_, is_survivor)| is_survivor)
    }

    /// Whether so many nodes have failed.
    fn is_everybody(&self, nodes: usize) -> bool {
        if self.events.len() < nodes {
            return false;
        }
        let failed = self.events.iter().filter_map(|event| match event {
            FaultEvent::WorkerFailed { node, .. } | FaultEvent::AgentRestarted { node } => {
                Some(node)
            }
            _ => None,
        });
        failed.collect::<BTreeSet<_>>().len() >= nodes
    }

    /// Whether no event that ends the epoch was dropped: that happens only where all that are kept do.
    fn has_every_end(&self) -> bool {
        self.dropped_events == 0 || self.events.iter().any(|event| event.weight() == Weight::Doubt)
    }

    /// Adds nodes to those that may have been missed.
    pub(crate) fn miss(&mut self, nodes: impl IntoIterator<Item = NodeName>) {
        let room = MAX_EVENTS.saturating_sub(self.missed.len());
        self.missed.extend(nodes.into_iter().take(room));
    }

    /// When the first worker failed, as far as the events show.
    pub(crate) fn failed(&self) -> Option<Moment> {
        let failed = self.events.iter().filter_map(|event| match event {
            FaultEvent::WorkerFailed { at, .. } => Some(*at),
            _ => None,
        });
        failed.min()
    }

    /// Nodes whose agents were restarted.
    pub fn restarted(&self) -> impl Iterator<Item = &NodeName> {
        self.events.iter().filter_map(|event| match event {
            FaultEvent::AgentRestarted { node } => Some(node),
            _ => None,
        })
    }

    /// Nodes whose health has failed.
    pub fn unhealthy(&self) -> impl Iterator<Item = &NodeName> {
        self.unhealthy_if(|_| true)
    }

    /// Whether another node than this is silent, was missed or hangs, so that a worker that failed as survivors do may
    /// have missed it.
    fn is_explained_without(&self, node: &NodeName) -> bool {
        let is_signed = self.events.iter().any(|event| match event {
            FaultEvent::Silent { node: other }
            | FaultEvent::Unhealthy { node: other, is_new: true, .. } => other != node,
            FaultEvent::Suspected(verdict) if verdict.kind.is_hang() => {
                verdict.suspects.node() != Some(node)
            }
            _ => false,
        });
        is_signed || self.missed.iter().any(|missed| missed != node)
    }

    /// Whether something else than a program explains that workers failed: a node that is silent, was missed, hangs,
    /// was restarted or does not start its workers, or a plan.
    #[must_use]
    pub fn is_explained(&self) -> bool {
        let is_explanation = |event: &FaultEvent| match event {
            FaultEvent::Silent { .. }
            | FaultEvent::AgentRestarted { .. }
            | FaultEvent::NotStarted { .. } => true,
            FaultEvent::Suspected(verdict) => verdict.kind.is_hang(),
            // A fault that was there for hours explains no program that fails at each start.
            FaultEvent::WorkerFailed { .. }
            | FaultEvent::Unhealthy { .. }
            | FaultEvent::BeforeDrain(_) => false,
        };
        self.excused || !self.missed.is_empty() || self.events.iter().any(is_explanation)
    }

    /// The node that the job failed for, as far as the events show: the first whose worker ended as no
    /// survivor does ([`is_cause`](crate::observation::WorkerEnd::is_cause)); else the only one whose
    /// health has failed in this epoch; else the only one whose agent was restarted; else the only one that
    /// failed, unless a silence, a hang or a plan of another explains that; else the only one whose health
    /// had failed before.
    #[must_use]
    pub fn root_cause(&self) -> Option<Cause> {
        let certain = |node: &NodeName| Cause { node: node.clone(), certain: true };
        let likely = |node: &NodeName| Cause { node: node.clone(), certain: false };
        let killed = self.events.iter().filter_map(FaultEvent::killed).min_by_key(|(at, _)| *at);
        if let Some((_, node)) = killed {
            return Some(certain(node));
        }
        if self.excused {
            return None;
        }
        if self.unhealthy_if(|is_new| is_new).next().is_some() {
            return self.only_unhealthy(|is_new| is_new);
        }
        let mut restarted = self.restarted();
        if let Some(first) = restarted.next() {
            // Of several, the first is unknown.
            return restarted.all(|other| other == first).then(|| likely(first));
        }
        let mut failed = self.events.iter().filter_map(|event| match event {
            FaultEvent::WorkerFailed { node, .. } => Some(node),
            _ => None,
        });
        let Some(first) = failed.next() else { return self.only_unhealthy(|_| true) };
        let alone = self.has_every_end() && failed.all(|other| other == first);
        match alone && !self.is_explained_without(first) {
            true => Some(likely(first)),
            false => self.only_unhealthy(|_| true),
        }
    }

    fn unhealthy_if(&self, counts: impl Fn(bool) -> bool) -> impl Iterator<Item = &NodeName> {
        self.events.iter().filter_map(move |event| match event {
            FaultEvent::Unhealthy { node, is_new, .. } if counts(*is_new) => Some(node),
            _ => None,
        })
    }

    /// The only one of these nodes, if there is one. A worker that failed may have done so for another reason.
    fn only_unhealthy(&self, counts: impl Fn(bool) -> bool) -> Option<Cause> {
        let mut nodes = self.unhealthy_if(counts);
        let first = nodes.next()?;
        let cause = Cause { node: first.clone(), certain: !self.ends_the_epoch() };
        nodes.all(|other| other == first).then_some(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{FailureDetail, WorkerEnd};
    use crate::rank::Rank;
    use crate::verdict::Verdict;
    use crate::verdict::{Suspect, Suspects, VerdictKind};

    fn failed(node: &str, end: WorkerEnd, at_ns: u64) -> FaultEvent {
        let node = NodeName::new(node).unwrap();
        let (at, detail) = (Moment::from_ns(at_ns), FailureDetail::default());
        FaultEvent::WorkerFailed { node, rank: Rank(0), end, at, detail }
    }

    #[test]
    fn the_first_that_was_killed_is_the_cause() {
        let restarted = FaultEvent::AgentRestarted { node: NodeName::new("c").unwrap() };
        let killed = WorkerEnd::Signal(9);
        let code = WorkerEnd::Code(1);
        let cases = [
            (vec![failed("a", code, 1), failed("b", killed, 5)], Some("b")),
            (vec![failed("a", killed, 7), failed("b", killed, 5)], Some("b")),
            (vec![failed("a", code, 1), failed("b", WorkerEnd::Signal(6), 5)], None),
            (vec![failed("a", code, 1)], Some("a")),
            (vec![failed("a", code, 1), restarted.clone()], Some("c")),
            (vec![failed("a", killed, 1), restarted.clone()], Some("a")),
            // Of several that were restarted, the first is unknown.
            (vec![restarted.clone(), restarted.clone()], Some("c")),
            (
                vec![restarted, FaultEvent::AgentRestarted { node: NodeName::new("d").unwrap() }],
                None,
            ),
            // A shell that reports a child without memory is no echo; who writes to a peer that is
            // gone is.
            (vec![failed("a", code, 1), failed("b", WorkerEnd::Code(137), 5)], Some("b")),
            (vec![failed("a", code, 1), failed("b", WorkerEnd::Signal(13), 5)], None),
        ];
        for (events, expected) in cases {
            let id = IncidentId { term: Term::new(1), number: 1 };
            let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
            for event in events {
                incident.add(Moment::from_ns(9), event);
            }
            assert_eq!(incident.root_cause().as_ref().map(|cause| cause.node.as_str()), expected);
        }
    }

    #[test]
    fn a_survivor_is_not_the_cause_while_a_silence_or_a_hang_explains_it() {
        let node = |text: &str| NodeName::new(text).unwrap();
        let silent = |text: &str| FaultEvent::Silent { node: node(text) };
        let suspected = |kind: VerdictKind, text: &str| {
            FaultEvent::Suspected(Verdict {
                kind,
                suspects: Suspects::One(Suspect::Node(node(text))),
                confidence: 1.0,
                evidence: Vec::new(),
                first_seen: Moment::from_ns(0),
                windows: 10,
            })
        };
        let hang = VerdictKind::NonCommunicationHang;
        let survivor = failed("a", WorkerEnd::Code(1), 1);
        let cases = [
            (vec![silent("c"), survivor.clone()], None),
            (vec![survivor.clone(), silent("c")], None),
            (vec![suspected(hang, "c"), survivor.clone()], None),
            (vec![suspected(hang, "a"), survivor.clone()], Some("a")),
            (vec![survivor.clone(), silent("a")], Some("a")),
            (vec![suspected(VerdictKind::SlowNode, "c"), survivor], Some("a")),
            // A worker that was killed missed no peer.
            (vec![silent("c"), failed("a", WorkerEnd::Signal(11), 1)], Some("a")),
        ];
        for (events, expected) in cases {
            let id = IncidentId { term: Term::new(1), number: 1 };
            let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
            events.iter().for_each(|event| incident.add(Moment::from_ns(9), event.clone()));
            let cause = incident.root_cause().map(|cause| cause.node);
            assert_eq!(cause.as_ref().map(NodeName::as_str), expected, "{events:?}");
        }
    }

    #[test]
    fn the_cause_is_kept_among_ten_thousand_echoes() {
        let id = IncidentId { term: Term::new(1), number: 1 };
        let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
        for index in 0..10_000 {
            incident.add(Moment::from_ns(1), failed(&format!("n{index}"), WorkerEnd::Code(1), 1));
        }
        assert_eq!(incident.root_cause(), None);
        incident.add(Moment::from_ns(2), failed("late", WorkerEnd::Signal(9), 0));
        assert_eq!(incident.root_cause().map(|cause| cause.certain), Some(true));
        assert_eq!(incident.events.len(), MAX_EVENTS);
    }

    #[test]
    fn what_ends_the_epoch_is_kept_among_suspicions() {
        let node = |text: &str| NodeName::new(text).unwrap();
        let suspected = |index: usize| {
            FaultEvent::Suspected(Verdict {
                kind: VerdictKind::SlowLink,
                suspects: Suspects::One(Suspect::Node(node(&format!("n{index}")))),
                confidence: 1.0,
                evidence: Vec::new(),
                first_seen: Moment::from_ns(0),
                windows: 10,
            })
        };
        let ends = [
            failed("a", WorkerEnd::Code(1), 2),
            FaultEvent::AgentRestarted { node: node("b") },
            FaultEvent::NotStarted { node: node("c") },
        ];
        for (place, end) in ends.iter().enumerate() {
            let id = IncidentId { term: Term::new(1), number: 1 };
            let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
            (0..=MAX_EVENTS).for_each(|index| incident.add(Moment::from_ns(1), suspected(index)));
            assert!(!incident.ends_the_epoch());
            incident.add(Moment::from_ns(2), end.clone());
            assert!(incident.ends_the_epoch(), "{end:?}");
            assert_eq!((incident.events.last(), incident.events.len()), (Some(end), MAX_EVENTS));
            assert_eq!((&incident.events[0], incident.dropped_events), (&suspected(0), 2));
            let cause = incident.root_cause().map(|cause| cause.node);
            assert_eq!(cause, [Some(node("a")), Some(node("b")), None][place]);
        }
    }

    #[test]
    fn a_suspicion_of_long_ago_does_not_hurry_a_crash() {
        let id = IncidentId { term: Term::new(1), number: 1 };
        let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
        let ms = Duration::from_millis;
        let at = |time: Duration| Moment::from_ns(0).after(time);
        incident.add(at(ms(0)), FaultEvent::Silent { node: NodeName::new("s").unwrap() });
        for (reported, due) in [(60_000, 60_200), (60_900, 61_000)] {
            incident.add(at(ms(reported)), failed("a", WorkerEnd::Code(1), 0));
            assert_eq!(incident.due(ms(1000), ms(200), 9), at(ms(due)));
        }
    }

    #[test]
    fn nothing_is_waited_for_that_could_change_nothing() {
        let at = Moment::from_ns;
        let (second, settling) = (Duration::from_secs(1), Duration::from_millis(200));
        let silent = FaultEvent::Silent { node: NodeName::new("c").unwrap() };
        let (code, killed) = (WorkerEnd::Code(1), WorkerEnd::Signal(11));
        let aborted = WorkerEnd::Signal(6);
        let cases = [
            (vec![failed("a", killed, 0)], true),
            (vec![failed("a", code, 0), failed("b", killed, 0)], true),
            (vec![failed("a", code, 0), failed("b", aborted, 0)], false),
            (vec![failed("a", code, 0), failed("b", code, 0), failed("b", code, 0)], false),
            (vec![failed("a", code, 0), failed("b", code, 0), silent], false),
            (vec![failed("a", code, 0), failed("b", aborted, 0), failed("c", code, 0)], true),
        ];
        for (events, at_once) in cases {
            let id = IncidentId { term: Term::new(1), number: 1 };
            let mut incident = Incident::new(id, Epoch::new(1), at(5));
            for event in &events {
                incident.add(at(7), event.clone());
            }
            let expected = if at_once { at(5) } else { at(7).after(settling) };
            assert_eq!(incident.due(second, settling, 3), expected, "{events:?}");
        }
    }

    #[test]
    fn signs_are_collected_until_none_comes_or_the_time_is_up() {
        let id = IncidentId { term: Term::new(1), number: 1 };
        let mut incident = Incident::new(id, Epoch::new(1), Moment::from_ns(0));
        let ms = Duration::from_millis;
        let at = |time: Duration| Moment::from_ns(0).after(time);
        incident.add(at(ms(0)), failed("a", WorkerEnd::Code(1), 0));
        assert_eq!(incident.due(ms(1000), ms(200), 9), at(ms(200)));
        incident.add(at(ms(900)), failed("b", WorkerEnd::Code(1), 0));
        assert_eq!(incident.due(ms(1000), ms(200), 9), at(ms(1000)));
        for _ in 0..MAX_EVENTS {
            incident.add(at(ms(900)), failed("b", WorkerEnd::Code(1), 0));
        }
        assert_eq!((incident.events.len(), incident.dropped_events), (MAX_EVENTS, 2));
    }
}
