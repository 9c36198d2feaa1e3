//! The open database of the one who writes: transactions, and never more bytes than it may have.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction};
use telltale_schema::process::ProcessIdentity;

use super::blocks;
use super::database::{self, DatabaseError};
use super::recorder::{Boots, ClosedBlock, MAX_PROCESSES, NextIds, Recorder};
use super::rows::ProcessRow;
use super::timeline::Timeline;
use super::{fault_table, stored};

/// The least that a history may have.
pub(super) const LEAST_BYTES: u64 = 4 << 20;
/// What the index of the log and the lock take.
const SMALL_FILES_BYTES: u64 = 64 << 10;
/// Devices that are remembered from one run to the next.
const MAX_DEVICES: i64 = 4_096;
/// Old blocks that are let go of in one transaction.
const MAX_FORGOTTEN: u32 = 64;
/// Rows of ended processes that are checked for being too old, in one go.
const MAX_OLD_PROCESSES: i64 = 10_000;

/// The database.
#[derive(Debug)]
pub(super) struct Store {
    connection: Connection,
    path: PathBuf,
    most: Share,
}

/// How the bytes of a history are shared out.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// For the log, in which each transaction is first.
    log_bytes: u64,
    /// For the database itself.
    database_bytes: u64,
}

/// Why a block could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// SQLite failed: the disk is full, the file damaged.
    #[error("writing the history failed")]
    Sqlite(#[from] rusqlite::Error),
    /// A reader keeps the log from being emptied, and it has grown as far as it may.
    #[error("a reader keeps the history's log from being emptied")]
    Held,
}

// === impl Store ===

impl Store {
    /// Opens the database at `path`, which must be there, if empty; of at most so many bytes with
    /// all that belongs to it.
    pub(super) fn open(path: &Path, most_bytes: u64) -> Result<Self, DatabaseError> {
        let connection = database::open_to_write(path)?;
        connection.set_prepared_statement_cache_capacity(48);
        let most = Share::of(most_bytes);
        let reported = |source| DatabaseError::Sqlite { path: path.to_owned(), source };
        let page = page_size(&connection).map_err(reported)?;
        let pages = i64::try_from(most.database_bytes / page).unwrap_or(i64::MAX);
        // SQLite itself refuses what would be more. A file that has more already stays as it is,
        // until old blocks have made room in it.
        connection.pragma_update(None, "max_page_count", pages).map_err(reported)?;
        // What the log is cut to once its pages were taken over.
        let log = i64::try_from(most.log_bytes / 4).unwrap_or(i64::MAX);
        connection.pragma_update(None, "journal_size_limit", log).map_err(reported)?;
        Ok(Self { connection, path: path.to_owned(), most })
    }

    /// What was followed when the service ended. Samples stand for at most `longest_ms`.
    pub(super) fn recorder(
        &self,
        block_ms: i64,
        longest_ms: u64,
        boot_id: Option<[u8; 16]>,
    ) -> rusqlite::Result<Recorder> {
        let number = |text: &str| self.connection.query_row(text, [], |row| row.get::<_, i64>(0));
        let next = NextIds {
            device: number("SELECT coalesce(max(id), 0) + 1 FROM device")?,
            process: number("SELECT coalesce(max(id), 0) + 1 FROM process")?,
            subject: number("SELECT coalesce(max(id), 0) + 1 FROM subject")?,
        };
        let run = number("SELECT coalesce(max(run), 0) FROM block")?;
        let mark = number(
            "SELECT max((SELECT coalesce(max(mark), 0) FROM block), \
             (SELECT coalesce(max(mark), 0) FROM process))",
        )?;
        let timeline = Timeline::new(run, mark, longest_ms);
        let boots = Boots { now: boot_id, last: stored::boot_id(&self.connection)? };
        let mut recorder = Recorder::new(timeline, next, block_ms, boots);
        recorder.faults = fault_table::open(&self.connection, mark)?;
        recorder.devices = stored::devices(&self.connection, MAX_DEVICES)?;
        let most = i64::try_from(MAX_PROCESSES).expect("a limit of thousands");
        let living = stored::living(&self.connection, most)?;
        recorder.processes = living.into_iter().map(|row| (row.identity, row)).collect();
        Ok(recorder)
    }

    /// A process that was followed before.
    pub(super) fn find(&self, identity: &ProcessIdentity) -> Option<ProcessRow> {
        // One that cannot be read now is recreated, and replaces the old row.
        stored::find(&self.connection, identity).ok().flatten()
    }

