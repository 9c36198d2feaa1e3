//! One process over its whole life, finished or not: what it had at most and when, what that came
//! to over time, and how it ended.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{Container, RecordingFaults};

use super::answer::PastProcess;
use super::choice::ProcessChoice;
use super::moment;
use super::reader::{ReadHistoryError, Reader, device_names, past_process};
use super::rows::{Ending, ProcessRow, UsageRow};
use crate::access::Sight;

/// What is kept of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Who it is.
    pub process: PastProcess,
    /// The container that it ran in, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// When its runtime began to record; none where that is not known.
    pub recording_since: Option<Timestamp>,
    /// When a service saw it first.
    pub first_seen: Timestamp,
    /// When a service saw it last.
    pub last_seen: Timestamp,
    /// How long it lived as far as that is known: from the start of its recording, or else from
    /// when it was first seen, to when it was last seen.
    pub lifetime_seconds: f64,
    /// How it ended; none when it lived when the history was last written.
    pub ending: Option<Ending>,
    /// When it was found to have ended; none when nobody looked at the time.
    pub ended: Option<Timestamp>,
    /// What it had, by device and kind.
    pub usage: Vec<UsageReport>,
    /// What went wrong in recording, as its runtime counted it.
    pub faults: RecordingFaults,
}

/// What a process had of one kind of memory on one device, over its life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// The device.
    pub device: String,
    /// The kind.
    pub kind: MemoryKind,
    /// What it had when it was last seen.
    pub live_bytes: u64,
    /// The most that it had: as its runtime knows it, where it tells; else as it was seen.
    pub peak_bytes: u64,
    /// When the peak was first seen, to the interval of the service.
    pub peak_at: Timestamp,
    /// Bytes times seconds, over the time that it was watched.
    pub byte_seconds: u64,
    /// For how long it was watched: time without a service is not in it.
    pub watched_seconds: f64,
    /// The mean over that time; none when there was none.
    pub mean_bytes: Option<f64>,
}

// === impl Reader ===

impl Reader {
    /// What is kept of the processes that a choice names and `sight` may see, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read, or there is no such process.
    pub fn report(
        &self,
        choice: &ProcessChoice,
        sight: Sight,
    ) -> Result<Vec<Report>, ReadHistoryError> {
        let rows = self.rows(choice, sight)?;
        Ok(rows.iter().map(|row| report(&self.connection, row)).collect::<Result<_, _>>()?)
    }
}

fn report(connection: &Connection, row: &ProcessRow) -> rusqlite::Result<Report> {
    let names = device_names(connection)?;
    let name = |id: i64| {
        let found = names.iter().find(|(known, _)| *known == id);
        found.map_or_else(|| String::from("unknown"), |(_, name)| name.clone())
    };
    let mut usage = Vec::new();
    for held in &row.held {
        usage.extend(held.usages.iter().map(|one| used(name(held.device), one)));
    }
    usage.sort_by(|one: &UsageReport, other| {
        (&one.device, one.kind).cmp(&(&other.device, other.kind))
    });
    let known = &row.described;
    let since_ms = known.recording_ms.unwrap_or(row.seen.first_ms).min(row.seen.first_ms);
    Ok(Report {
        process: past_process(row),
        container: known.container.clone(),
        recording_since: known.recording_ms.map(moment),
        first_seen: moment(row.seen.first_ms),
        last_seen: moment(row.seen.last_ms),
        lifetime_seconds: seconds(row.seen.last_ms.saturating_sub(since_ms)),
        ending: row.ending,
        ended: row.ended_ms.map(moment),
        usage,
        faults: known.faults,
    })
}

fn used(device: String, usage: &UsageRow) -> UsageReport {
    let bytes = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
    UsageReport {
        device,
        kind: usage.kind,
        live_bytes: bytes(usage.last),
        peak_bytes: bytes(usage.peak),
        peak_at: moment(usage.peak_ms),
        byte_seconds: u64::try_from(usage.byte_milliseconds / 1000).unwrap_or(u64::MAX),
        watched_seconds: seconds(usage.watched_ms),
        mean_bytes: mean(usage),
    }
}

#[allow(clippy::cast_precision_loss)]
fn mean(usage: &UsageRow) -> Option<f64> {
    (usage.watched_ms > 0).then(|| usage.byte_milliseconds as f64 / usage.watched_ms as f64)
}

#[allow(clippy::cast_precision_loss)]
fn seconds(milliseconds: i64) -> f64 {
    milliseconds.max(0) as f64 / 1000.0
}
