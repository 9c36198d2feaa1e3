//! The table of faults: written by the service, and read of a moment, of a span of time, and of the end.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Evidence, Fault, FaultKind};
use telltale_schema::history::{HistoryQuery, MAX_FAULTS, PastFault};

use super::faults::{FaultRow, FaultRows, MAX_EVIDENCE, MAX_OPEN, StoredFault};
use super::timeline::{milliseconds, moment};

/// Rows at most; of more, those that ended first go.
const MAX_ROWS: i64 = 100_000;
/// What the database must have for each: one takes a quarter of that or so.
const ROW_BYTES: u64 = 2_048;
/// The columns that [`stored`] reads, in its order.
const COLUMNS: &str = "id, device, part, kind, since_ms, until_ms, detail, evidence";
/// Since when the moment is one of which faults are kept.
const IS_KEPT: &str = "SELECT since_ms <= ? FROM faults_kept";

/// A fault with the number of the device that has it; none of a part or a source.
pub(super) type OwnedFault = (Option<i64>, Fault);

/// Writes the rows that are not in the table as they are.
pub(super) fn write(connection: &Connection, faults: &FaultRows) -> rusqlite::Result<()> {
    let text = "INSERT INTO fault (id, device, part, kind, since_ms, until_ms, detail, evidence, mark) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO UPDATE SET \
        until_ms = ?6, detail = ?7, evidence = ?8, mark = ?9";
    let mut statement = connection.prepare_cached(text)?;
    for row in faults.unstored() {
        let FaultRow { id, device, part, since_ms, until_ms, detail, mark_ms, .. } = row;
        let evidence = serde_json::to_string(&row.evidence).expect("it has only string keys");
        let kind = row.kind.name();
        statement.execute(params![
            id, device, part, kind, since_ms, until_ms, detail, evidence, mark_ms
        ])?;
    }
    Ok(())
}

/// What lasted when the history was written last, with the number that the next one has. The service
/// that wrote it may have been killed: `mark_ms` is its last mark, `last_ms` its last collection.
pub(super) fn open(connection: &Connection, mark_ms: i64) -> rusqlite::Result<FaultRows> {
    let next = "SELECT coalesce(max(id), 0) + 1 FROM fault";
    let next = connection.query_row(next, [], |row| row.get(0))?;
    let rows = lasting(connection)?;
    let last_ms = last_ms(connection)?.unwrap_or(0);
    end_unknown(connection, &rows, last_ms)?;
    let rows = rows.into_iter().map(|row| FaultRow::of_stored(row, mark_ms)).collect();
    Ok(FaultRows::new(rows, next, last_ms))
}

/// Ends those that last by the table and cannot be followed: of kinds that a newer version knows.
fn end_unknown(connection: &Connection, known: &[StoredFault], at_ms: i64) -> rusqlite::Result<()> {
    let text = "SELECT id FROM fault WHERE until_ms IS NULL";
    let mut statement = connection.prepare(text)?;
    let ids = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    for id in ids.iter().filter(|id| !known.iter().any(|row| row.id == **id)) {
        let text = "UPDATE fault SET until_ms = max(since_ms, ?) WHERE id = ?";
        connection.execute(text, [at_ms, *id])?;
    }
    Ok(())
}

/// Those of which no end is written.
fn lasting(connection: &Connection) -> rusqlite::Result<Vec<StoredFault>> {
    let text =
        format!("SELECT {COLUMNS} FROM fault WHERE until_ms IS NULL ORDER BY id LIMIT {MAX_OPEN}");
    chosen(connection, &text, [])
}

/// Lets go of what ended before this mark.
pub(super) fn forget_before(transaction: &Transaction<'_>, mark_ms: i64) -> rusqlite::Result<()> {
    let old = "DELETE FROM fault WHERE mark < ? AND until_ms IS NOT NULL";
    transaction.prepare_cached(old)?.execute([mark_ms])?;
    Ok(())
}