    /// Writes blocks, and all rows that changed, in one transaction; what is too old or too much
    /// goes.
    pub(super) fn write<'a>(
        &mut self,
        blocks: impl IntoIterator<Item = &'a ClosedBlock>,
        recorder: &mut Recorder,
    ) -> Result<(), StoreError> {
        self.make_room()?;
        let transaction = self.connection.transaction()?;
        let mut newest = None;
        for block in blocks {
            blocks::write(&transaction, block)?;
            newest = newest.max(Some(block.mark_ms));
        }
        stored::write(&transaction, recorder)?;
        if let Some(mark_ms) = newest {
            blocks::forget_old(&transaction, mark_ms)?;
        }
        transaction.commit()?;
        recorder.rows_were_stored();
        Ok(())
    }

    /// Makes coarser blocks of those that are complete; whether there may be more to do.
    pub(super) fn make_coarser(&mut self) -> Result<bool, StoreError> {
        self.make_room()?;
        let largest = i64::try_from(self.most.log_bytes / 4).unwrap_or(i64::MAX);
        Ok(blocks::make_coarser(&mut self.connection, largest)?)
    }

    /// Lets go of processes, with all that is about them, that ended before anything that is still
    /// kept of series, or too long ago; and of such faults. For now and then.
    pub(super) fn forget_ended(&mut self) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        let [.., coarsest] = &blocks::TIERS;
        let oldest: Option<i64> =
            transaction.query_row("SELECT max(mark) FROM block", [], |row| row.get(0))?;
        if let Some(newest) = oldest {
            let mark = newest.saturating_sub(coarsest.kept_ms);
            forget_processes_before(&transaction, mark)?;
            fault_table::forget_before(&transaction, mark)?;
        }
        fault_table::forget_beyond(&transaction, self.most.database_bytes)?;
        transaction.commit()?;
        Ok(())
    }

    /// Takes over the log into the database, so that closing it is quick and nothing is left.
    pub(super) fn tidy(&self) {
        // When that fails, the process that opens the file next does it.
        let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// How many blocks there are, and the number of the newest: what tells whether some were lost.
    pub(super) fn blocks(&self) -> rusqlite::Result<(i64, i64)> {
        let text = "SELECT count(*), coalesce(max(id), 0) FROM block";
        self.connection.query_row(text, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Bytes on the disk, with all that belongs to it.
    pub(super) fn bytes(&self) -> u64 {
        ["", "-wal", "-shm"].into_iter().map(|suffix| self.file_bytes(suffix)).sum()
    }

    fn file_bytes(&self, suffix: &str) -> u64 {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |found| found.len())
    }

    /// Makes sure that the log has room, and lets go of the oldest blocks while the database has
    /// hardly any.
    fn make_room(&mut self) -> Result<(), StoreError> {
        if self.file_bytes("-wal") > self.most.log_bytes / 2 {
            self.tidy();
            if self.file_bytes("-wal") > self.most.log_bytes / 2 {
                return Err(StoreError::Held);
            }
        }
        let page = page_size(&self.connection)?;
        for _ in 0..MAX_FORGOTTEN {
            let used = self.used_pages()?.saturating_mul(page);
            if used <= self.most.usual_bytes() {
                break;
            }
            let transaction = self.connection.transaction()?;
            let Some(mark) = blocks::forget_oldest(&transaction)? else { break };
            forget_processes_before(&transaction, mark)?;
            fault_table::forget_before(&transaction, mark)?;
            transaction.commit()?;
        }
        Ok(())
    }

    fn used_pages(&self) -> rusqlite::Result<u64> {
        let number =
            |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let used = number("page_count")?.saturating_sub(number("freelist_count")?);
        Ok(u64::try_from(used).unwrap_or(0))
    }
}

impl Share {
    /// What the database is kept below, so that there is room for what one transaction brings.
    fn usual_bytes(self) -> u64 {
        self.database_bytes - (self.database_bytes / 10).max(self.log_bytes / 2)
    }

    fn of(most_bytes: u64) -> Self {
        let most_bytes = most_bytes.max(LEAST_BYTES);
        let log_bytes = (most_bytes / 8).max(1 << 20);
        Self { log_bytes, database_bytes: most_bytes - log_bytes - SMALL_FILES_BYTES }
    }
}

/// Removes processes that ended and were last seen before this mark, with what they had and the
/// subjects they are.
fn forget_processes_before(transaction: &Transaction<'_>, mark: i64) -> rusqlite::Result<()> {
    let old = "SELECT id FROM process WHERE mark < ? AND ending IS NOT NULL LIMIT ?";
    let old: Vec<i64> = transaction
        .prepare_cached(old)?
        .query_map([mark, MAX_OLD_PROCESSES], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in old {
        for text in [
            "DELETE FROM usage WHERE process = ?",
            "DELETE FROM subject WHERE process = ?",
            "DELETE FROM process WHERE id = ?",
        ] {
            transaction.prepare_cached(text)?.execute([id])?;
        }
    }
    Ok(())
}

fn page_size(connection: &Connection) -> rusqlite::Result<u64> {
    let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(u64::try_from(size).unwrap_or(4096).max(512))
}
