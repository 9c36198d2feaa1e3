//! Questions and orders of operators.

use prost::Message;
use telltale_wire::cluster::Payload;
use telltale_wire::cluster::decode::Bounded;
use telltale_wire::cluster::message;
use tonic::codegen::{BoxFuture, Bytes};
use tonic::server::UnaryService;
use tonic::{Request, Response, Status};

use super::super::mailbox::Mailbox;
use telltale_cluster::coordinator::OperatorOrder;
use telltale_cluster::node::NodeName;
use telltale_cluster::policy::Mode;

/// What is called.
#[derive(Debug, Clone, Copy)]
pub(super) enum Method {
    GetStatus,
    ListNodes,
    ListIncidents,
    GetIncident,
    GetRankMap,
    GetSteps,
    GetTrace,
    ListDecisions,
    Restart,
    Drain,
    Remove,
    Readmit,
    SetMode,
}

/// One call.
pub(super) struct Call {
    pub(super) mailbox: Mailbox,
    pub(super) method: Method,
}

impl Method {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "GetStatus" => Self::GetStatus,
            "ListNodes" => Self::ListNodes,
            "ListIncidents" => Self::ListIncidents,
            "GetIncident" => Self::GetIncident,
            "GetRankMap" => Self::GetRankMap,
            "GetSteps" => Self::GetSteps,
            "GetTrace" => Self::GetTrace,
            "ListDecisions" => Self::ListDecisions,
            "Restart" => Self::Restart,
            "Drain" => Self::Drain,
            "Remove" => Self::Remove,
            "Readmit" => Self::Readmit,
            "SetMode" => Self::SetMode,
            _ => return None,
        })
    }
}

impl UnaryService<Bytes> for Call {
    type Response = Payload;
    type Future = BoxFuture<Response<Payload>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (mailbox, method) = (self.mailbox.clone(), self.method);
        Box::pin(async move {
            let bytes = request.into_inner();
            answer(&mailbox, method, &bytes).await.map(Response::new)
        })
    }
}

async fn answer(mailbox: &Mailbox, method: Method, bytes: &[u8]) -> Result<Payload, Status> {
    let order = match method {
        Method::GetStatus => {
            let message::GetStatusRequest {} = asked(bytes)?;
            return Ok(payload(&mailbox.status().await?));
        }
        Method::ListNodes => {
            let message::ListNodesRequest {} = asked(bytes)?;
            return Ok(payload(&mailbox.nodes().await?));
        }
        Method::ListIncidents => {
            let message::ListIncidentsRequest { limit } = asked(bytes)?;
            return Ok(payload(&mailbox.incidents(most(limit)).await?));
        }
        Method::GetIncident => {
            let message::GetIncidentRequest { id } = asked(bytes)?;
            return Ok(payload(&mailbox.incident(id).await?));
        }
        Method::GetRankMap => {
            let message::GetRankMapRequest {} = asked(bytes)?;
            return Ok(payload(&mailbox.rank_map().await?));
        }
        Method::GetSteps => {
            let message::GetStepsRequest {} = asked(bytes)?;
            return Ok(payload(&mailbox.steps().await?));
        }
        Method::GetTrace => return Ok(payload(&mailbox.trace(asked(bytes)?).await?)),
        Method::ListDecisions => {
            let message::ListDecisionsRequest { limit } = asked(bytes)?;
            return Ok(payload(&mailbox.decisions(most(limit)).await?));
        }
        Method::Restart => {
            let message::RestartRequest {} = asked(bytes)?;
            OperatorOrder::Restart
        }
        Method::Drain => {
            let message::DrainRequest { node } = asked(bytes)?;
            OperatorOrder::Drain(named(&node)?)
        }
        Method::Remove => {
            let message::RemoveRequest { node } = asked(bytes)?;
            OperatorOrder::Remove(named(&node)?)
        }
        Method::Readmit => {
            let message::ReadmitRequest { node } = asked(bytes)?;
            OperatorOrder::Readmit(named(&node)?)
        }
        Method::SetMode => {
            let message::SetModeRequest { mode } = asked(bytes)?;
            OperatorOrder::SetMode(mode_of(mode)?)
        }
    };
    Ok(payload(&mailbox.order(order).await?))
}

fn asked<Asked: Bounded>(bytes: &[u8]) -> Result<Asked, Status> {
    Asked::bounded(bytes).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn named(node: &str) -> Result<NodeName, Status> {
    NodeName::new(node).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn mode_of(mode: i32) -> Result<Mode, Status> {
    match message::Mode::try_from(mode).unwrap_or_default() {
        message::Mode::Unspecified => Err(Status::invalid_argument("no such mode")),
        message::Mode::Observe => Ok(Mode::Observe),
        message::Mode::Recover => Ok(Mode::Recover),
        message::Mode::Act => Ok(Mode::Act),
    }
}

/// How many are wanted; 0 means all.
fn most(limit: u32) -> usize {
    match usize::try_from(limit) {
        Ok(limit) if limit > 0 => limit,
        _ => usize::MAX,
    }
}

fn payload(message: &impl Message) -> Payload {
    Payload { shared: Bytes::new(), own: message.encode_to_vec() }
}