/// Lets go of what ended first where there are too many rows for a database of so many bytes.
pub(super) fn forget_beyond(
    transaction: &Transaction<'_>,
    database_bytes: u64,
) -> rusqlite::Result<()> {
    let most = i64::try_from(database_bytes / ROW_BYTES).unwrap_or(MAX_ROWS).min(MAX_ROWS);
    let count = "SELECT count(*) FROM fault";
    let count: i64 = transaction.query_row(count, [], |row| row.get(0))?;
    if count <= most {
        return Ok(());
    }
    let first = "SELECT id FROM fault WHERE until_ms IS NOT NULL ORDER BY until_ms, id LIMIT ?";
    let last = format!("SELECT max(until_ms) FROM fault WHERE id IN ({first})");
    let last: Option<i64> = transaction.query_row(&last, [count - most], |row| row.get(0))?;
    let Some(last) = last else { return Ok(()) };
    transaction.execute(&format!("DELETE FROM fault WHERE id IN ({first})"), [count - most])?;
    transaction.execute("UPDATE faults_kept SET since_ms = max(since_ms, ?)", [last])?;
    Ok(())
}

/// What lasted at a moment, with the device's number; none where faults of then are not kept.
pub(super) fn at(connection: &Connection, at_ms: i64) -> rusqlite::Result<Option<Vec<OwnedFault>>> {
    if !has_table(connection)? {
        return Ok(None);
    }
    let is_kept: Option<bool> =
        connection.query_row(IS_KEPT, [at_ms], |row| row.get(0)).optional()?;
    if is_kept != Some(true) {
        return Ok(None);
    }
    let text = format!(
        "SELECT {COLUMNS} FROM fault WHERE since_ms <= ?1 AND (until_ms IS NULL OR until_ms > ?1) \
         ORDER BY id LIMIT {MAX_OPEN}"
    );
    let found = chosen(connection, &text, [at_ms])?;
    Ok(Some(found.into_iter().map(|row| (row.device, row.fault)).collect()))
}

/// What there was in the time of a query, the newest first, and how many more.
pub(super) fn over(
    connection: &Connection,
    query: &HistoryQuery,
    devices: &[(i64, String)],
) -> rusqlite::Result<(Vec<PastFault>, u64)> {
    if !has_table(connection)? {
        return Ok((Vec::new(), 0));
    }
    let is_asked = |name: &String| query.devices.is_empty() || query.devices.contains(name);
    let asked = devices.iter().filter(|(_, name)| is_asked(name));
    let asked: Vec<String> = asked.map(|(id, _)| id.to_string()).collect();
    let of_devices = match query.devices.is_empty() {
        true => String::new(),
        false => format!(" AND device IN ({})", asked.join(", ")),
    };
    let condition = format!("since_ms <= ?1 AND (until_ms IS NULL OR until_ms >= ?2){of_devices}");
    let span = [milliseconds(query.to), milliseconds(query.from)];
    let count = format!("SELECT count(*) FROM fault WHERE {condition}");
    let count: u64 =
        connection.query_row(&count, span, |row| row.get::<_, i64>(0))?.cast_unsigned();
    let text = format!(
        "SELECT {COLUMNS} FROM fault WHERE {condition} ORDER BY since_ms DESC, id DESC \
         LIMIT {MAX_FAULTS}"
    );
    let last_ms = last_ms(connection)?;
    let past = |row: StoredFault| {
        let name = |id| devices.iter().find(|(known, _)| *known == id);
        let device = row.device.and_then(name).map(|(_, name)| name.clone());
        let last = row.until_ms.or(last_ms).unwrap_or(row.since_ms).max(row.since_ms);
        let until = row.until_ms.map(moment);
        PastFault { device, fault: row.fault, until, last_seen: moment(last) }
    };
    let found = chosen(connection, &text, span)?;
    Ok((found.into_iter().map(past).collect(), count.saturating_sub(MAX_FAULTS as u64)))
}

/// What lasted at the last collection, with the device's number, and when that collection was. None
/// where no fault is kept.
pub(super) fn at_the_end(
    connection: &Connection,
) -> rusqlite::Result<Option<(Timestamp, Vec<OwnedFault>)>> {
    if !has_table(connection)? {
        return Ok(None);
    }
    let Some(last_ms) = last_ms(connection)? else { return Ok(None) };
    let rows = lasting(connection)?.into_iter().map(|row| (row.device, row.fault));
    Ok(Some((moment(last_ms), rows.collect())))
}

/// When the last collection was that is written.
fn last_ms(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let text = "SELECT end_ms FROM block ORDER BY mark DESC, id DESC LIMIT 1";
    connection.query_row(text, [], |row| row.get(0)).optional()
}

