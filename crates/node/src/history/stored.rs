//! Rows to and from the database: devices, processes, what they had.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use telltale_schema::history::Ending;
use telltale_schema::memory::MemoryKind;
use telltale_schema::process::{ProcessIdentity, format_boot_id, parse_boot_id};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{ProcessSource, RecordingFaults};

use super::fault_table;
use super::recorder::Recorder;
use super::rows::{
    Described, DeviceFacts, DeviceRow, HeldRow, ProcessRow, RowState, Stored, StoredUsage, Track,
    UsageRow,
};

/// The columns that [`process`] reads, in its order.
pub(super) const PROCESS_COLUMNS: &str = "id, boot_id, pid_namespace, pid, start_ticks, shown_pid, \
    name, command, uid, user, absences, container, known_by, recording_ms, first_seen_ms, \
    last_seen_ms, ended_ms, ending, double_frees, unknown_frees, reused_live_addresses, \
    unrecorded_events, mark";

/// Why something of a process is not known, where something is not.
#[derive(Debug, Default, Serialize, serde::Deserialize)]
#[serde(default)]
struct Absences {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Absence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<Absence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Absence>,
}

/// Writes the rows that are not in the database as they are.
pub(super) fn write(connection: &Connection, recorder: &Recorder) -> rusqlite::Result<()> {
    if let Some(boot_id) = recorder.boot_to_note() {
        write_boot_id(connection, &boot_id)?;
    }
    fault_table::write(connection, &recorder.faults)?;
    for row in recorder.devices.iter().filter(|row| row.seen.stored != Stored::Whole) {
        write_device(connection, row)?;
    }
    for row in recorder.processes.values() {
        if row.seen.stored != Stored::Whole {
            write_process(connection, row)?;
        }
        for held in &row.held {
            if !held.stored {
                write_subject(connection, &held.track, Some(held.device), Some(row.id))?;
            }
            write_usages(connection, row, held)?;
        }
    }
    Ok(())
}

fn write_device(connection: &Connection, row: &DeviceRow) -> rusqlite::Result<()> {
    if row.seen.stored == Stored::Not {
        write_subject(connection, &row.track, Some(row.id), None)?;
    }
    let text = "INSERT INTO device (id, key, name, identity, facts, firmware, first_seen_ms, \
        last_seen_ms, mark) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
        ON CONFLICT (id) DO UPDATE SET name = ?3, identity = ?4, facts = ?5, firmware = ?6, \
        last_seen_ms = ?8, mark = ?9";
    let DeviceFacts { name, identity, facts, firmware } = &row.device;
    let RowState { first_ms, last_ms, mark_ms, .. } = row.seen;
    let values =
        params![row.id, row.key, name, identity, facts, firmware, first_ms, last_ms, mark_ms];
    connection.prepare_cached(text)?.execute(values)?;
    Ok(())
}

fn write_subject(
    connection: &Connection,
    track: &Track,
    device: Option<i64>,
    process: Option<i64>,
) -> rusqlite::Result<()> {
    let text = "INSERT OR REPLACE INTO subject (id, device, process) VALUES (?, ?, ?)";
    connection.prepare_cached(text)?.execute(params![track.subject, device, process])?;
    Ok(())
}

/// The boot of the machine under which the history was written last.
pub(super) fn boot_id(connection: &Connection) -> rusqlite::Result<Option<[u8; 16]>> {
    let found = connection.query_row("SELECT boot_id FROM machine", [], |row| row.get(0));
    let text: Option<String> = found.optional()?;
    Ok(text.and_then(|text| parse_boot_id(&text)))
}

fn write_boot_id(connection: &Connection, boot_id: &[u8; 16]) -> rusqlite::Result<()> {
    let text = "INSERT OR REPLACE INTO machine (only, boot_id) VALUES (1, ?)";
    connection.prepare_cached(text)?.execute([format_boot_id(boot_id)])?;
    Ok(())
}

