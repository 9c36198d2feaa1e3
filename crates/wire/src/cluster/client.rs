//! Asks a coordinator, or registers with it as an agent.

use prost::Message;
use prost::bytes::Bytes;
use tonic::codegen::tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::decode::{Bounded, MessageError};
use super::message::{
    CoordinatorMessage, DrainRequest, GetIncidentRequest, GetIncidentResponse, GetRankMapRequest,
    GetRankMapResponse, GetStatusRequest, GetStatusResponse, GetStepsRequest, GetStepsResponse,
    GetTraceRequest, GetTraceResponse, ListDecisionsRequest, ListDecisionsResponse,
    ListIncidentsRequest, ListIncidentsResponse, ListNodesRequest, ListNodesResponse, NodeMessage,
    OrderResponse, ReadmitRequest, RemoveRequest, RestartRequest, SetModeRequest,
};
use super::{LEADER_METADATA, MAX_ANSWER_BYTES, SERVICE, TokenTextError};
use crate::call::{ServiceChannel, payload};

/// A coordinator at the other end of a channel.
#[derive(Debug, Clone)]
pub struct Client(ServiceChannel);

/// What a coordinator tells the nodes of one stream, as it comes.
#[derive(Debug)]
pub struct Orders(Streaming<Bytes>);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Another coordinator leads, or none.
    #[error("{said}")]
    NotLeader {
        /// The address of the one that does, as far as this one knows.
        leader: Option<String>,
        /// What it says of that.
        said: String,
    },
    /// The coordinator refused, or could not be reached. The status is no source: its text is that of
    /// gRPC, with what is said here once more.
    #[error("the coordinator refused the call: {}", .0.message())]
    Refused(Box<Status>),
    /// What came is no answer.
    #[error("the coordinator's answer cannot be used")]
    Answer(#[from] MessageError),
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let leader = status.metadata().get(LEADER_METADATA);
        match (status.code(), leader) {
            (Code::FailedPrecondition, Some(leader)) => {
                let leader = leader.to_str().ok().filter(|leader| !leader.is_empty());
                let leader = leader.map(str::to_owned);
                Self::NotLeader { leader, said: status.message().to_owned() }
            }
            _ => Self::Refused(Box::new(status)),
        }
    }
}

// === impl Client ===

