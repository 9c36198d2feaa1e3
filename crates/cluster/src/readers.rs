//! Readers of what other tools write about collectives: the NCCL Inspector's JSON lines and PyTorch's
//! Flight Recorder as JSON. What they find goes into the intake, as if it had been posted.
//!
//! They follow files and directories that anybody may write, so each look reads a bounded amount, no
//! link is followed, and what makes no sense is counted. Pickles, which the Flight Recorder also
//! writes, are never read: reading one runs what it says.

mod files;
mod flight_recorder;
mod inspector;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

use crate::intake::Intake;
use files::Files;
use flight_recorder::Dumps;

/// How often files are looked at.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What a reader understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of the NCCL Inspector (`NCCL_INSPECTOR_DUMP_DIR`), each of a collective that has ended.
    Inspector,
    /// Dumps of the Flight Recorder, each a JSON object of the latest operations of one rank, whose
    /// number is the last one in the file's name.
    FlightRecorder,
}

/// What a reader has seen since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderCounts {
    /// Records that were given to the intake.
    pub read: u64,
    /// Lines, dumps or entries that make no sense.
    pub malformed: u64,
    /// Bytes that were passed over: lines or files that are too long, or written faster than read.
    pub skipped_bytes: u64,
    /// Files that were not looked at since there are too many.
    pub files_left_out: u64,
    /// Records that found no place in the intake's queue.
    pub dropped: u64,
}

/// Reads one file, or the files of one directory, again and again.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    way: Way,
    counts: ReaderCounts,
}

#[derive(Debug)]
enum Way {
    Inspector(Files),
    FlightRecorder(Dumps),
}

// === impl Reader ===

impl Reader {
    /// A reader of `path`. What is in the Inspector's files already is of an earlier run and is passed
    /// over.
    #[must_use]
    pub fn new(format: Format, path: &Path) -> Self {
        let mut counts = ReaderCounts::default();
        let way = match format {
            Format::Inspector => Way::Inspector(Files::at_their_ends(path, &mut counts)),
            Format::FlightRecorder => Way::FlightRecorder(Dumps::default()),
        };
        Self { path: path.to_owned(), way, counts: ReaderCounts::default() }
    }

    /// Reads what is new, and gives it to `intake`.
    pub fn look(&mut self, intake: &Intake) {
        let mut entries = Vec::new();
        match &mut self.way {
            Way::Inspector(files) => {
                files.lines(&self.path, &mut self.counts, |line, counts| {
                    match inspector::entry(line, |pid| intake.rank_of_process(pid)) {
                        Some(entry) => entries.push(entry),
                        None => counts.malformed += 1,
                    }
                });
            }
            Way::FlightRecorder(dumps) => {
                dumps.look(&self.path, &mut self.counts, &mut entries);
            }
        }
        let read = entries.len();
        let dropped = if entries.is_empty() { 0 } else { intake.take(entries) };
        add(&mut self.counts.read, read - dropped);
        add(&mut self.counts.dropped, dropped);
    }

    /// What it has seen.
    #[must_use]
    pub const fn counts(&self) -> ReaderCounts {
        self.counts
    }

    /// Looks every [`INTERVAL`] until it is time to stop, on a thread where reading may take a while.
    pub async fn run(mut self, intake: Intake, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let intake = intake.clone();
            let looked = tokio::task::spawn_blocking(move || {
                self.look(&intake);
                self
            });
            let Ok(reader) = looked.await else { return };
            self = reader;
            let _ = tokio::time::timeout(INTERVAL, stop.wait_for(|stop| *stop)).await;
        }
    }
}

fn add(counter: &mut u64, more: usize) {
    *counter = counter.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
}

#[cfg(test)]
mod tests;
