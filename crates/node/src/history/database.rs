//! The database: its tables, its version, and opening it to write or to read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

/// Marks a file as a history of Telltale: "tell" in ASCII.
const APPLICATION_ID: i32 = 0x7465_6c6c;

/// Each step makes the next version of the tables, the first one out of nothing. Steps are never
/// changed once released.
const STEPS: [&str; 4] = [
    include_str!("tables.sql"),
    include_str!("usage.sql"),
    include_str!("machine.sql"),
    include_str!("faults.sql"),
];

/// The memory that a connection that reads keeps pages in.
const CACHE_KIB: i64 = 1024;
/// The same of the one that writes: it appends a few pages each ten seconds, and lives as long as the
/// service.
const WRITER_CACHE_KIB: i64 = 192;
/// Pages in the log after which they are taken over into the database: half a MiB.
const CHECKPOINT_PAGES: i64 = 128;
/// How long to wait for a process that reads at the wrong moment.
const BUSY: Duration = Duration::from_secs(2);

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// There is none.
    #[error(
        "there is no history in {path}; `telltale serve` keeps one, and --state-dir says where"
    )]
    Missing {
        /// Where one was searched for.
        path: PathBuf,
    },
    /// The file may not be opened.
    #[error("the history {path} is closed to this user")]
    Closed {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of Telltale made it.
    #[error(
        "the history {path} has version {found} of its tables, and this telltale knows versions up \
         to {known}; use a newer telltale"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// The newest version that is known here.
        known: i32,
    },
    /// It is no history, or was damaged.
    #[error("{path} is damaged or no history of Telltale")]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// SQLite failed.
    #[error("opening the history {path} failed; look whether the disk is full or read-only")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
}

/// Opens the database at `path` to write, and brings its tables up to date. The file must be there,
/// if empty.
pub(super) fn open_to_write(path: &Path) -> Result<Connection, DatabaseError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let reported = |source| explained(path, source);
    let mut connection = Connection::open_with_flags(path, flags).map_err(reported)?;
    limit(&connection, WRITER_CACHE_KIB).map_err(reported)?;
    check_version(&connection, path)?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(reported)?;
    // With a log this loses no committed transaction to a killed process, and the last seconds to a
    // power failure; it never damages the file.
    connection.pragma_update(None, "synchronous", "normal").map_err(reported)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(reported)?;
    migrate(&mut connection, &STEPS).map_err(reported)?;
    Ok(connection)
}

/// Opens the database at `path` to read, while another process writes or not.
///
/// Only SQLite may open the file: closing any descriptor of it drops all POSIX locks that this process
/// has on it, and with them what keeps a foreign client from deleting the log under the writer
/// ("How To Corrupt An SQLite Database File", 2.2). So whether it may be opened is asked by its name.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, DatabaseError> {
    match accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS) {
        Err(Errno::NOENT | Errno::NOTDIR) => {
            return Err(DatabaseError::Missing { path: path.to_owned() });
        }
        Err(Errno::ACCESS) => return Err(DatabaseError::Closed { path: path.to_owned() }),
        // SQLite tells any other reason better.
        _ => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reported = |source| explained(path, source);
    let connection = Connection::open_with_flags(path, flags).map_err(reported)?;
    limit(&connection, CACHE_KIB).map_err(reported)?;
    match check_version(&connection, path)? {
        0 => Err(DatabaseError::Missing { path: path.to_owned() }),
        _ => Ok(connection),
    }
}

/// Bounds memory, and believes nothing of the file's own that could run.
fn limit(connection: &Connection, cache_kib: i64) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// The version of the tables, 0 for an empty file; refuses what is not ours and what is newer.
fn check_version(connection: &Connection, path: &Path) -> Result<i32, DatabaseError> {
    let reported = |source| explained(path, source);
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, found) =
        (number("application_id").map_err(reported)?, number("user_version").map_err(reported)?);
    let known = i32::try_from(STEPS.len()).expect("there are few steps");
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0)).map_err(reported)?;
    match (application, tables) {
        (APPLICATION_ID, _) if found > known => {
            Err(DatabaseError::Newer { path: path.to_owned(), found, known })
        }
        (APPLICATION_ID, 1..) if found > 0 => Ok(found),
        (0, 0) if found == 0 => Ok(0),
        _ => Err(DatabaseError::Broken { path: path.to_owned() }),
    }
}

/// Takes the steps from the file's version on, each whole or not at all.
fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let version =
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))?;
    let done = usize::try_from(version).unwrap_or(0);
    for (number, step) in (1..).zip(steps).skip(done) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

fn explained(path: &Path, source: rusqlite::Error) -> DatabaseError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            DatabaseError::Broken { path }
        }
        _ => DatabaseError::Sqlite { path, source },
    }
}

/// Whether an error says that the file is damaged.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::{DatabaseError, STEPS, migrate, open_to_read, open_to_write};
    use telltale_harness::Scratch;

    fn version(connection: &Connection) -> i32 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_new_file_gets_tables_and_a_version_and_an_old_one_the_missing_steps() {
        let scratch = Scratch::new();
        let path = scratch.join("history.db");
        fs::write(&path, "").unwrap();
        assert!(matches!(open_to_read(&path), Err(DatabaseError::Missing { .. })));
        let mut connection = open_to_write(&path).unwrap();
        assert_eq!(version(&connection), i32::try_from(STEPS.len()).unwrap());
        let [tables, usage, machine, faults] = STEPS;
        let next =
            [tables, usage, machine, faults, "ALTER TABLE device ADD COLUMN colour TEXT", "no SQL"];
        connection.execute("INSERT INTO subject (id) VALUES (7)", []).unwrap();
        assert!(migrate(&mut connection, &next).is_err());
        assert_eq!(version(&connection), 5, "the step that failed left nothing");
        let count =
            "SELECT count(colour) + (SELECT count(*) FROM subject WHERE id = 7) FROM device";
        assert_eq!(connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        drop(connection);
        let newer = open_to_write(&path).unwrap_err();
        assert!(matches!(newer, DatabaseError::Newer { found: 5, known: 4, .. }), "{newer}");
        assert!(matches!(open_to_read(&path), Err(DatabaseError::Newer { .. })));
    }

    #[test]
    fn what_is_no_history_is_refused_and_left_alone() {
        let scratch = Scratch::new();
        let path = scratch.join("history.db");
        assert!(matches!(open_to_read(&path), Err(DatabaseError::Missing { .. })));
        let foreign = Connection::open(&path).unwrap();
        foreign.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
        drop(foreign);
        assert!(matches!(open_to_write(&path), Err(DatabaseError::Broken { .. })));
        let text = "x".repeat(8192);
        fs::write(&path, &text).unwrap();
        assert!(matches!(open_to_write(&path), Err(DatabaseError::Broken { .. })));
        assert!(matches!(open_to_read(&path), Err(DatabaseError::Broken { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