fn write_process(connection: &Connection, row: &ProcessRow) -> rusqlite::Result<()> {
    let RowState { first_ms, last_ms, mark_ms, stored } = row.seen;
    let known = &row.described;
    let faults = known.faults;
    if stored != Stored::Older {
        write_subject(connection, &row.track, None, Some(row.id))?;
    }
    // Who a process is and when it was first seen does not change.
    let text = format!(
        "INSERT OR REPLACE INTO process ({PROCESS_COLUMNS}) VALUES \
         (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET shown_pid = excluded.shown_pid, name = excluded.name, \
         command = excluded.command, uid = excluded.uid, user = excluded.user, \
         absences = excluded.absences, container = excluded.container, \
         known_by = excluded.known_by, recording_ms = excluded.recording_ms, \
         last_seen_ms = excluded.last_seen_ms, ended_ms = excluded.ended_ms, \
         ending = excluded.ending, double_frees = excluded.double_frees, \
         unknown_frees = excluded.unknown_frees, \
         reused_live_addresses = excluded.reused_live_addresses, \
         unrecorded_events = excluded.unrecorded_events, mark = excluded.mark"
    );
    let values = params![
        row.id,
        format_boot_id(&row.identity.boot_id),
        bits(row.identity.pid_namespace),
        row.identity.pid,
        bits(row.identity.start_time_ticks),
        known.shown_pid,
        known.name,
        known.command.value(),
        known.uid.value(),
        known.user.value(),
        absences(known),
        json(known.container.as_ref()),
        known.known_by.map(ProcessSource::name),
        known.recording_ms,
        first_ms,
        last_ms,
        row.ended_ms,
        row.ending.map(Ending::name),
        bits(faults.double_frees),
        bits(faults.unknown_frees),
        bits(faults.reused_live_addresses),
        bits(faults.unrecorded_events),
        mark_ms,
    ];
    connection.prepare_cached(&text)?.execute(values)?;
    Ok(())
}

fn write_usages(connection: &Connection, row: &ProcessRow, held: &HeldRow) -> rusqlite::Result<()> {
    let text = "INSERT OR REPLACE INTO usage (process, device, kind, live_bytes, peak_bytes, \
        peak_ms, byte_seconds, byte_milliseconds, watched_ms, since_mark) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(text)?;
    for usage in held.usages.iter().filter(|usage| !usage.stored) {
        let seconds = i64::try_from(usage.byte_milliseconds / 1000).unwrap_or(i64::MAX);
        let rest = i64::try_from(usage.byte_milliseconds % 1000).expect("it is below 1000");
        statement.execute(params![
            row.id,
            held.device,
            usage.kind.name(),
            usage.last,
            usage.peak,
            usage.peak_ms,
            seconds,
            rest,
            usage.watched_ms,
            usage.live().map(|_| row.seen.mark_ms),
        ])?;
    }
    Ok(())
}

/// All devices, those seen last first.
pub(super) fn devices(connection: &Connection, most: i64) -> rusqlite::Result<Vec<DeviceRow>> {
    let text = "SELECT device.id, key, name, identity, facts, firmware, first_seen_ms, \
        last_seen_ms, mark, subject.id FROM device JOIN subject \
        ON subject.device = device.id AND subject.process IS NULL ORDER BY mark DESC LIMIT ?";
    let mut statement = connection.prepare(text)?;
    let rows = statement.query_map([most], |row| {
        Ok(DeviceRow {
            id: row.get(0)?,
            key: row.get(1)?,
            device: DeviceFacts {
                name: row.get(2)?,
                identity: row.get(3)?,
                facts: row.get(4)?,
                firmware: row.get(5)?,
            },
            seen: RowState {
                first_ms: row.get(6)?,
                last_ms: row.get(7)?,
                mark_ms: row.get(8)?,
                stored: Stored::Whole,
            },
            track: Track::new(row.get(9)?),
        })
    })?;
    rows.collect()
}

/// The processes of which no end was seen, with what they had; those seen last first.
pub(super) fn living(connection: &Connection, most: i64) -> rusqlite::Result<Vec<ProcessRow>> {
    let text = format!(
        "SELECT {PROCESS_COLUMNS} FROM process WHERE ending IS NULL ORDER BY mark DESC LIMIT ?"
    );
    let mut statement = connection.prepare(&text)?;
    let rows = statement.query_map([most], process)?;
    let mut processes = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    for process in &mut processes {
        fill(connection, process)?;
    }
    Ok(processes)
}

/// A process that is in the database, with what it had.
pub(super) fn find(
    connection: &Connection,
    identity: &ProcessIdentity,
) -> rusqlite::Result<Option<ProcessRow>> {
    let text = format!(
        "SELECT {PROCESS_COLUMNS} FROM process WHERE boot_id = ? AND pid_namespace = ? \
         AND pid = ? AND start_ticks = ?"
    );
    let values = params![
        format_boot_id(&identity.boot_id),
        bits(identity.pid_namespace),
        identity.pid,
        bits(identity.start_time_ticks)
    ];
    let found = connection.prepare_cached(&text)?.query_row(values, process).optional()?;
    let Some(mut row) = found else { return Ok(None) };
    fill(connection, &mut row)?;
    Ok(Some(row))
}