/// Whether a version that keeps faults has written the file.
fn has_table(connection: &Connection) -> rusqlite::Result<bool> {
    let text = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' \
        AND name IN ('fault', 'faults_kept')";
    Ok(connection.query_row(text, [], |row| row.get::<_, i64>(0))? == 2)
}

/// The rows of [`COLUMNS`], but those that cannot be understood.
fn chosen(
    connection: &Connection,
    text: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<Vec<StoredFault>> {
    let mut statement = connection.prepare_cached(text)?;
    let rows = statement.query_map(values, |row| Ok(stored(row).ok().flatten()))?;
    rows.filter_map(Result::transpose).collect()
}

/// A row; none of a kind that a newer version knows, or whose evidence is no JSON of it.
fn stored(row: &Row<'_>) -> rusqlite::Result<Option<StoredFault>> {
    let (kind, evidence): (String, String) = (row.get(3)?, row.get(7)?);
    let Some(kind) = FaultKind::from_name(&kind) else { return Ok(None) };
    let Ok(mut evidence) = serde_json::from_str::<Vec<Evidence>>(&evidence) else {
        return Ok(None);
    };
    evidence.truncate(MAX_EVIDENCE);
    let since_ms = row.get(4)?;
    let (part, detail) = (row.get(2)?, row.get(6)?);
    let fault = Fault { kind, part, since: moment(since_ms), detail, evidence };
    let (id, device, until_ms) = (row.get(0)?, row.get(1)?, row.get(5)?);
    Ok(Some(StoredFault { id, device, since_ms, until_ms, fault }))
}

#[cfg(test)]
mod tests {
    use super::{ROW_BYTES, forget_before, forget_beyond};
    use crate::history::database::open_to_write;
    use telltale_harness::Scratch;

    /// Calls it with twenty rows: the first one lasts, and the higher their number, the earlier they ended.
    fn with_rows(call: impl FnOnce(&rusqlite::Transaction<'_>)) {
        let scratch = Scratch::new();
        let path = scratch.join("history.db");
        std::fs::write(&path, "").unwrap();
        let mut connection = open_to_write(&path).unwrap();
        let transaction = connection.transaction().unwrap();
        let text = "INSERT INTO fault VALUES (?1, 1, '', 'vanished', ?1, ?2, '', '[]', ?1)";
        for id in 0..20_i64 {
            let until = (id > 0).then_some(100 - id);
            transaction.execute(text, rusqlite::params![id, until]).unwrap();
        }
        call(&transaction);
    }

    fn ids(transaction: &rusqlite::Transaction<'_>) -> Vec<i64> {
        let mut statement = transaction.prepare("SELECT id FROM fault ORDER BY id").unwrap();
        let ids = statement.query_map([], |row| row.get(0)).unwrap();
        ids.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn what_is_old_goes_and_what_lasts_stays() {
        with_rows(|transaction| {
            forget_before(transaction, 12).unwrap();
            assert_eq!(ids(transaction), [0, 12, 13, 14, 15, 16, 17, 18, 19]);
        });
    }

    #[test]
    fn what_ended_first_goes_where_there_is_no_room() {
        with_rows(goes_by_end);
    }

    fn goes_by_end(transaction: &rusqlite::Transaction<'_>) {
        forget_beyond(transaction, 20 * ROW_BYTES).unwrap();
        assert_eq!(ids(transaction).len(), 20);
        forget_beyond(transaction, 15 * ROW_BYTES).unwrap();
        assert_eq!(ids(transaction), (0..15).collect::<Vec<_>>());
        let kept = "SELECT since_ms FROM faults_kept";
        let kept: i64 = transaction.query_row(kept, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 85, "of moments before that, not all is known");
        // Of rows that end together as many go as must, and more that last than there is room for stay alone.
        transaction
            .execute("UPDATE fault SET until_ms = 90 WHERE until_ms IS NOT NULL", [])
            .unwrap();
        forget_beyond(transaction, 12 * ROW_BYTES).unwrap();
        assert_eq!(ids(transaction), [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        transaction.execute("UPDATE fault SET until_ms = NULL WHERE id < 13", []).unwrap();
        forget_beyond(transaction, 4 * ROW_BYTES).unwrap();
        assert_eq!(ids(transaction), [0, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}
