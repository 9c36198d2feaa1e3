//! From plain data to messages.

mod hang;
mod incident;
mod operations;
mod report;
mod steps;
mod trace;

use telltale_wire::cluster::message::{self, coordinator_message, node_message};

use telltale_cluster::epoch::JobIdentity;
use telltale_cluster::message::{
    Acknowledgement, AgentActivity, Assignment, FromNode, FromNodeBody, JobOutcome, NotPrepared,
    Order, OrderStep, ToNode,
};
use telltale_cluster::node::{Incarnation, NodeName};
use telltale_cluster::vitals::Vitals;

pub(crate) use hang::{hang, standings};
pub(crate) use incident::{before_drain, hold, incident, matrix, verdict, verdict_kind};
pub(crate) use report::{nanoseconds, vitals, worker};
pub(crate) use steps::steps;
pub(crate) use trace::trace;

/// Bytes of a refusal's reason, what an agent takes.
const MAX_REASON_BYTES: usize = 512;

/// A message of an agent, with how its node is where that is reported.
#[must_use]
pub fn node_message(from: &FromNode, vitals: Option<&Vitals>) -> message::NodeMessage {
    let body = match &from.body {
        FromNodeBody::Register(one) => node_message::Body::Registration(message::Registration {
            address: one.address.as_str().to_owned(),
            workers: one.workers.get(),
            activity: Some(activity(one.activity)),
            // The sender has these.
            instance: 0,
            job: String::new(),
            known_job: one.known.map_or(0, |known| known.job.number()),
            known_epoch: one.known.map_or(0, |known| known.epoch.number()),
            planned_since: one.planned_since.map_or(0, Incarnation::number),
        }),
        FromNodeBody::Report(one) => node_message::Body::Report(report::report(one, vitals)),
        FromNodeBody::Acknowledge(one) => {
            node_message::Body::Acknowledgement(acknowledgement(*one))
        }
        // The sender has them.
        FromNodeBody::Examined => node_message::Body::Standings(message::Standings::default()),
        FromNodeBody::Leave => node_message::Body::Leave(message::Leave {}),
    };
    message::NodeMessage {
        node: from.node.as_str().to_owned(),
        incarnation: from.incarnation.number(),
        sequence: from.sequence,
        body: Some(body),
    }
}

/// A message to an agent.
#[must_use]
pub fn coordinator_message(node: &NodeName, from: &ToNode) -> message::CoordinatorMessage {
    use coordinator_message::Order as Wire;
    let order = match &from.order {
        Order::Welcome => Wire::Welcome(message::Welcome {}),
        Order::Register => Wire::Register(message::Register {}),
        Order::Prepare { ports, planned } => Wire::Prepare(message::Prepare {
            planned: *planned,
            ports: ports.map(|ports| message::Ports {
                first: ports.first.get().into(),
                least: ports.least.get().into(),
                greatest: ports.greatest.get().into(),
            }),
        }),
        Order::Commit(one) => Wire::Commit(assignment(one)),
        Order::Examine { reports } => Wire::Examine(message::Examine { reports: *reports }),
        Order::Standby => Wire::Standby(message::Standby {}),
        Order::Stop(one) => Wire::Stop(message::Stop { outcome: outcome(*one).into() }),
        Order::Evict => Wire::Evict(message::Evict {}),
        Order::Forget(job) => Wire::Forget(message::Forget { job_identity: job.number() }),
    };
    message::CoordinatorMessage {
        node: node.as_str().to_owned(),
        term: from.term.number(),
        sequence: from.sequence,
        epoch: from.epoch.number(),
        job_identity: from.job.map_or(0, JobIdentity::number),
        order: Some(order),
    }
}

/// Tells that a message was not taken; the reason is cut to what an agent takes.
#[must_use]
pub fn refusal(node: Option<&NodeName>, reason: &str) -> message::CoordinatorMessage {
    let end = reason.floor_char_boundary(MAX_REASON_BYTES);
    let refusal = message::Refusal { reason: reason[..end].to_owned() };
    message::CoordinatorMessage {
        node: node.map(|node| node.as_str().to_owned()).unwrap_or_default(),
        term: 0,
        sequence: 0,
        epoch: 0,
        job_identity: 0,
        order: Some(coordinator_message::Order::Refusal(refusal)),
    }
}

fn acknowledgement(from: Acknowledgement) -> message::Acknowledgement {
    use message::AcknowledgedStep as Wire;
    let (step, port) = match from.step {
        OrderStep::Stopping => (Wire::Stopping, None),
        OrderStep::Prepared { port } => (Wire::Prepared, port),
        OrderStep::NotPrepared(NotPrepared::NoPort) => (Wire::NoPort, None),
        OrderStep::NotPrepared(NotPrepared::RestartsUsedUp) => (Wire::RestartsUsedUp, None),
        OrderStep::Started => (Wire::Started, None),
    };
    let port = port.map(|port| port.get().into());
    message::Acknowledgement { epoch: from.epoch.number(), step: step.into(), port }
}

fn assignment(from: &Assignment) -> message::Assignment {
    message::Assignment {
        slot: from.slot.0,
        slots: from.slots,
        first_rank: from.first_rank.0,
        workers: from.workers.get(),
        world_size: from.world_size,
        master_address: from.master.address.as_str().to_owned(),
        master_port: from.master.port.get().into(),
        restarts: from.restarts,
        digest: from.digest,
        job: from.job.clone(),
        max_restarts: from.max_restarts,
    }
}

pub(crate) fn activity(from: AgentActivity) -> message::Activity {
    use message::ActivityKind as Wire;
    let (kind, epoch) = match from {
        AgentActivity::Idle => (Wire::Idle, 0),
        AgentActivity::Preparing(epoch) => (Wire::Preparing, epoch.number()),
        AgentActivity::Committed(epoch) => (Wire::Committed, epoch.number()),
    };
    message::Activity { kind: kind.into(), epoch }
}

pub(crate) const fn outcome(from: JobOutcome) -> message::JobOutcome {
    match from {
        JobOutcome::Finished => message::JobOutcome::Finished,
        JobOutcome::GivenUp => message::JobOutcome::GivenUp,
    }
}
