//! What was, on one machine: an SQLite file under the state directory, which one service writes and
//! any permitted process reads. docs/history.md has the tables and what is kept for how long.
//!
//! Nothing here collects anything, and no value here is ever guessed: what is not kept is absent.

mod blocks;
mod buckets;
mod database;
mod directory;
#[cfg(test)]
mod exact;
mod fault_table;
mod faults;
mod learned;
mod part;
mod past;
mod reader;
mod recorder;
mod report;
mod rows;
mod samples;
mod series_kind;
mod serving;
mod shared;
mod store;
mod stored;
mod timeline;
mod varint;
mod writer;

use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

pub use database::DatabaseError;
pub use directory::{
    DirectoryError, check_directory, database_in, default_directory, directory_for,
};
pub use learned::known_faults;
pub use past::Past;
pub use reader::{HistoryReader, ReadHistoryError};
pub use serving::serve;
pub use shared::{SharedReadError, SharedReader};
pub use writer::{HistoryError, HistoryWriter};

/// Why a filter that names what processes use of their host cannot be asked of the past.
pub const USAGE_NOT_KEPT: &str = "the history does not keep what processes use of the host (cpu, rss, \
    threads, disk_read, disk_write); leave these fields out";

/// How the history is kept: the table `[history]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryOptions {
    /// Whether one is kept at all.
    pub enabled: bool,
    /// The most that it takes on the disk, in MiB, at least 4; the oldest goes first.
    #[serde(deserialize_with = "max_mebibytes")]
    pub max_mebibytes: u64,
    /// The time from one writing to the next, in seconds, from 1 to 60: what a service that is
    /// killed loses at most, and what the newest of the history lags behind.
    #[serde(deserialize_with = "write_seconds")]
    pub write_seconds: u64,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self { enabled: true, max_mebibytes: 256, write_seconds: 10 }
    }
}

fn max_mebibytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within(from, store::LEAST_BYTES >> 20..=1 << 20, "MiB")
}

fn write_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within(from, 1..=60, "seconds")
}

/// A number of a unit within these limits.
fn within<'de, D: Deserializer<'de>>(
    from: D,
    limits: RangeInclusive<u64>,
    unit: &str,
) -> Result<u64, D::Error> {
    let number = u64::deserialize(from)?;
    if limits.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (limits.start(), limits.end());
    Err(D::Error::custom(format!("{number} is not from {least} to {most} {unit}")))
}
