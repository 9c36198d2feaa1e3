//! What was stored, read back: checked as a stranger's, since disks and other programs write too.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU64};

use telltale_wire::cluster_state::{VERSION, message};

use super::kept::{DecisionRecord, IncidentRecord, MAX_INCIDENT_BYTES};
use telltale_cluster::epoch::{Epoch, JobIdentity, Term};
use telltale_cluster::incident::IncidentId;
use telltale_cluster::message::{JobOutcome, Master};
use telltale_cluster::node::{Bar, HostAddress, NodeName, NodeNameError};
use telltale_cluster::policy::{self, Mode};
use telltale_cluster::rank::{MAX_SLOTS, RankMap, Slot, WorkersPerNode};
use telltale_cluster::stored::{DecisionNumber, Phase, StoredState, Why};

/// Nodes that may be kept out of the job, or have failures that count.
const MAX_NAMED: usize = 1 << 20;

/// Why what is stored is no decision.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It is no such message.
    #[error("it is no such message")]
    Malformed(#[source] prost::DecodeError),
    /// A newer program wrote it.
    #[error("it has version {version}, and this program knows {VERSION}; run the newer program")]
    Newer {
        /// Its version.
        version: u32,
    },
    /// A field is not there.
    #[error("{field} is missing")]
    Missing {
        /// Which.
        field: &'static str,
    },
    /// A field has a value that it cannot have.
    #[error("{field} is out of its range")]
    Range {
        /// Which.
        field: &'static str,
    },
    /// A name is no name.
    #[error("a node in it has no proper name")]
    Name(#[from] NodeNameError),
    /// A node is in two slots.
    #[error("node {node} is in two slots")]
    Twice {
        /// Which.
        node: NodeName,
    },
}

/// A decision that was stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredDecision {
    pub(super) record: DecisionRecord,
    pub(super) state: StoredState,
}

/// A decision and its state.
pub(super) fn decision(decision: message::Decision) -> Result<StoredDecision, StateError> {
    if decision.version != VERSION {
        return Err(StateError::Newer { version: decision.version });
    }
    let state = state(decision.state.ok_or(StateError::Missing { field: "the state" })?)?;
    let record = DecisionRecord {
        term: Term::new(decision.term),
        number: DecisionNumber(decision.number),
        count: decision.count,
        epoch: state.epoch,
        phase: state.phase.clone(),
        why: why(decision.why)?,
    };
    Ok(StoredDecision { record, state })
}

/// A decision without its state.
pub(super) fn logged(logged: message::LoggedDecision) -> Result<DecisionRecord, StateError> {
    Ok(DecisionRecord {
        term: Term::new(logged.term),
        number: DecisionNumber(logged.number),
        count: logged.count,
        epoch: Epoch::new(logged.epoch),
        phase: phase(logged.phase)?,
        why: why(logged.why)?,
    })
}

/// An incident.
pub(super) fn incident(incident: message::Incident) -> Result<IncidentRecord, StateError> {
    if incident.content.len() > MAX_INCIDENT_BYTES {
        return Err(StateError::Range { field: "the length of an incident" });
    }
    let id = IncidentId { term: Term::new(incident.term), number: incident.number };
    Ok(IncidentRecord { id, content: incident.content })
}

fn state(state: message::State) -> Result<StoredState, StateError> {
    let outside = |field| StateError::Range { field };
    let mode = match state.mode() {
        message::Mode::Observe => Mode::Observe,
        message::Mode::Recover => Mode::Recover,
        message::Mode::Act => Mode::Act,
        message::Mode::Unspecified => return Err(outside("the mode")),
    };
    if state.barred.len() > MAX_NAMED || state.failures.len() > MAX_NAMED {
        return Err(outside("the number of nodes"));
    }
    let mut barred = BTreeMap::new();
    for entry in &state.barred {
        let bar = match entry.bar() {
            message::Bar::Quarantined => Bar::Quarantined,
            message::Bar::Suspected => Bar::Suspected,
            message::Bar::Draining => Bar::Draining,
            message::Bar::Removed => Bar::Removed,
            message::Bar::Unspecified => return Err(outside("why a node is quarantined")),
        };
        barred.insert(NodeName::new(&entry.node)?, bar);
    }
    let mut failures = BTreeMap::new();
    for entry in &state.failures {
        failures.insert(NodeName::new(&entry.node)?, entry.count);
    }
    let is_name = policy::is_job_name(&state.job);
    if !is_name && !state.job.is_empty() {
        return Err(outside("the job's name"));
    }
    Ok(StoredState {
        job: is_name.then_some(state.job),
        identity: NonZeroU64::new(state.identity).map(JobIdentity::new),
        epoch: Epoch::new(state.epoch),
        phase: phase(state.phase)?,
        planned: state.planned,
        map: map(state.workers_per_node, &state.holders)?,
        restarts: state.restarts,
        last_port: match state.last_port {
            0 => None,
            number => Some(port(number)?),
        },
        barred,
        failures,
        evictions: state.evictions,
        counted_restarts: state.counted_restarts,
        mode,
    })
}

