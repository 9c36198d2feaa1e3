//! Readers of what other tools write about collectives: the NCCL Inspector's JSON lines and PyTorch's
//! Flight Recorder. What they find goes into the intake, as if it had been posted.
//!
//! They follow files and directories that anybody may write, so each poll reads a bounded amount, no
//! link is followed, what makes no sense is counted, and what others than the workers may have written
//! is shown and decides nothing. Pickles are read as data alone ([`telltale_pickle`]).

mod files;
mod flight_recorder;
mod inspector;
mod owners;
pub(crate) mod trigger;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

use telltale_cluster::epoch::Epoch;
pub use telltale_cluster::intake::formats::{Format, ReaderCounts};

use crate::intake::{Intake, Sender};
use files::ReadPositions;
use flight_recorder::Dumps;
use owners::Owners;
use telltale_cluster::intake::entry::PostEntry;

/// Entries that are given to the intake at once: what finds no place there is dropped as a whole.
const MAX_ENTRIES_AT_ONCE: usize = 1024;

/// How often files are checked.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Reads one file, or the files of one directory, periodically.
#[derive(Debug)]
pub struct FileReader {
    path: PathBuf,
    way: ReaderKind,
    owners: Owners,
    counts: ReaderCounts,
    /// The epoch of the last poll.
    epoch: Option<Epoch>,
}

#[derive(Debug)]
enum ReaderKind {
    Inspector(ReadPositions),
    FlightRecorder(Dumps),
}

/// What one poll finds, on its way to the intake in parts, so that no poll is too large for it.
struct Giving<'i> {
    intake: &'i Intake,
    part: Vec<PostEntry>,
    /// Of whom the part is.
    sender: Sender,
    given: usize,
    dropped: usize,
}

// === impl FileReader ===

impl FileReader {
    /// A reader of `path`. What is in the Inspector's files already is of an earlier run and is passed
    /// over.
    #[must_use]
    pub fn new(format: Format, path: &Path) -> Self {
        let mut counts = ReaderCounts::default();
        let mut owners = Owners::new();
        let way = match format {
            Format::Inspector => {
                ReaderKind::Inspector(ReadPositions::at_their_ends(path, &mut owners, &mut counts))
            }
            Format::FlightRecorder => ReaderKind::FlightRecorder(Dumps::default()),
        };
        Self { path: path.to_owned(), way, owners, counts: ReaderCounts::default(), epoch: None }
    }

    /// Reads what is new, and gives it to `intake`.
    pub fn poll(&mut self, intake: &Intake) {
        let epoch = intake.epoch();
        let before = std::mem::replace(&mut self.epoch, epoch);
        let mut giving = Giving::to(intake);
        let (path, owners, counts) = (&self.path, &mut self.owners, &mut self.counts);
        match &mut self.way {
            ReaderKind::Inspector(files) => {
                files.lines(path, owners, counts, |line, sender, counts| {
                    match inspector::entry(line, |pid| intake.rank_of_process(pid)) {
                        Some(entry) => giving.put(entry, sender),
                        None => counts.malformed += 1,
                    }
                });
            }
            ReaderKind::FlightRecorder(dumps) => {
                if before.is_some() && before != epoch {
                    dumps.restart(path, owners, counts);
                }
                dumps.poll(path, owners, counts, |entry, sender| giving.put(entry, sender));
            }
        }
        giving.give();
        add(&mut self.counts.read, giving.given);
        add(&mut self.counts.dropped, giving.dropped);
        let format = match self.way {
            ReaderKind::Inspector(_) => Format::Inspector,
            ReaderKind::FlightRecorder(_) => Format::FlightRecorder,
        };
        intake.note_reader(format, self.counts);
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
            let polled = tokio::task::spawn_blocking(move || {
                self.poll(&intake);
                self
            });
            let Ok(reader) = polled.await else { return };
            self = reader;
            let _ = tokio::time::timeout(INTERVAL, stop.wait_for(|stop| *stop)).await;
        }
    }
}

// === impl Giving ===

impl<'i> Giving<'i> {
    const fn to(intake: &'i Intake) -> Self {
        Self { intake, part: Vec::new(), sender: Sender::Verified, given: 0, dropped: 0 }
    }

    fn put(&mut self, entry: PostEntry, sender: Sender) {
        if sender != self.sender {
            self.give();
            self.sender = sender;
        }
        self.part.push(entry);
        if self.part.len() == MAX_ENTRIES_AT_ONCE {
            self.give();
        }
    }

    fn give(&mut self) {
        let part = std::mem::take(&mut self.part);
        let read = part.len();
        let dropped = match self.sender {
            Sender::Verified => self.intake.take(part),
            Sender::Unverified => {
                self.intake.show(part);
                0
            }
        };
        self.given += read - dropped;
        self.dropped += dropped;
    }
}

fn add(counter: &mut u64, more: usize) {
    *counter = counter.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
}

#[cfg(test)]
mod tests;
