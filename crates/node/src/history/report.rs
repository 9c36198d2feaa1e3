//! One process over its whole life, put together from its rows.

use rusqlite::Connection;
use telltale_schema::history::{ProcessChoice, ProcessReport, UsageReport};

use super::reader::{HistoryReader, ReadHistoryError, device_names, past_process};
use super::rows::{ProcessRow, UsageRow};
use super::timeline::moment;
use crate::access::Visibility;

// === impl HistoryReader ===

impl HistoryReader {
    /// What is kept of the processes that a choice names and `visibility` allows, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read, or there is no such process.
    pub fn report(
        &self,
        choice: &ProcessChoice,
        visibility: Visibility,
    ) -> Result<Vec<ProcessReport>, ReadHistoryError> {
        // A process and what it used are rows of two tables: they must be of one moment.
        let snapshot = self.connection.unchecked_transaction()?;
        let rows = self.rows(choice, visibility)?;
        Ok(rows.iter().map(|row| report(&snapshot, row)).collect::<Result<_, _>>()?)
    }
}

fn report(connection: &Connection, row: &ProcessRow) -> rusqlite::Result<ProcessReport> {
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
    Ok(ProcessReport {
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
