//! From the bytes of an answer to a snapshot. The bytes may be anyone's: they are counted and
//! measured first, and what cannot be is an error, never a guess.

mod device;
mod process;

use prost::Message as _;
use telltale_schema::clock::Timestamp;
use telltale_schema::health::Fault;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    HostUsage, LeftOut, Snapshot, SourceError, SourceNote, SourceStatus,
};

use super::codes::Code;
use super::{MAX_ANSWER_BYTES, limited, message};
use crate::shape::{self, FieldLimit, ShapeError};

/// Why bytes are no answer of the service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// They are too many.
    #[error("an answer of {0} bytes, {MAX_ANSWER_BYTES} are allowed")]
    TooLong(usize),
    /// They break a limit.
    #[error("the answer breaks a limit of the protocol")]
    Limit(#[from] ShapeError),
    /// They are no protobuf message.
    #[error("not an answer of the service")]
    Malformed(#[source] prost::DecodeError),
    /// A field that every answer has is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field has a value that cannot be, or that only a newer version knows.
    #[error("{0} has a value that is not known here")]
    Impossible(&'static str),
}

/// One message of Watch.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The machine; none in a message that says that nothing is new.
    pub snapshot: Option<Snapshot>,
    /// The number of the state.
    pub sequence: u64,
    /// States that were left out since the message before.
    pub skipped: u64,
}

/// An answer of GetSnapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotAnswer {
    /// The machine.
    pub snapshot: Snapshot,
    /// The number of the state; none for a past moment.
    pub sequence: Option<u64>,
    /// For a past moment: over how long a span its values are means, in milliseconds; 0 where
    /// they are of that very moment.
    pub resolution_ms: Option<u64>,
}

/// An answer of GetSnapshot.
///
/// # Errors
/// When the bytes are no such answer, or break a limit.
pub fn snapshot_answer(bytes: &[u8]) -> Result<SnapshotAnswer, AnswerError> {
    check(bytes)?;
    let answer = message::GetSnapshotResponse::decode(bytes).map_err(AnswerError::Malformed)?;
    let found = answer.snapshot.ok_or(AnswerError::Missing("snapshot"))?;
    let (sequence, resolution_ms) = (answer.sequence, answer.resolution_ms);
    Ok(SnapshotAnswer { snapshot: snapshot(found)?, sequence, resolution_ms })
}

/// A message of Watch.
///
/// # Errors
/// When the bytes are no such message, or break a limit.
pub fn watch_message(bytes: &[u8]) -> Result<Update, AnswerError> {
    check(bytes)?;
    let answer = message::WatchResponse::decode(bytes).map_err(AnswerError::Malformed)?;
    let (sequence, skipped) = (answer.sequence, answer.skipped);
    Ok(Update { snapshot: answer.snapshot.map(snapshot).transpose()?, sequence, skipped })
}

/// An answer of ListDevices: a snapshot of the devices and of what is wrong, and of nothing else.
///
/// # Errors
/// When the bytes are no such answer, or break a limit.
pub fn devices_answer(bytes: &[u8]) -> Result<Snapshot, AnswerError> {
    check_against(bytes, limited::DEVICES_ANSWER)?;
    let answer = message::ListDevicesResponse::decode(bytes).map_err(AnswerError::Malformed)?;
    Ok(Snapshot {
        devices: answer.devices.into_iter().map(device::device).collect::<Result<_, _>>()?,
        faults: answer.faults.into_iter().filter_map(device::fault).collect(),
        ..Snapshot::empty(Timestamp(answer.taken_at_unix_ns))
    })
}

/// The message of an answer of ListAlerts.
///
/// # Errors
/// When the bytes are no such answer, or break a limit.
pub fn alerts_answer(bytes: &[u8]) -> Result<message::ListAlertsResponse, AnswerError> {
    check_against(bytes, limited::ALERTS_ANSWER)?;
    message::ListAlertsResponse::decode(bytes).map_err(AnswerError::Malformed)
}

/// The message of an answer of QueryHistory.
///
/// # Errors
/// When the bytes are no such answer, or break a limit.
pub fn history_answer(bytes: &[u8]) -> Result<message::QueryHistoryResponse, AnswerError> {
    check_against(bytes, limited::HISTORY_ANSWER)?;
    message::QueryHistoryResponse::decode(bytes).map_err(AnswerError::Malformed)
}

/// The message of an answer of ReportProcess.
///
/// # Errors
/// When the bytes are no such answer, or break a limit.
pub fn report_answer(bytes: &[u8]) -> Result<message::ReportProcessResponse, AnswerError> {
    check_against(bytes, limited::REPORT_ANSWER)?;
    message::ReportProcessResponse::decode(bytes).map_err(AnswerError::Malformed)
}

/// A fault in an answer of QueryHistory; none of a kind that a newer version knows.
#[must_use]
pub fn fault(from: message::Fault) -> Option<Fault> {
    device::fault(from)
}

/// A reason in an answer of QueryHistory; one that a newer version knows is shown as what it is here.
#[must_use]
pub fn reason(code: i32) -> Absence {
    Absence::of_code(code).unwrap_or(Absence::NotUnderstood)
}