fn map(workers: u32, holders: &[String]) -> Result<RankMap, StateError> {
    let outside = |field| StateError::Range { field };
    let workers = WorkersPerNode::new(workers).ok_or(outside("the number of workers a node"))?;
    let slots = u32::try_from(holders.len()).ok().filter(|count| *count <= MAX_SLOTS);
    let slots = slots.ok_or(outside("the number of slots"))?;
    let mut map = RankMap::vacant(slots, workers);
    for (slot, holder) in (0..).map(Slot).zip(holders).filter(|(_, holder)| !holder.is_empty()) {
        let node = NodeName::new(holder)?;
        if !map.fill(slot, &node) {
            return Err(StateError::Twice { node });
        }
    }
    Ok(map)
}

fn phase(phase: Option<message::Phase>) -> Result<Phase, StateError> {
    use message::phase::Phase as Wire;
    let phase = phase.and_then(|phase| phase.phase);
    match phase.ok_or(StateError::Missing { field: "the phase" })? {
        Wire::Forming(_) => Ok(Phase::Forming),
        Wire::Preparing(_) => Ok(Phase::Preparing),
        Wire::Committed(master) => {
            let address = HostAddress::new(&master.address)?;
            Ok(Phase::Committed(Master { address, port: port(master.port)? }))
        }
        Wire::Over(number) => Ok(Phase::Over(outcome(number)?)),
    }
}

fn why(why: Option<message::Why>) -> Result<Why, StateError> {
    use message::why::Why as Wire;
    let why = why.and_then(|why| why.why);
    match why.ok_or(StateError::Missing { field: "the reason" })? {
        Wire::Formed(_) => Ok(Why::Formed),
        Wire::Incident(answered) => Ok(Why::Incident {
            incident: IncidentId { term: Term::new(answered.term), number: answered.number },
            evicted: names(&answered.evicted)?,
        }),
        Wire::Unanswered(nodes) => Ok(Why::Unanswered { evicted: names(&nodes.nodes)? }),
        Wire::Quarantined(node) => Ok(Why::Quarantined { node: NodeName::new(&node)? }),
        Wire::Left(left) => Ok(Why::Left { nodes: names(&left.nodes)? }),
        Wire::Absent(absent) => Ok(Why::Absent { nodes: names(&absent.nodes)? }),
        Wire::Filled(_) => Ok(Why::Filled),
        Wire::Shrunk(_) => Ok(Why::Shrunk),
        Wire::Prepared(_) => Ok(Why::Prepared),
        Wire::Over(number) => Ok(Why::Over(outcome(number)?)),
        Wire::Ordered(_) => Ok(Why::Ordered),
        Wire::Reset(_) => Ok(Why::Reset),
    }
}

fn names(nodes: &[String]) -> Result<Vec<NodeName>, StateError> {
    nodes.iter().map(|node| Ok(NodeName::new(node)?)).collect()
}

fn port(number: u32) -> Result<NonZeroU16, StateError> {
    let port = u16::try_from(number).ok().and_then(NonZeroU16::new);
    port.ok_or(StateError::Range { field: "a port" })
}

