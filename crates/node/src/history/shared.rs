//! One history for several servers: a database is read in a thread that may wait for the disk, by
//! one question at a time, so that one user's long span does not take every thread.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::database::DatabaseError;
use super::reader::{ReadHistoryError, Reader};

/// Reads of the database at a time.
const READS: usize = 1;

/// A database that is opened for each question; clones take turns with each other.
#[derive(Debug, Clone)]
pub struct SharedReader {
    database: Arc<PathBuf>,
    turns: Arc<Semaphore>,
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
        Self { database: Arc::new(database), turns: Arc::new(Semaphore::new(READS)) }
    }

    /// Reads, when it is its turn.
    ///
    /// # Errors
    /// When the history cannot be opened, does not have it, or the service is ending.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, ReadHistoryError> + Send + 'static,
    ) -> Result<T, SharedReadError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| SharedReadError::GivenUp)?;
        let database = Arc::clone(&self.database);
        // The turn goes with the thread: a caller that stops waiting leaves it reading.
        let task = move || {
            let _turn = turn;
            Ok(read(&Reader::open(&database)?)?)
        };
        tokio::task::spawn_blocking(task).await.map_err(|_| SharedReadError::GivenUp)?
    }
}
