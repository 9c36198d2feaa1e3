//! Asks a node service. Whom it may trust, and how it reaches it, is decided in the connector.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use prost::bytes::Bytes;
use telltale_schema::alert::VisibleAlerts;
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, HistoryQuery, ProcessChoice, ProcessReport};
use telltale_schema::snapshot::Snapshot;
use telltale_wire::call::{ServiceChannel, TokenTextError};
use telltale_wire::telemetry::alert::alert_of;
use telltale_wire::telemetry::decode::{self, SnapshotAnswer, Update};
use telltale_wire::telemetry::history::{answer_of, request_of};
use telltale_wire::telemetry::report::report_of;
use telltale_wire::telemetry::{MAX_ANSWER_BYTES, SERVICE, message};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::error::CallError;
use crate::way::Way;

/// A node service at the other end of a connection. Clones share it.
#[derive(Debug, Clone)]
pub struct Client {
    service: ServiceChannel,
    origin: Origin,
}

/// The messages of a Watch, as they come.
#[derive(Debug)]
pub struct Updates {
    messages: Streaming<Bytes>,
    origin: Origin,
}

/// What explains an error of a call, and how long one may take.
#[derive(Debug, Clone, Default)]
struct Origin {
    way: Option<Arc<Way>>,
    timeout: Option<Duration>,
}

// === impl Client ===

impl Client {
    /// A client over a connection that was made elsewhere. [`connect`](crate::connect) and
    /// [`Connector`](crate::Connector) make one, and make sure whose service it is.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        let service = ServiceChannel::new(channel, SERVICE, MAX_ANSWER_BYTES);
        Self { service, origin: Origin::default() }
    }

    /// A client over a connection that was made this way.
    pub(crate) fn of(channel: Channel, way: Way, timeout: Option<Duration>) -> Self {
        Self { origin: Origin { way: Some(Arc::new(way)), timeout }, ..Self::new(channel) }
    }

    /// The same client, which sends the service's token with each call.
    ///
    /// # Errors
    /// When the text is no token.
    pub fn with_token(self, token: &str) -> Result<Self, TokenTextError> {
        let service = self.service.with_token(token)?;
        Ok(Self { service, ..self })
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
        let asked = self.service.answers("Watch", &request);
        let messages = self.origin.in_time(asked).await?;
        Ok(Updates { messages, origin: self.origin.clone() })
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
    /// When the service refuses or its answer cannot be used, as where only a newer version knows what
    /// an alert is about.
    pub async fn alerts(&mut self) -> Result<VisibleAlerts, CallError> {
        let answer = self.alerts_message().await?;
        let alerts = answer.alerts.into_iter().map(alert_of).collect::<Result<_, _>>()?;
        Ok(VisibleAlerts { alerts, withheld: answer.withheld_alerts })
    }

    /// The same as the service sends it, with alerts that only a newer version understands.
    ///
    /// # Errors
    /// When the service refuses, or its answer breaks a limit.
    pub async fn alerts_message(&mut self) -> Result<message::ListAlertsResponse, CallError> {
        let bytes = self.unary("ListAlerts", &message::ListAlertsRequest {}).await?;
        Ok(decode::alerts_answer(&bytes)?)
    }

    /// Series of devices and processes over a span of time, of those that the caller may see.
    ///
    /// # Errors
    /// When the service refuses, as one without a history does, or its answer cannot be used.
    pub async fn history(&mut self, query: &HistoryQuery) -> Result<HistoryAnswer, CallError> {
        let bytes = self.unary("QueryHistory", &request_of(query)).await?;
        Ok(answer_of(decode::history_answer(&bytes)?)?)
    }

    /// What is recorded of processes over their whole lives, also of those that have ended.
    ///
    /// # Errors
    /// When the service refuses, has none of them, or its answer cannot be used.
    pub async fn report(
        &mut self,
        process: &ProcessChoice,
    ) -> Result<Vec<ProcessReport>, CallError> {
        let request = message::ReportProcessRequest { process: process.to_string() };
        let bytes = self.unary("ReportProcess", &request).await?;
        let answer = decode::report_answer(&bytes)?;
        Ok(answer.reports.into_iter().map(report_of).collect::<Result<_, _>>()?)
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
        self.origin.in_time(self.service.unary(method, request)).await
    }
}

// === impl Updates ===

impl Updates {
    /// The next message; none when the service has ended the stream.
    ///
    /// # Errors
    /// When the service breaks off, or what it sent cannot be used.
    pub async fn next(&mut self) -> Result<Option<Update>, CallError> {
        match self.messages.message().await.map_err(|status| self.origin.failed(status))? {
            Some(bytes) => Ok(Some(decode::watch_message(&bytes)?)),
            None => Ok(None),
        }
    }
}

// === impl Origin ===

impl Origin {
    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, CallError> {
        let outcome = match self.timeout {
            Some(timeout) => {
                tokio::time::timeout(timeout, call).await.map_err(|_| CallError::Late(timeout))?
            }
            None => call.await,
        };
        outcome.map_err(|status| self.failed(status))
    }

    /// What a failed call means, where something was in the way of it.
    fn failed(&self, status: Status) -> CallError {
        match self.way.as_ref().and_then(|way| way.in_the_way(&status)) {
            Some(error) => CallError::Connection(Box::new(error)),
            None => status.into(),
        }
    }
}
