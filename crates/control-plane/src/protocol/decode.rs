//! From messages to plain data.

mod operations;
mod order;
mod report;
mod standings;

use std::num::{NonZeroU16, NonZeroU64};

use telltale_wire::cluster::decode::Bounded as _;
use telltale_wire::cluster::message::{self, node_message};

pub use order::{DecodedOrder, coordinator_message};

use super::ProtocolError;
use crate::examination::NodeStandings;
use telltale_cluster::epoch::{Epoch, JobIdentity};
use telltale_cluster::message::{
    Acknowledgement, AgentActivity, FromNode, FromNodeBody, KnownJob, NotPrepared, OrderStep,
    Registration,
};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::policy::is_job_name;
use telltale_cluster::rank::{MAX_SLOTS, MAX_WORKERS, Rank, WorkersPerNode};
use telltale_cluster::vitals::Vitals;

/// The greatest rank that a job may have.
const MAX_RANK: u32 = MAX_SLOTS * MAX_WORKERS - 1;

/// What an agent says in one message.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage {
    /// What is for the coordinator.
    pub message: FromNode,
    /// What is for people.
    pub vitals: Option<Vitals>,
    /// Where its workers stand, in a message that says so.
    pub standings: Option<NodeStandings>,
    /// By what one who registers again on another connection is known to be the same.
    pub instance: Option<Instance>,
    /// The name of the job that one who registers was started for, if that is for a certain one.
    pub job: Option<String>,
}

/// A number that one life of an agent drew and sent only to its coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance(pub NonZeroU64);

/// A message of an agent that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMessage {
    /// Whose it is, where that can be read.
    pub node: Option<NodeName>,
    /// Why it is not taken.
    pub error: ProtocolError,
}

/// A message of an agent. `known` spares making the name again when the message is of the same node.
///
/// # Errors
/// When the bytes are no such message, or anything in it cannot be.
pub fn node_message(
    bytes: &[u8],
    known: Option<&NodeName>,
) -> Result<AgentMessage, RefusedMessage> {
    let mut message = message::NodeMessage::bounded(bytes)
        .map_err(|error| RefusedMessage { node: None, error: error.into() })?;
    let node = match known {
        Some(known) if known.as_str() == message.node => known.clone(),
        _ => NodeName::new(&message.node)
            .map_err(|error| RefusedMessage { node: None, error: error.into() })?,
    };
    let incarnation = Incarnation::new(message.incarnation);
    let sequence = message.sequence;
    let (instance, job) = match &mut message.body {
        Some(node_message::Body::Registration(one)) => {
            let job = std::mem::take(&mut one.job);
            (NonZeroU64::new(one.instance).map(Instance), (!job.is_empty()).then_some(job))
        }
        _ => (None, None),
    };
    if job.as_ref().is_some_and(|job| !is_job_name(job)) {
        return Err(RefusedMessage { node: Some(node), error: ProtocolError::Job });
    }
    let (body, evidence) = match body(message.body) {
        Ok(found) => found,
        Err(error) => return Err(RefusedMessage { node: Some(node), error }),
    };
    Ok(AgentMessage {
        message: FromNode { node, incarnation, sequence, body },
        vitals: evidence.vitals,
        standings: evidence.standings,
        instance,
        job,
    })
}

/// What is for people.
#[derive(Default)]
struct ForPeople {
    vitals: Option<Vitals>,
    standings: Option<NodeStandings>,
}

fn body(body: Option<node_message::Body>) -> Result<(FromNodeBody, ForPeople), ProtocolError> {
    let nothing = ForPeople::default();
    Ok(match body.ok_or(ProtocolError::Missing("what the node reports"))? {
        node_message::Body::Registration(one) => {
            (FromNodeBody::Register(registration(&one)?), nothing)
        }
        node_message::Body::Report(one) => {
            let (report, vitals) = report::report(one)?;
            (FromNodeBody::Report(report), ForPeople { vitals, ..nothing })
        }
        node_message::Body::Acknowledgement(one) => {
            (FromNodeBody::Acknowledge(acknowledgement(&one)?), nothing)
        }
        node_message::Body::Standings(one) => {
            let standings = Some(standings::standings(one)?);
            (FromNodeBody::Examined, ForPeople { standings, ..nothing })
        }
        node_message::Body::Leave(_) => (FromNodeBody::Leave, nothing),
    })
}

fn registration(from: &message::Registration) -> Result<Registration, ProtocolError> {
    Ok(Registration {
        address: HostAddress::new(&from.address)?,
        workers: workers(from.workers)?,
        activity: activity(from.activity)?,
        known: match NonZeroU64::new(from.known_job) {
            Some(job) => {
                Some(KnownJob { job: JobIdentity::new(job), epoch: epoch(from.known_epoch)? })
            }
            None => None,
        },
        planned_since: NonZeroU64::new(from.planned_since).map(|life| Incarnation::new(life.get())),
    })
}

fn acknowledgement(from: &message::Acknowledgement) -> Result<Acknowledgement, ProtocolError> {
    use message::AcknowledgedStep as Wire;
    let missing = ProtocolError::Missing("the step of an acknowledgement");
    let step = match Wire::try_from(from.step).unwrap_or_default() {
        Wire::Unspecified => return Err(missing),
        Wire::Stopping => OrderStep::Stopping,
        Wire::Prepared => OrderStep::Prepared { port: from.port.map(port).transpose()? },
        Wire::NoPort => OrderStep::NotPrepared(NotPrepared::NoPort),
        Wire::RestartsUsedUp => OrderStep::NotPrepared(NotPrepared::RestartsUsedUp),
        Wire::Started => OrderStep::Started,
    };
    Ok(Acknowledgement { epoch: epoch(from.epoch)?, step })
}

fn activity(from: Option<message::Activity>) -> Result<AgentActivity, ProtocolError> {
    use message::ActivityKind as Wire;
    let missing = ProtocolError::Missing("what the agent is doing");
    let Some(from) = from else { return Err(missing) };
    let epoch = epoch(from.epoch)?;
    match Wire::try_from(from.kind).unwrap_or_default() {
        Wire::Unspecified => Err(missing),
        Wire::Idle => Ok(AgentActivity::Idle),
        Wire::Preparing => Ok(AgentActivity::Preparing(epoch)),
        Wire::Committed => Ok(AgentActivity::Committed(epoch)),
    }
}

fn epoch(number: u64) -> Result<Epoch, ProtocolError> {
    let epoch = Epoch::new(number);
    if epoch > Epoch::MAX {
        let (field, range) = ("an epoch", "0 to 9007199254740991");
        return Err(ProtocolError::OutOfRange { field, value: number, range });
    }
    Ok(epoch)
}

fn workers(count: u32) -> Result<WorkersPerNode, ProtocolError> {
    WorkersPerNode::new(count).ok_or(ProtocolError::OutOfRange {
        field: "the number of workers",
        value: count.into(),
        range: "1 to 1024",
    })
}

fn rank(number: u32) -> Result<Rank, ProtocolError> {
    if number > MAX_RANK {
        let (field, range) = ("a rank", "0 to 67108863");
        return Err(ProtocolError::OutOfRange { field, value: number.into(), range });
    }
    Ok(Rank(number))
}

fn port(number: u32) -> Result<NonZeroU16, ProtocolError> {
    let port = u16::try_from(number).ok().and_then(NonZeroU16::new);
    let (field, range) = ("a port", "1 to 65535");
    port.ok_or(ProtocolError::OutOfRange { field, value: number.into(), range })
}
