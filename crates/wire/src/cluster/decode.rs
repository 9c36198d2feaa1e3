//! From bytes to messages. The bytes may be anyone's: they are counted and measured first.

use prost::Message;

use super::limited::{
    COORDINATOR_MESSAGE, DECISIONS_ANSWER, INCIDENT_ANSWER, INCIDENTS_ANSWER, MAX_PARTS,
    NODE_MESSAGE, NODES_ANSWER, PLAIN_ANSWER, RANK_MAP_ANSWER, REQUEST, STATUS_ANSWER,
    STEPS_ANSWER, TRACE_ANSWER,
};
use super::message::{
    CoordinatorMessage, DrainRequest, GetIncidentRequest, GetIncidentResponse, GetRankMapRequest,
    GetRankMapResponse, GetStatusRequest, GetStatusResponse, GetStepsRequest, GetStepsResponse,
    GetTraceRequest, GetTraceResponse, ListDecisionsRequest, ListDecisionsResponse,
    ListIncidentsRequest, ListIncidentsResponse, ListNodesRequest, ListNodesResponse, NodeMessage,
    OrderResponse, ReadmitRequest, RemoveRequest, RestartRequest, SetModeRequest,
};
use super::{MAX_ANSWER_BYTES, MAX_NODE_MESSAGE_BYTES, MAX_ORDER_BYTES, MAX_REQUEST_BYTES};
use crate::shape::{self, FieldLimit, ShapeError};

/// Why bytes are no message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// They are too many.
    #[error("a message of {bytes} bytes, {limit_bytes} are allowed")]
    TooLong {
        /// How many there are.
        bytes: usize,
        /// How many are allowed.
        limit_bytes: usize,
    },
    /// They break a limit.
    #[error("the message breaks a limit of the protocol: {0}")]
    Limit(ShapeError),
    /// They are no protobuf message.
    #[error("not a message of the protocol: {0}")]
    Malformed(prost::DecodeError),
    /// They end within a field.
    #[error("not a message of the protocol: it ends within a field")]
    Cut,
}

/// A message with limits of its own.
pub trait Bounded: Message + Default {
    /// Bytes of the longest that is taken.
    const MAX_BYTES: usize;
    /// Decodes it.
    ///
    /// # Errors
    /// When the bytes are too many, break a limit, or are no such message.
    fn bounded(bytes: &[u8]) -> Result<Self, MessageError>;
}

macro_rules! bounded {
    ($($message:ident: $max_bytes:expr, $limits:expr;)+) => {
        $(impl Bounded for $message {
            const MAX_BYTES: usize = $max_bytes;
            fn bounded(bytes: &[u8]) -> Result<Self, MessageError> {
                decode(bytes, $max_bytes, $limits)
            }
        })+
    };
}

bounded! {
    NodeMessage: MAX_NODE_MESSAGE_BYTES, NODE_MESSAGE;
    CoordinatorMessage: MAX_ORDER_BYTES, COORDINATOR_MESSAGE;
    GetStatusRequest: MAX_REQUEST_BYTES, REQUEST;
    GetStatusResponse: MAX_ANSWER_BYTES, STATUS_ANSWER;
    ListNodesRequest: MAX_REQUEST_BYTES, REQUEST;
    ListNodesResponse: MAX_ANSWER_BYTES, NODES_ANSWER;
    ListIncidentsRequest: MAX_REQUEST_BYTES, REQUEST;
    ListIncidentsResponse: MAX_ANSWER_BYTES, INCIDENTS_ANSWER;
    GetIncidentRequest: MAX_REQUEST_BYTES, REQUEST;
    GetIncidentResponse: MAX_ANSWER_BYTES, INCIDENT_ANSWER;
    GetRankMapRequest: MAX_REQUEST_BYTES, REQUEST;
    GetRankMapResponse: MAX_ANSWER_BYTES, RANK_MAP_ANSWER;
    GetStepsRequest: MAX_REQUEST_BYTES, REQUEST;
    GetStepsResponse: MAX_ANSWER_BYTES, STEPS_ANSWER;
    GetTraceRequest: MAX_REQUEST_BYTES, PLAIN_ANSWER;
    GetTraceResponse: MAX_ANSWER_BYTES, TRACE_ANSWER;
    ListDecisionsRequest: MAX_REQUEST_BYTES, REQUEST;
    ListDecisionsResponse: MAX_ANSWER_BYTES, DECISIONS_ANSWER;
    RestartRequest: MAX_REQUEST_BYTES, REQUEST;
    DrainRequest: MAX_REQUEST_BYTES, REQUEST;
    RemoveRequest: MAX_REQUEST_BYTES, REQUEST;
    ReadmitRequest: MAX_REQUEST_BYTES, REQUEST;
    SetModeRequest: MAX_REQUEST_BYTES, REQUEST;
    OrderResponse: MAX_REQUEST_BYTES, PLAIN_ANSWER;
}

fn decode<M: Message + Default>(
    bytes: &[u8],
    limit_bytes: usize,
    limits: &'static [FieldLimit],
) -> Result<M, MessageError> {
    if bytes.len() > limit_bytes {
        return Err(MessageError::TooLong { bytes: bytes.len(), limit_bytes });
    }
    shape::check_together(bytes, limits, MAX_PARTS).map_err(|error| match error {
        ShapeError::Malformed(error) => MessageError::Malformed(error),
        ShapeError::Truncated => MessageError::Cut,
        limit => MessageError::Limit(limit),
    })?;
    M::decode(bytes).map_err(MessageError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::super::message::{Progress, Report, Worker, node_message};
    use super::super::{MAX_AWAITED_RANKS, MAX_WORKERS};
    use super::*;

    fn report(report: Report) -> Vec<u8> {
        let body = Some(node_message::Body::Report(report));
        NodeMessage { node: "n".to_owned(), incarnation: 1, sequence: 1, body }.encode_to_vec()
    }

    #[test]
    fn a_message_is_counted_before_it_is_built() {
        let full = vec![Worker::default(); MAX_WORKERS];
        let crowded = vec![Worker::default(); MAX_WORKERS + 1];
        let waits = |count: usize| Progress { sends_to: vec![7; count], ..Progress::default() };
        let long = Progress { receives_from: vec![u32::MAX; MAX_AWAITED_RANKS + 1], ..waits(0) };
        let cases = [
            (report(Report { workers: full, ..Report::default() }), None),
            (report(Report { workers: crowded, ..Report::default() }), Some("workers")),
            (report(Report { progress: vec![waits(64)], ..Report::default() }), None),
            (report(Report { progress: vec![long], ..Report::default() }), Some("awaited ranks")),
            (vec![0x0a, 0xff], Some("not a message of the protocol")),
            (vec![0; MAX_NODE_MESSAGE_BYTES + 1], Some("are allowed")),
        ];
        for (number, (bytes, expected)) in cases.into_iter().enumerate() {
            let found = NodeMessage::bounded(&bytes).err().map(|error| error.to_string());
            match (found, expected) {
                (None, None) => {}
                (Some(text), Some(part)) if text.contains(part) => {}
                (found, expected) => panic!("case {number}: {found:?} instead of {expected:?}"),
            }
        }
    }
}