/// One row of [`PROCESS_COLUMNS`], without what the process had.
pub(super) fn process(row: &Row<'_>) -> rusqlite::Result<ProcessRow> {
    let boot_id: String = row.get(1)?;
    let last_ms: i64 = row.get(15)?;
    let absences: Option<Absences> = parsed(row.get(10)?);
    let absences = absences.unwrap_or_default();
    let at = super::timeline::moment(last_ms);
    let ending: Option<String> = row.get(17)?;
    let known_by: Option<String> = row.get(12)?;
    Ok(ProcessRow {
        id: row.get(0)?,
        identity: ProcessIdentity {
            boot_id: parse_boot_id(&boot_id).unwrap_or_default(),
            pid_namespace: row.get::<_, i64>(2)?.cast_unsigned(),
            pid: row.get(3)?,
            start_time_ticks: row.get::<_, i64>(4)?.cast_unsigned(),
        },
        described: Described {
            shown_pid: row.get(5)?,
            name: row.get(6)?,
            command: known(row.get(7)?, absences.command, at),
            uid: known(row.get(8)?, absences.uid, at),
            user: known(row.get(9)?, absences.user, at),
            container: parsed(row.get(11)?),
            known_by: known_by.as_deref().and_then(source),
            recording_ms: row.get(13)?,
            faults: RecordingFaults {
                double_frees: row.get::<_, i64>(18)?.cast_unsigned(),
                unknown_frees: row.get::<_, i64>(19)?.cast_unsigned(),
                reused_live_addresses: row.get::<_, i64>(20)?.cast_unsigned(),
                unrecorded_events: row.get::<_, i64>(21)?.cast_unsigned(),
            },
        },
        seen: RowState {
            first_ms: row.get(14)?,
            last_ms,
            mark_ms: row.get(22)?,
            stored: Stored::Whole,
        },
        ended_ms: row.get(16)?,
        ending: ending.as_deref().and_then(Ending::from_name),
        look: 0,
        track: Track::default(),
        held: Vec::new(),
    })
}

/// Adds the subjects of a process and what it had on each device.
pub(super) fn fill(connection: &Connection, row: &mut ProcessRow) -> rusqlite::Result<()> {
    let text = "SELECT id, device FROM subject WHERE process = ?";
    let mut statement = connection.prepare_cached(text)?;
    let mut subjects = statement.query([row.id])?;
    while let Some(subject) = subjects.next()? {
        let track = Track::new(subject.get(0)?);
        match subject.get::<_, Option<i64>>(1)? {
            None => row.track = track,
            Some(device) => {
                let usages = usages(connection, row, device)?;
                row.held.push(HeldRow { device, stored: true, usages, track });
            }
        }
    }
    Ok(())
}

fn usages(
    connection: &Connection,
    process: &ProcessRow,
    device: i64,
) -> rusqlite::Result<Vec<UsageRow>> {
    let text = "SELECT kind, live_bytes, peak_bytes, peak_ms, byte_seconds, byte_milliseconds, \
        watched_ms, since_mark FROM usage WHERE process = ? AND device = ?";
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query([process.id, device])?;
    let mut usages = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        // A kind that a newer version knows.
        let Some(kind) = MemoryKind::ALL.into_iter().find(|kind| kind.name() == name) else {
            continue;
        };
        let (seconds, rest): (i64, i64) = (row.get(4)?, row.get(5)?);
        let stored = StoredUsage {
            kind,
            last: row.get(1)?,
            peak: row.get(2)?,
            peak_ms: row.get(3)?,
            byte_milliseconds: i128::from(seconds) * 1000 + i128::from(rest),
            watched_ms: row.get(6)?,
            since_mark: row.get(7)?,
        };
        usages.push(UsageRow::of_stored(stored, process.seen.mark_ms));
    }
    usages.shrink_to_fit();
    Ok(usages)
}

fn source(name: &str) -> Option<ProcessSource> {
    let all = [
        ProcessSource::Ledger,
        ProcessSource::Endpoint,
        ProcessSource::Region,
        ProcessSource::Legacy,
        ProcessSource::Driver,
    ];
    all.into_iter().find(|source| source.name() == name)
}

fn absences(known: &Described) -> Option<String> {
    let all = Absences {
        command: known.command.absence().map(|(reason, _)| reason),
        uid: known.uid.absence().map(|(reason, _)| reason),
        user: known.user.absence().map(|(reason, _)| reason),
    };
    let some = all.command.or(all.uid).or(all.user).is_some();
    some.then(|| serde_json::to_string(&all).expect("it has only string keys"))
}

fn known<T>(
    value: Option<T>,
    absence: Option<Absence>,
    at: telltale_schema::clock::Timestamp,
) -> Reading<T> {
    match value {
        Some(value) => Reading::new(value, at),
        None => Reading::absent(absence.unwrap_or(Absence::Unknown), ""),
    }
}

/// A number of 64 bits, of which SQLite knows the ones with a sign.
fn bits(number: u64) -> i64 {
    number.cast_signed()
}

fn json<T: Serialize>(value: Option<&T>) -> Option<String> {
    value.map(|value| serde_json::to_string(value).expect("it has only string keys"))
}

fn parsed<T: DeserializeOwned>(text: Option<String>) -> Option<T> {
    serde_json::from_str(&text?).ok()
}
