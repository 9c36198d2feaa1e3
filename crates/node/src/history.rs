//! What was, on one machine: an SQLite file under the state directory, which one service writes and
//! whoever may read it reads. docs/history.md has the tables and what is kept for how long.
//!
//! Nothing here collects anything, and no figure here is ever guessed: what is not kept is absent.

mod answer;
mod blocks;
mod buckets;
mod choice;
mod database;
mod directory;
mod figure;
mod part;
mod past;
mod reader;
mod recorder;
mod report;
mod rows;
mod samples;
mod store;
mod stored;
mod timeline;
mod varint;
mod writer;

use serde::{Deserialize, Serialize};
use telltale_schema::clock::Timestamp;

pub use answer::{
    HistoryAnswer, HistoryQuery, MAX_POINTS, MAX_SERIES, PastProcess, Series, Subjects,
};
pub use choice::{ProcessChoice, identity_text};
pub use database::DatabaseError;
pub use directory::{DirectoryError, database_in, default_directory};
pub use past::Past;
pub use reader::{ReadHistoryError, Reader};
pub use report::{Report, UsageReport};
pub use rows::Ending;
pub use writer::{HistoryError, HistoryFigures, Writer};

/// How the history is kept: the table `[history]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryOptions {
    /// Whether one is kept at all.
    pub enabled: bool,
    /// The most that it takes on the disk, in MiB, at least 16; the oldest goes first.
    pub max_mebibytes: u64,
    /// The time from one writing to the next, in seconds, from 1 to 60: what a service that is
    /// killed loses at most, and what the newest of the history lags behind.
    pub write_seconds: u64,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self { enabled: true, max_mebibytes: 256, write_seconds: 10 }
    }
}

/// A time of the database, in milliseconds, as a moment; before 1970 is 1970.
pub(crate) fn moment(at_ms: i64) -> Timestamp {
    Timestamp(u64::try_from(at_ms).unwrap_or(0).saturating_mul(1_000_000))
}
