//! Where questions and orders come to the coordinator's task, by any transport.

use telltale_wire::cluster::message;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tonic::Status;
use tonic::metadata::MetadataValue;

use super::roster::{Orders, StreamId};
use super::standing::Standing;
use crate::protocol::decode::AgentMessage;
use telltale_cluster::coordinator::{OperatorOrder, OrderRefused};

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, MailboxError>>;

/// What comes to the coordinator's task.
#[derive(Debug)]
pub(super) enum MailboxEvent {
    /// A stream of an agent has begun.
    Opened { stream: StreamId, orders: Orders },
    /// A message came on it; the permit is its share of what may wait.
    Heard {
        stream: StreamId,
        word: Box<AgentMessage>,
        read: std::time::Instant,
        #[expect(dead_code, reason = "held until the message is taken")]
        share: OwnedSemaphorePermit,
    },
    /// It has ended.
    Closed { stream: StreamId, ending: StreamEnding },
    /// A client asks.
    Asked(Question),
}

/// How the stream of an agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnding {
    /// The agent has ended it.
    ByAgent,
    /// Its connection was closed in the middle of it, at the agent's end or between.
    Broken,
    /// This coordinator has ended it, or does not take what came on it.
    Refused,
}

/// What may be asked.
#[derive(Debug)]
pub(super) enum Question {
    Status(Reply<message::GetStatusResponse>),
    Nodes(Reply<message::ListNodesResponse>),
    Incidents(usize, Reply<message::ListIncidentsResponse>),
    Incident(String, Reply<message::GetIncidentResponse>),
    RankMap(Reply<message::GetRankMapResponse>),
    Steps(Reply<message::GetStepsResponse>),
    Trace(message::GetTraceRequest, Reply<message::GetTraceResponse>),
    Decisions(usize, Reply<message::ListDecisionsResponse>),
    Order(OperatorOrder, Reply<message::OrderResponse>),
    Gauges(oneshot::Sender<super::gauges::Gauges>),
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MailboxError {
    /// Another coordinator leads, or none.
    #[error("{}", .0.refusal())]
    NotLeading(Standing),
    /// There is no such incident.
    #[error("no incident has this number; `telltale cluster incidents` lists them")]
    NoIncident,
    /// There is no incident at all.
    #[error("no incident is known")]
    NoneYet,
    /// The order is not carried out.
    #[error(transparent)]
    Refused(#[from] OrderRefused),
    /// The program is ending.
    #[error("the coordinator is ending; ask again, or another one")]
    Ending,
}

/// A way to the coordinator's task.
#[derive(Debug, Clone)]
pub struct Mailbox {
    events: mpsc::Sender<MailboxEvent>,
}

// === impl Mailbox ===

impl Mailbox {
    pub(super) fn new(events: mpsc::Sender<MailboxEvent>) -> Self {
        Self { events }
    }

    /// Gives the task an event; says whether it is still there.
    pub(super) async fn send(&self, event: MailboxEvent) -> bool {
        self.events.send(event).await.is_ok()
    }

    /// The job at a glance.
    ///
    /// # Errors
    /// When this coordinator does not lead, or ends.
    pub async fn status(&self) -> Result<message::GetStatusResponse, MailboxError> {
        self.ask(Question::Status).await
    }

    /// Every node that is known.
    ///
    /// # Errors
    /// When this coordinator does not lead, or ends.
    pub async fn nodes(&self) -> Result<message::ListNodesResponse, MailboxError> {
        self.ask(Question::Nodes).await
    }

    /// The latest incidents, the newest first.
    ///
    /// # Errors
    /// When this coordinator does not lead, or ends.
    pub async fn incidents(
        &self,
        limit: usize,
    ) -> Result<message::ListIncidentsResponse, MailboxError> {
        self.ask(|reply| Question::Incidents(limit, reply)).await
    }

    /// One incident by its number, the newest by none.
    ///
    /// # Errors
    /// When there is none, or this coordinator does not lead, or ends.
    pub async fn incident(&self, id: String) -> Result<message::GetIncidentResponse, MailboxError> {
        let any = id.is_empty();
        let found = self.ask(|reply| Question::Incident(id, reply)).await;
        found.map_err(|error| match error {
            MailboxError::NoIncident if any => MailboxError::NoneYet,
            error => error,
        })
    }

    /// Who runs which ranks.
    ///
    /// # Errors
    /// When this coordinator does not lead, or ends.
    pub async fn rank_map(&self) -> Result<message::GetRankMapResponse, MailboxError> {
        self.ask(Question::RankMap).await
    }

    /// How long the job's training steps take, and where the time goes.
    ///
    /// # Errors
    /// When this coordinator does not lead, or ends.
    pub async fn steps(&self) -> Result<message::GetStepsResponse, MailboxError> {
        self.ask(Question::Steps).await
    }

    /// Operations of the job's latest training steps, from one on.
    ///
    /// # Errors
    /// When this coordinator does not lead, or ends.
    pub async fn trace(
        &self,
        from: message::GetTraceRequest,
    ) -> Result<message::GetTraceResponse, MailboxError> {
        self.ask(|reply| Question::Trace(from, reply)).await
    }

    /// The latest decisions, the newest first.
    ///
    /// # Errors
    /// When this coordinator does not lead, or ends.
    pub async fn decisions(
        &self,
        limit: usize,
    ) -> Result<message::ListDecisionsResponse, MailboxError> {
        self.ask(|reply| Question::Decisions(limit, reply)).await
    }

    /// Orders something; answered once it is stored.
    ///
    /// # Errors
    /// When the order is refused, or this coordinator ends.
    pub async fn order(
        &self,
        order: OperatorOrder,
    ) -> Result<message::OrderResponse, MailboxError> {
        self.ask(|reply| Question::Order(order, reply)).await
    }

    /// Values for the metrics, whether it leads or not.
    pub(super) async fn gauges(&self) -> Option<super::gauges::Gauges> {
        let (reply, answer) = oneshot::channel();
        self.send(MailboxEvent::Asked(Question::Gauges(reply))).await;
        answer.await.ok()
    }

    async fn ask<T>(&self, question: impl FnOnce(Reply<T>) -> Question) -> Result<T, MailboxError> {
        let (reply, answer) = oneshot::channel();
        self.send(MailboxEvent::Asked(question(reply))).await;
        answer.await.unwrap_or(Err(MailboxError::Ending))
    }
}

// === impl Status ===

impl From<MailboxError> for Status {
    fn from(error: MailboxError) -> Self {
        let text = error.to_string();
        match error {
            MailboxError::NotLeading(standing) => not_leading(&standing),
            MailboxError::Refused(OrderRefused::NotLeading) => not_leading(&Standing::default()),
            MailboxError::NoIncident
            | MailboxError::NoneYet
            | MailboxError::Refused(OrderRefused::UnknownNode { .. }) => Self::not_found(text),
            MailboxError::Refused(OrderRefused::NotStarted | OrderRefused::Behind) => {
                Self::failed_precondition(text)
            }
            MailboxError::Refused(OrderRefused::TooMany) => Self::resource_exhausted(text),
            MailboxError::Refused(OrderRefused::NotStored) | MailboxError::Ending => {
                Self::unavailable(text)
            }
        }
    }
}

/// The refusal of a coordinator that does not lead.
pub(super) fn not_leading(standing: &Standing) -> Status {
    let mut status = Status::failed_precondition(standing.refusal());
    let value = MetadataValue::try_from(standing.leader.as_deref().unwrap_or_default());
    let empty = MetadataValue::from_static("");
    status.metadata_mut().insert(telltale_wire::cluster::LEADER_METADATA, value.unwrap_or(empty));
    status
}
