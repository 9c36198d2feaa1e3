//! What a coordinator tells an agent.

use std::num::NonZeroU64;

use telltale_wire::cluster::message::{self, coordinator_message};

use super::super::ProtocolError;
use super::{epoch, port, workers};
use telltale_cluster::epoch::{JobIdentity, Term};
use telltale_cluster::message::{Assignment, JobOutcome, Master, Order, Ports, ToNode};
use telltale_cluster::node::{HostAddress, NodeName};
use telltale_cluster::policy::is_job_name;
use telltale_cluster::rank::{MAX_SLOTS, Rank, Slot};

/// What a coordinator reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodedOrder {
    /// An order.
    Order {
        /// For which node.
        node: NodeName,
        /// The order.
        message: ToNode,
    },
    /// A message was not taken.
    Refused {
        /// Whose, where the coordinator could read that.
        node: Option<NodeName>,
        /// Why.
        reason: String,
    },
}

/// A message of a coordinator.
///
/// # Errors
/// When anything in it cannot be.
pub fn coordinator_message(
    from: message::CoordinatorMessage,
) -> Result<DecodedOrder, ProtocolError> {
    use coordinator_message::Order as Wire;
    let order = match from.order.ok_or(ProtocolError::Missing("an order"))? {
        Wire::Welcome(_) => Order::Welcome,
        Wire::Register(_) => Order::Register,
        Wire::Prepare(prepare) => Order::Prepare {
            ports: prepare.ports.map(ports).transpose()?,
            planned: prepare.planned,
        },
        Wire::Commit(one) => Order::Commit(assignment(one)?),
        Wire::Examine(examine) => Order::Examine { reports: examine.reports },
        Wire::Standby(_) => Order::Standby,
        Wire::Stop(stop) => Order::Stop(outcome(stop.outcome)?),
        Wire::Evict(_) => Order::Evict,
        Wire::Forget(forget) => {
            let job = NonZeroU64::new(forget.job_identity);
            Order::Forget(JobIdentity::new(job.ok_or(ProtocolError::Missing("the job to forget"))?))
        }
        Wire::Refusal(refusal) => {
            let node = (!from.node.is_empty()).then(|| NodeName::new(&from.node)).transpose()?;
            return Ok(DecodedOrder::Refused { node, reason: refusal.reason });
        }
    };
    let message = ToNode {
        term: Term::new(from.term),
        sequence: from.sequence,
        epoch: epoch(from.epoch)?,
        job: NonZeroU64::new(from.job_identity).map(JobIdentity::new),
        order,
    };
    Ok(DecodedOrder::Order { node: NodeName::new(&from.node)?, message })
}

fn ports(from: message::Ports) -> Result<Ports, ProtocolError> {
    let (first, least, greatest) = (port(from.first)?, port(from.least)?, port(from.greatest)?);
    if first < least || first > greatest {
        return Err(ProtocolError::Contradiction("the first port is not in the range of ports"));
    }
    Ok(Ports { first, least, greatest })
}

fn assignment(from: message::Assignment) -> Result<Assignment, ProtocolError> {
    let workers = workers(from.workers)?;
    if from.slots == 0 || from.slots > MAX_SLOTS {
        let (field, range) = ("the number of slots", "1 to 65536");
        return Err(ProtocolError::OutOfRange { field, value: from.slots.into(), range });
    }
    let fits = from.slot < from.slots
        && from.world_size == from.slots * workers.get()
        && from.first_rank == from.slot * workers.get();
    if !fits {
        let text = "slot, ranks and size of an assignment do not fit together";
        return Err(ProtocolError::Contradiction(text));
    }
    let address = HostAddress::new(&from.master_address)?;
    if !is_job_name(&from.job) {
        return Err(ProtocolError::Job);
    }
    Ok(Assignment {
        slot: Slot(from.slot),
        slots: from.slots,
        first_rank: Rank(from.first_rank),
        workers,
        world_size: from.world_size,
        master: Master { address, port: port(from.master_port)? },
        restarts: from.restarts,
        digest: from.digest,
        job: from.job,
        max_restarts: from.max_restarts,
    })
}

fn outcome(from: i32) -> Result<JobOutcome, ProtocolError> {
    use message::JobOutcome as Wire;
    match Wire::try_from(from).unwrap_or_default() {
        Wire::Unspecified => Err(ProtocolError::Missing("how the job ended")),
        Wire::Finished => Ok(JobOutcome::Finished),
        Wire::GivenUp => Ok(JobOutcome::GivenUp),
    }
}