impl Client {
    /// A client over this channel.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self(ServiceChannel::new(channel, SERVICE, MAX_ANSWER_BYTES))
    }

    /// The same client, which sends the coordinator's token with each call.
    ///
    /// # Errors
    /// When the text is no token.
    pub fn with_token(self, token: &str) -> Result<Self, TokenTextError> {
        self.0.with_token(token).map(Self)
    }

    /// Attends as one node or many: sends what `messages` gives, and returns what comes back once the
    /// coordinator has taken the stream.
    ///
    /// # Errors
    /// When the coordinator refuses or does not lead.
    pub async fn attend(
        &mut self,
        messages: impl Stream<Item = NodeMessage> + Send + 'static,
    ) -> Result<Orders, CallError> {
        let payloads = messages.map(|message| payload(&message));
        Ok(Orders(self.0.exchange("Attend", payloads).await?))
    }

    /// The job at a glance.
    ///
    /// # Errors
    /// When the coordinator refuses or its answer cannot be used.
    pub async fn status(&mut self) -> Result<GetStatusResponse, CallError> {
        self.unary("GetStatus", &GetStatusRequest {}).await
    }

    /// Every node that is known.
    ///
    /// # Errors
    /// When the coordinator refuses or its answer cannot be used.
    pub async fn nodes(&mut self) -> Result<ListNodesResponse, CallError> {
        self.unary("ListNodes", &ListNodesRequest {}).await
    }

    /// The latest incidents, the newest first: `limit` at most, or all that are kept.
    ///
    /// # Errors
    /// When the coordinator refuses or its answer cannot be used.
    pub async fn incidents(
        &mut self,
        limit: Option<u32>,
    ) -> Result<ListIncidentsResponse, CallError> {
        let request = ListIncidentsRequest { limit: limit.unwrap_or(0) };
        self.unary("ListIncidents", &request).await
    }

    /// One incident with all that is known of it; the newest where no number is given.
    ///
    /// # Errors
    /// When the coordinator refuses or its answer cannot be used.
    pub async fn incident(&mut self, id: Option<&str>) -> Result<GetIncidentResponse, CallError> {
        let id = id.unwrap_or_default().to_owned();
        self.unary("GetIncident", &GetIncidentRequest { id }).await
    }

    /// How long the job's training steps take, and where the time goes.
    ///
    /// # Errors
    /// As for all calls.
    pub async fn steps(&mut self) -> Result<GetStepsResponse, CallError> {
        self.unary("GetSteps", &GetStepsRequest {}).await
    }

    /// Operations of the job's latest training steps, from one on; its answer says where to go on.
    ///
    /// # Errors
    /// As for all calls.
    pub async fn trace(&mut self, from: GetTraceRequest) -> Result<GetTraceResponse, CallError> {
        self.unary("GetTrace", &from).await
    }

    /// Who runs which ranks.
    ///
    /// # Errors
    /// When the coordinator refuses or its answer cannot be used.
    pub async fn rank_map(&mut self) -> Result<GetRankMapResponse, CallError> {
        self.unary("GetRankMap", &GetRankMapRequest {}).await
    }

    /// The latest decisions, the newest first: `limit` at most, or all that are kept.
    ///
    /// # Errors
    /// When the coordinator refuses or its answer cannot be used.
    pub async fn decisions(
        &mut self,
        limit: Option<u32>,
    ) -> Result<ListDecisionsResponse, CallError> {
        let request = ListDecisionsRequest { limit: limit.unwrap_or(0) };
        self.unary("ListDecisions", &request).await
    }

    /// Orders the job to be restarted.
    ///
    /// # Errors
    /// When the coordinator refuses.
    pub async fn restart(&mut self) -> Result<OrderResponse, CallError> {
        self.unary("Restart", &RestartRequest {}).await
    }

    /// Orders a node to be taken out as soon as a spare can take its slot.
    ///
    /// # Errors
    /// When the coordinator refuses.
    pub async fn drain(&mut self, node: &str) -> Result<OrderResponse, CallError> {
        self.unary("Drain", &DrainRequest { node: node.to_owned() }).await
    }

    /// Orders a node to be taken out now.
    ///
    /// # Errors
    /// When the coordinator refuses.
    pub async fn remove(&mut self, node: &str) -> Result<OrderResponse, CallError> {
        self.unary("Remove", &RemoveRequest { node: node.to_owned() }).await
    }

    /// Orders that a node may take slots again.
    ///
    /// # Errors
    /// When the coordinator refuses.
    pub async fn readmit(&mut self, node: &str) -> Result<OrderResponse, CallError> {
        self.unary("Readmit", &ReadmitRequest { node: node.to_owned() }).await
    }

    /// Orders how much the coordinator does by itself.
    ///
    /// # Errors
    /// When the coordinator refuses.
    pub async fn set_mode(
        &mut self,
        mode: super::message::Mode,
    ) -> Result<OrderResponse, CallError> {
        self.unary("SetMode", &SetModeRequest { mode: mode.into() }).await
    }

    async fn unary<Answer: Bounded>(
        &mut self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<Answer, CallError> {
        let bytes = self.0.unary(method, request).await?;
        Ok(Answer::bounded(&bytes)?)
    }
}

// === impl Orders ===

impl Orders {
    /// The next message; none when the coordinator has ended the stream.
    ///
    /// # Errors
    /// When the coordinator breaks off, leads no longer, or what it sent cannot be used.
    pub async fn next(&mut self) -> Result<Option<CoordinatorMessage>, CallError> {
        match self.0.message().await? {
            Some(bytes) => Ok(Some(CoordinatorMessage::bounded(&bytes)?)),
            None => Ok(None),
        }
    }
}
