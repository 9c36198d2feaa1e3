//! One history for several servers: a database is read in a thread that may wait for the disk, by
//! one question at a time, so that one user's long span does not take every thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tracing::{info, warn};

use telltale_schema::text::with_causes;
use tokio::sync::Semaphore;

use super::database::DatabaseError;
use super::reader::{HistoryReader, ReadHistoryError};

/// Reads of the database at a time.
const READS: usize = 1;

/// A database that is opened for each question; clones take turns with each other.
#[derive(Debug, Clone)]
pub struct SharedReader {
    database: Arc<PathBuf>,
    turns: Arc<Semaphore>,
    health: Arc<ReadHealth>,
}

/// How reading goes, which the one who writes reports with its own metrics. It also keeps readers
/// away while the writer opens the database again.
#[derive(Debug, Default)]
pub(super) struct ReadHealth {
    failures: AtomicU64,
    /// What is wrong since a reader failed; none when the last one did not.
    problem: Mutex<Option<ReadProblem>>,
    /// Whether the writer should look whether its files are still there.
    suspects_files: AtomicBool,
    files: RwLock<()>,
}

/// Why a reader failed.
#[derive(Debug, PartialEq, Eq)]
struct ReadProblem {
    words: String,
    /// It did not get as far as the question: the database could not be opened.
    at_opening: bool,
}

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SharedReadError {
    /// The history cannot be opened.
    #[error(transparent)]
    Closed(#[from] DatabaseError),
    /// It does not have what was asked for, or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadHistoryError),
    /// The thread that read it has ended, or the service is ending.
    #[error("reading the history was given up; ask again")]
    GivenUp,
}

// === impl SharedReader ===

impl SharedReader {
    /// The history in this database, which need not exist yet.
    #[must_use]
    pub fn new(database: PathBuf) -> Self {
        Self::reporting_to(database, Arc::default())
    }

    /// The same, where a writer reports what goes wrong.
    pub(super) fn reporting_to(database: PathBuf, health: Arc<ReadHealth>) -> Self {
        Self { database: Arc::new(database), turns: Arc::new(Semaphore::new(READS)), health }
    }

    /// Reads, when it is its turn.
    ///
    /// # Errors
    /// When the history cannot be opened, does not have it, or the service is ending.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&HistoryReader) -> Result<T, ReadHistoryError> + Send + 'static,
    ) -> Result<T, SharedReadError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| SharedReadError::GivenUp)?;
        let (database, health) = (Arc::clone(&self.database), Arc::clone(&self.health));
        // The turn goes with the thread: a caller that stops waiting leaves it reading.
        let task = move || {
            let _turn = turn;
            let _files = health.reading();
            let answer = HistoryReader::open(&database)
                .map_err(SharedReadError::from)
                .and_then(|reader| Ok(read(&reader)?));
            health.note(answer.as_ref().err());
            answer
        };
        tokio::task::spawn_blocking(task).await.map_err(|_| SharedReadError::GivenUp)?
    }
}

// === impl ReadHealth ===

impl ReadHealth {
    /// Times that reading failed, and what is wrong now.
    pub(super) fn metrics(&self) -> (u64, Option<String>) {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let words = problem.as_ref().map(|problem| problem.words.clone());
        (self.failures.load(Ordering::Relaxed), words)
    }

    /// Whether a reader has failed since this was asked last.
    pub(super) fn take_suspicion(&self) -> bool {
        self.suspects_files.swap(false, Ordering::Relaxed)
    }

    /// Waits for those who read, and keeps others from beginning.
    pub(super) fn without_readers(&self) -> RwLockWriteGuard<'_, ()> {
        self.files.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries to open the database where the last reader could not: after a repair it need not wait for
    /// the next query. One that opens and cannot be read, as with a damaged page, proves nothing by
    /// opening: that problem stays until a query succeeds or other files are opened.
    pub(super) fn look_again(&self, database: &Path) {
        let fails_to_open = |problem: &ReadProblem| problem.at_opening;
        let problem = || self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if problem().as_ref().is_some_and(fails_to_open)
            && HistoryReader::open(database).is_ok()
            && problem().take_if(|problem| fails_to_open(problem)).is_some()
        {
            info!("the history can be opened again");
        }
    }

    /// Forgets what was wrong: the writer has opened other files than those that were read.
    pub(super) fn has_other_files(&self) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how reading went: what is wrong is logged once.
    fn note(&self, error: Option<&SharedReadError>) {
        let failure = error.and_then(|error| match error {
            SharedReadError::Closed(_) => Some((error, true)),
            SharedReadError::Read(ReadHistoryError::Sqlite(_)) => Some((error, false)),
            _ => None,
        });
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((error, at_opening)) = failure else {
            if problem.take().is_some() {
                info!("the history can be read again");
            }
            return;
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.suspects_files.store(true, Ordering::Relaxed);
        let found = ReadProblem { words: with_causes(error), at_opening };
        if problem.as_ref() != Some(&found) {
            warn!("the history cannot be read: {}", found.words);
            *problem = Some(found);
        }
    }
}
