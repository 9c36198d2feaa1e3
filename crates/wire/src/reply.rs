//! What an endpoint answers: a report, or why there is none.

use prost::Message;

use crate::limits::{MAX_FRAME_BYTES, MAX_TEXT_BYTES};
use crate::report::Report;
use crate::shape::{self, ShapeError};
use crate::{PROTOCOL_VERSION, message};

/// One answer of an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// What was asked for.
    Report(Box<Report>),
    /// Why it cannot be had.
    Refused(Refusal),
}

/// Why a query was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the endpoint refused the query: {text}")]
pub struct Refusal {
    /// For programs.
    pub reason: RefusalReason,
    /// For people.
    pub text: String,
}

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The query's version is not spoken there.
    Version,
    /// The query is no message or asks for an unknown type.
    Malformed,
    /// The process has not opened that device.
    NoSuchDevice,
    /// The answer could not be made.
    Internal,
    /// A reason that this version does not know.
    Other,
}

/// Why an answer cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// It breaks a limit that no omission can mend.
    #[error("the answer breaks a limit of the protocol")]
    Limit(#[source] ShapeError),
    /// It is longer than a message may be, even without metrics.
    #[error("the answer has {0} bytes without metrics, {MAX_FRAME_BYTES} are allowed")]
    TooLong(usize),
}

/// Why bytes are no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// They are too many.
    #[error("an answer of {0} bytes, {MAX_FRAME_BYTES} are allowed")]
    TooLong(usize),
    /// They break a limit.
    #[error("the answer breaks a limit of the protocol")]
    Limit(#[from] ShapeError),
    /// They are no protobuf message.
    #[error("not an answer message")]
    Malformed(#[source] prost::DecodeError),
    /// The answerer speaks a version that is not spoken here.
    #[error("protocol version {0} is not spoken here")]
    Version(u32),
    /// A field has a value that cannot be.
    #[error("{field} has a value that cannot be")]
    Impossible {
        /// The field.
        field: &'static str,
    },
    /// A field that every answer has is not there.
    #[error("{field} is missing")]
    Missing {
        /// The field.
        field: &'static str,
    },
}

impl Reply {
    /// The message's bytes, to be framed. Metrics that do not fit into one message are left out
    /// and counted in the answer.
    ///
    /// # Errors
    /// When the report breaks a limit otherwise.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        match self {
            Self::Report(report) => report.encode(),
            Self::Refused(refusal) => Ok(refusal.encode()),
        }
    }

    /// The answer that these bytes are.
    ///
    /// # Errors
    /// When they are none, or break a limit.
    pub fn decode(bytes: &[u8]) -> Result<Self, ReplyError> {
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(ReplyError::TooLong(bytes.len()));
        }
        shape::check(bytes, crate::report::LIMITS)?;
        let response = message::Response::decode(bytes).map_err(ReplyError::Malformed)?;
        if response.version != PROTOCOL_VERSION {
            return Err(ReplyError::Version(response.version));
        }
        match response.refusal {
            Some(refusal) => Ok(Self::Refused(Refusal::from_message(refusal))),
            None => Ok(Self::Report(Box::new(Report::from_message(response)?))),
        }
    }
}

impl Refusal {
    fn encode(&self) -> Vec<u8> {
        let code = match self.reason {
            RefusalReason::Version => message::RefusalCode::Version,
            RefusalReason::Malformed => message::RefusalCode::Malformed,
            RefusalReason::NoSuchDevice => message::RefusalCode::NoSuchDevice,
            RefusalReason::Internal => message::RefusalCode::Internal,
            RefusalReason::Other => message::RefusalCode::Unspecified,
        };
        let text = self.text[..self.text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned();
        message::Response {
            version: PROTOCOL_VERSION,
            refusal: Some(message::Refusal { code: code.into(), text }),
            ..message::Response::default()
        }
        .encode_to_vec()
    }

    fn from_message(refusal: message::Refusal) -> Self {
        let reason = match refusal.code() {
            message::RefusalCode::Version => RefusalReason::Version,
            message::RefusalCode::Malformed => RefusalReason::Malformed,
            message::RefusalCode::NoSuchDevice => RefusalReason::NoSuchDevice,
            message::RefusalCode::Internal => RefusalReason::Internal,
            message::RefusalCode::Unspecified => RefusalReason::Other,
        };
        Self { reason, text: refusal.text }
    }
}
