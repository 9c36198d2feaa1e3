//! The past by gRPC: what is asked of the history.

use std::sync::Arc;

use telltale_collector::clock::SystemClock;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::history::{HistoryQuery, ProcessChoice, Subjects, USUAL_SECONDS};
use telltale_schema::text::with_causes;
use telltale_wire::telemetry::history::response_of;
use telltale_wire::telemetry::{message, report};
use tonic::Status;

use crate::access::{Visibility, visible};
use crate::history::{HistoryReader, ReadHistoryError, SharedReadError, SharedReader};

/// The history as this server asks it.
#[derive(Debug)]
pub(super) struct History {
    reader: SharedReader,
}

// === impl History ===

impl History {
    pub(super) fn new(reader: SharedReader) -> Self {
        Self { reader }
    }

    /// What `visibility` covers of the machine at a past moment, and the length of the spans that its
    /// values are means over.
    pub(super) async fn snapshot_at(
        &self,
        at: Timestamp,
        visibility: Visibility,
    ) -> Result<(Arc<telltale_schema::snapshot::Snapshot>, u64), Status> {
        let past = self.read(move |reader| reader.snapshot_at(at)).await?;
        Ok((visible(&Arc::new(past.snapshot), visibility), past.resolution_ms))
    }

    pub(super) async fn query(
        &self,
        asked: message::QueryHistoryRequest,
        visibility: Visibility,
    ) -> Result<message::QueryHistoryResponse, Status> {
        let query = query_of(asked, SystemClock.now())?;
        let answer = self.read(move |reader| reader.query(&query, visibility)).await?;
        Ok(response_of(answer))
    }

    /// Processes over their whole lives, of those that `visibility` covers.
    pub(super) async fn report(
        &self,
        process: &str,
        visibility: Visibility,
    ) -> Result<message::ReportProcessResponse, Status> {
        let choice = process.parse::<ProcessChoice>();
        let choice = choice.map_err(Status::invalid_argument)?;
        let reports = self.read(move |reader| reader.report(&choice, visibility)).await?;
        Ok(report::response_of(reports))
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&HistoryReader) -> Result<T, ReadHistoryError> + Send + 'static,
    ) -> Result<T, Status> {
        self.reader.read(read).await.map_err(|error| match error {
            SharedReadError::Closed(_) => Status::unavailable(with_causes(&error)),
            SharedReadError::Read(ReadHistoryError::Sqlite(_)) => {
                Status::internal(error.to_string())
            }
            SharedReadError::Read(_) => Status::not_found(error.to_string()),
            SharedReadError::GivenUp => Status::unavailable(error.to_string()),
        })
    }
}

fn query_of(asked: message::QueryHistoryRequest, now: Timestamp) -> Result<HistoryQuery, Status> {
    let subjects = match asked.subjects() {
        message::HistorySubjects::Unspecified => Subjects::All,
        message::HistorySubjects::Devices => Subjects::Devices,
        message::HistorySubjects::Processes => Subjects::Processes,
        message::HistorySubjects::Faults => Subjects::Faults,
    };
    let to = if asked.to_unix_ns == 0 { now } else { Timestamp(asked.to_unix_ns) };
    let from = match (asked.from_unix_ns, asked.to_unix_ns) {
        (0, 0) => Timestamp(to.0.saturating_sub(USUAL_SECONDS * 1_000_000_000)),
        (from, _) => Timestamp(from),
    };
    if from >= to {
        return Err(Status::invalid_argument("from_unix_ns must be before to_unix_ns"));
    }
    let processes = asked.processes.iter().map(|text| text.parse());
    Ok(HistoryQuery {
        from,
        to,
        step_ms: asked.step_ms,
        subjects,
        devices: asked.device_ids,
        processes: processes.collect::<Result<_, String>>().map_err(Status::invalid_argument)?,
        metrics: asked.metrics,
    })
}