fn check(bytes: &[u8]) -> Result<(), AnswerError> {
    check_against(bytes, limited::SNAPSHOT_ANSWER)
}

fn check_against(bytes: &[u8], limits: &'static [FieldLimit]) -> Result<(), AnswerError> {
    if bytes.len() > MAX_ANSWER_BYTES {
        return Err(AnswerError::TooLong(bytes.len()));
    }
    shape::check_together(bytes, limits, limited::MAX_PARTS)?;
    Ok(())
}

fn snapshot(from: message::Snapshot) -> Result<Snapshot, AnswerError> {
    let devices = from.devices.into_iter().map(device::device).collect::<Result<Vec<_>, _>>()?;
    let described = &from.metric_descriptions;
    let mut processes = Vec::with_capacity(from.processes.len());
    for process in from.processes {
        processes.push(process::process(process, devices.len(), described)?);
    }
    Ok(Snapshot {
        schema_version: from.schema_version,
        taken_at: Timestamp(from.taken_at_unix_ns),
        collected_in_ns: from.collected_in_ns,
        devices,
        processes,
        host: from.host.map(|host| Box::new(host_usage(host))),
        closed_processes: from.closed_processes,
        withheld_processes: from.withheld_processes,
        left_out: from
            .left_out
            .map(|found| LeftOut { devices: found.devices, processes: found.processes }),
        faults: from.faults.into_iter().filter_map(device::fault).collect(),
        sources: from.sources.into_iter().map(source).collect(),
    })
}

fn host_usage(from: message::HostUsage) -> HostUsage {
    HostUsage {
        cpu_ratio: reading(from.cpu_ratio),
        processors: reading(from.processors),
        used_bytes: reading(from.used_bytes),
        memory_bytes: reading(from.memory_bytes),
        load_1: reading(from.load_1),
        load_5: reading(from.load_5),
        load_15: reading(from.load_15),
    }
}

fn source(from: message::Source) -> SourceStatus {
    let error = |error: message::SourceError| SourceError {
        subject: error.subject,
        reason: reason(error.reason),
        detail: error.detail,
    };
    let note = |note: message::SourceNote| SourceNote {
        subject: note.subject,
        count: note.count,
        detail: note.detail,
    };
    SourceStatus {
        name: from.name,
        duration_ns: from.duration_ns,
        errors: from.errors.into_iter().map(error).collect(),
        errors_dropped: from.errors_dropped,
        notes: from.notes.into_iter().map(note).collect(),
    }
}

fn known<T: Code>(code: i32, field: &'static str) -> Result<T, AnswerError> {
    T::of_code(code).ok_or(AnswerError::Impossible(field))
}

/// A number that has fewer bits here than on the wire.
fn narrow<T: TryFrom<u32>>(value: u32, field: &'static str) -> Result<T, AnswerError> {
    T::try_from(value).map_err(|_| AnswerError::Impossible(field))
}

/// A message of a reading: its outcome and its time.
trait ReadingOutcome {
    /// The type of the value.
    type Value;

    /// The value or its absence, and when the value was read.
    fn outcome(self) -> Option<(Result<Self::Value, message::Absence>, u64)>;
}

macro_rules! outcomes {
    ($($message:ident, $module:ident, $value:ty;)+) => {$(
        impl ReadingOutcome for message::$message {
            type Value = $value;

            fn outcome(self) -> Option<(Result<$value, message::Absence>, u64)> {
                use message::$module::Reading;
                let outcome = match self.reading? {
                    Reading::Value(value) => Ok(value),
                    Reading::Absence(absence) => Err(absence),
                };
                Some((outcome, self.at_unix_ns))
            }
        }
    )+};
}

outcomes! {
    WholeReading, whole_reading, u64;
    NumberReading, number_reading, f64;
    TextReading, text_reading, String;
    FactsReading, facts_reading, message::ChipFacts;
    HoldersReading, holders_reading, message::Holders;
    NamesReading, names_reading, message::Names;
}

/// A reading; one that an older node does not send, or whose outcome only a newer one knows, is
/// absent, and costs nothing else of the answer.
fn reading<T: ReadingOutcome>(from: Option<T>) -> Reading<T::Value> {
    let Some(from) = from else { return Reading::unreported() };
    match from.outcome() {
        Some((Ok(value), at)) => Reading::new(value, Timestamp(at)),
        Some((Err(absence), _)) => Reading::absent(reason(absence.reason), absence.detail),
        None => Reading::absent(Absence::NotUnderstood, ""),
    }
}

/// A reading whose value may turn out to be impossible.
fn checked<T: ReadingOutcome, U>(
    from: Option<T>,
    check: impl FnOnce(T::Value) -> Result<U, AnswerError>,
) -> Result<Reading<U>, AnswerError> {
    Ok(match reading(from) {
        Reading::Value { value, at } => Reading::Value { value: check(value)?, at },
        Reading::Absent { absent, detail } => Reading::Absent { absent, detail },
    })
}

/// A reading of a whole number that has 32 bits.
fn short(
    from: Option<message::WholeReading>,
    field: &'static str,
) -> Result<Reading<u32>, AnswerError> {
    checked(from, |value| u32::try_from(value).map_err(|_| AnswerError::Impossible(field)))
}
