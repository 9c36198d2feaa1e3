//! Where a history is read: a file that this user may open, else the service, which shows each user
//! their own.

use std::path::{Path, PathBuf};

use telltale_node::access::Sight;
use telltale_node::history::{
    DatabaseError, Past, ReadHistoryError, Reader, database_in, directory_for,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, HistoryQuery, ProcessChoice, Report};

use crate::arguments::{HistoryPlace, Place};
use crate::exit::Failure;

/// The directory of the service that a package installs.
const SYSTEM: &str = "/var/lib/telltale";

/// A history that can be asked.
pub(crate) struct PastSource {
    reader: Reader,
}

// === impl PastSource ===

impl PastSource {
    /// Finds the history of a machine.
    pub(crate) fn find(history: &HistoryPlace, place: &Place) -> Result<Self, Failure> {
        let mut closed = None;
        let mut missing = None;
        for path in candidates(history, place) {
            match Reader::open(&path) {
                Ok(reader) => return Ok(Self { reader }),
                Err(error @ DatabaseError::Missing { .. }) => {
                    missing.get_or_insert(error);
                }
                Err(error @ DatabaseError::Closed { .. }) => {
                    closed.get_or_insert(error);
                }
                Err(error) => return Err(Failure::because(&error)),
            }
        }
        Err(match closed.or(missing) {
            Some(error) => Failure::because(&error),
            None => Failure::Told(String::from(
                "there is no home directory to look for a history in; name one with --state-dir",
            )),
        })
    }

    /// Series over time.
    pub(crate) fn query(&self, query: &HistoryQuery) -> Result<HistoryAnswer, Failure> {
        self.told(self.reader.query(query, Sight::Everything))
    }

    /// The machine at a moment.
    pub(crate) fn snapshot_at(&self, at: Timestamp) -> Result<Past, Failure> {
        self.told(self.reader.snapshot_at(at))
    }

    /// What is kept of processes.
    pub(crate) fn report(&self, process: &ProcessChoice) -> Result<Vec<Report>, Failure> {
        self.told(self.reader.report(process, Sight::Everything))
    }

    fn told<T>(&self, outcome: Result<T, ReadHistoryError>) -> Result<T, Failure> {
        outcome.map_err(|error| Failure::because(&error))
    }
}

/// The files to try, in this order.
fn candidates(history: &HistoryPlace, place: &Place) -> Vec<PathBuf> {
    let root = place.root.as_deref().unwrap_or(Path::new("/"));
    let first = directory_for(history.state_dir.as_deref(), root);
    let is_named = history.state_dir.is_some() || root != Path::new("/");
    let system = (!is_named).then(|| PathBuf::from(SYSTEM));
    let mut paths: Vec<_> = first.into_iter().chain(system).collect();
    paths.dedup();
    paths.iter().map(|directory| database_in(directory)).collect()
}