fn outcome(number: i32) -> Result<JobOutcome, StateError> {
    match message::Outcome::try_from(number) {
        Ok(message::Outcome::Finished) => Ok(JobOutcome::Finished),
        Ok(message::Outcome::GivenUp) => Ok(JobOutcome::GivenUp),
        _ => Err(StateError::Range { field: "how the job ended" }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;
    use proptest::prelude::*;
    use prost::Message as _;
    use telltale_cluster::stored::Decision;

    fn name(text: &str) -> NodeName {
        NodeName::new(text).unwrap()
    }

    fn stored() -> StoredState {
        let mut map = RankMap::vacant(3, WorkersPerNode::new(8).unwrap());
        assert!(map.fill(Slot(0), &name("a")));
        assert!(map.fill(Slot(2), &name("c")));
        StoredState {
            job: Some("job".to_owned()),
            identity: NonZeroU64::new(77).map(JobIdentity::new),
            epoch: Epoch::new(7),
            phase: Phase::Preparing,
            planned: true,
            map,
            restarts: 6,
            last_port: NonZeroU16::new(29_507),
            barred: [(name("b"), Bar::Suspected), (name("d"), Bar::Draining)].into(),
            failures: [(name("b"), 2)].into(),
            evictions: 1,
            counted_restarts: 5,
            mode: Mode::Act,
        }
    }

    fn decision_of(why: Why, phase: Phase) -> Decision {
        Decision {
            term: Term::new(3),
            number: DecisionNumber(9),
            expected: telltale_cluster::epoch::Revision::new(40),
            why,
            state: StoredState { phase, ..stored() },
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let incident = IncidentId { term: Term::new(2), number: 4 };
        let master = Master {
            address: HostAddress::new("host-a").unwrap(),
            port: NonZeroU16::new(29_508).unwrap(),
        };
        let cases = [
            (Why::Formed, Phase::Forming),
            (Why::Incident { incident, evicted: vec![name("b")] }, Phase::Preparing),
            (Why::Unanswered { evicted: vec![name("b"), name("d")] }, Phase::Preparing),
            (Why::Quarantined { node: name("b") }, Phase::Preparing),
            (Why::Left { nodes: vec![name("a")] }, Phase::Preparing),
            (Why::Absent { nodes: vec![name("a"), name("b")] }, Phase::Preparing),
            (Why::Filled, Phase::Preparing),
            (Why::Shrunk, Phase::Preparing),
            (Why::Prepared, Phase::Committed(master)),
            (Why::Over(JobOutcome::Finished), Phase::Over(JobOutcome::Finished)),
            (Why::Ordered, Phase::Over(JobOutcome::GivenUp)),
            (Why::Reset, Phase::Forming),
        ];
        for (why, phase) in cases {
            let decided = decision_of(why, phase);
            let bytes = encode::decision(&decided, 41).encode_to_vec();
            let read = decision(message::Decision::decode(bytes.as_slice()).unwrap()).unwrap();
            let record = DecisionRecord::of(&decided, 41);
            assert_eq!(read, StoredDecision { record: record.clone(), state: decided.state });
            assert_eq!(logged(encode::logged(&record)).unwrap(), record);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wire = || encode::decision(&decision_of(Why::Filled, Phase::Preparing), 1);
        let with_state = |change: fn(&mut message::State)| {
            let mut changed = wire();
            change(changed.state.as_mut().unwrap());
            changed
        };
        let cases = [
            (message::Decision { version: 2, ..wire() }, "run the newer program"),
            (message::Decision { state: None, ..wire() }, "the state is missing"),
            (message::Decision { why: None, ..wire() }, "the reason is missing"),
            (with_state(|state| state.phase = None), "the phase is missing"),
            (with_state(|state| state.mode = 9), "the mode"),
            (with_state(|state| state.workers_per_node = 0), "the number of workers"),
            (with_state(|state| state.last_port = 65_536), "a port"),
            (with_state(|state| state.holders[1] = "a".into()), "node a is in two slots"),
            (with_state(|state| state.holders[1] = "a b".into()), "no proper name"),
            (with_state(|state| state.holders.resize(65_537, String::new())), "number of slots"),
            (with_state(|state| state.barred[0].bar = 0), "quarantined"),
            (with_state(|state| state.job = "a\nb".into()), "the job's name"),
        ];
        for (changed, expected) in cases {
            let error = decision(changed).unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} has no {expected:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(message) = message::Decision::decode(bytes.as_slice()) {
                let _ = decision(message);
            }
        }
    }
}
