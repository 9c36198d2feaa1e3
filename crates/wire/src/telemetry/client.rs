//! Asks a node service. Whom it may trust, and how it reaches it, its caller decides.

use std::error::Error;
use std::time::Duration;

use prost::Message;
use prost::bytes::Bytes;
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::decode::{self, AnswerError, SnapshotAnswer, Update};
use super::{MAX_ANSWER_BYTES, SERVICE, message};
use crate::call::{ServiceChannel, TokenTextError};

/// A node service at the other end of a channel.
#[derive(Debug, Clone)]
pub struct Client(ServiceChannel);

/// The messages of a Watch, as they come.
#[derive(Debug)]
pub struct Updates(Streaming<Bytes>);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The service refused, or could not be reached.
    #[error("the service did not answer the call: {}", .0.message())]
    Refused(#[source] Box<Status>),
    /// What came is no answer.
    #[error("the service's answer cannot be used")]
    Answer(#[from] AnswerError),
}

impl CallError {
    /// Whether the service could not make sense of the request.
    #[must_use]
    pub fn is_of_the_request(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code() == Code::InvalidArgument)
    }

    /// Whether the service stops, or has broken off: only what the transport found has causes.
    #[must_use]
    pub fn is_of_an_ended_service(&self) -> bool {
        let Self::Refused(status) = self else { return false };
        status.code() == Code::Unavailable || status.source().is_some()
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

// === impl Client ===

impl Client {
    /// A client over this channel.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self(ServiceChannel::new(channel, SERVICE, MAX_ANSWER_BYTES))
    }

    /// The same client, which sends the service's token with each call.
    ///
    /// # Errors
    /// When the text is no token.
    pub fn with_token(self, token: &str) -> Result<Self, TokenTextError> {
        self.0.with_token(token).map(Self)
    }

    /// The machine as the caller may see it: as collected last, or collected for this call.
    ///
    /// # Errors
    /// When the service refuses or its answer cannot be used.
    pub async fn snapshot(&mut self, fresh: bool) -> Result<Snapshot, CallError> {
        let request = message::GetSnapshotRequest { fresh, ..Default::default() };
        Ok(self.get(request).await?.snapshot)
    }

    /// The rows of the machine that a query of docs/query.md wants, as collected last, and with what
    /// processes and the host use (`usage`), measured for this call. A service that is older than this
    /// answers with all of them and without [`Snapshot::left_out`].
    ///
    /// # Errors
    /// When the service refuses, which it does where it cannot read the query, or its answer cannot
    /// be used.
    pub async fn selected(&mut self, filter: &str, usage: bool) -> Result<Snapshot, CallError> {
        let filter = filter.to_owned();
        let request = message::GetSnapshotRequest { filter, usage, ..Default::default() };
        Ok(self.get(request).await?.snapshot)
    }

    /// The machine at a past moment, as far as the service's history goes, and over how long a
    /// span its values are means.
    ///
    /// # Errors
    /// When the service refuses or its answer cannot be used.
    pub async fn snapshot_at(&mut self, at: Timestamp) -> Result<SnapshotAnswer, CallError> {
        let at_unix_ns = Some(at.0);
        self.get(message::GetSnapshotRequest { at_unix_ns, ..Default::default() }).await
    }

    async fn get(
        &mut self,
        request: message::GetSnapshotRequest,
    ) -> Result<SnapshotAnswer, CallError> {
        let bytes = self.unary("GetSnapshot", &request).await?;
        Ok(decode::snapshot_answer(&bytes)?)
    }

    /// The machine now and each time it changes, with at least this time between two messages.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn watch(&mut self, least_interval: Duration) -> Result<Updates, CallError> {
        self.watch_selected(least_interval, "", false).await
    }

    /// The same with only the rows that a query of docs/query.md wants, and with what processes and
    /// the host use (`usage`), which the service reads only while someone watches it.
    ///
    /// # Errors
    /// When the service refuses, which it does where it cannot read the query.
    pub async fn watch_selected(
        &mut self,
        least_interval: Duration,
        filter: &str,
        usage: bool,
    ) -> Result<Updates, CallError> {
        let filter = filter.to_owned();
        let least_interval_ms = u32::try_from(least_interval.as_millis()).unwrap_or(u32::MAX);
        let request = message::WatchRequest { least_interval_ms, filter, usage };
        Ok(Updates(self.0.answers("Watch", &request).await?))
    }

    /// The devices, as collected last.
    ///
    /// # Errors
    /// When the service refuses or its answer cannot be used.
    pub async fn devices(&mut self) -> Result<Snapshot, CallError> {
        let request = message::ListDevicesRequest::default();
        let bytes = self.unary("ListDevices", &request).await?;
        Ok(decode::devices_answer(&bytes)?)
    }

    /// The alerts that the caller may see.
    ///
    /// # Errors
    /// When the service refuses or its answer cannot be used.
    pub async fn alerts(&mut self) -> Result<message::ListAlertsResponse, CallError> {
        let bytes = self.unary("ListAlerts", &message::ListAlertsRequest {}).await?;
        Ok(decode::alerts_answer(&bytes)?)
    }

    /// Calls a method that answers once; the answer's bytes are not checked.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn unary(
        &mut self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<Bytes, CallError> {
        Ok(self.0.unary(method, request).await?)
    }
}

// === impl Updates ===

impl Updates {
    /// The next message; none when the service has ended the stream.
    ///
    /// # Errors
    /// When the service breaks off, or what it sent cannot be used.
    pub async fn next(&mut self) -> Result<Option<Update>, CallError> {
        match self.0.message().await? {
            Some(bytes) => Ok(Some(decode::watch_message(&bytes)?)),
            None => Ok(None),
        }
    }
}
