//! Readers of what other tools write about collectives: the NCCL Inspector's JSON lines and PyTorch's
//! Flight Recorder as JSON. What they find goes into the intake, as if it had been posted.
//!
//! They follow files and directories that anybody may write, so each look reads a bounded amount, no
//! link is followed, what makes no sense is counted, and what others than the workers may have written
//! is shown and decides nothing. Pickles, which the Flight Recorder also
//! writes, are never read: reading one runs what it says.

mod files;
mod flight_recorder;
mod inspector;
mod owners;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

use crate::epoch::Epoch;
use crate::intake::entry::Entry;
use crate::intake::{Intake, Sender};
use files::Files;
use flight_recorder::Dumps;
use owners::Owners;

/// How the names of the Flight Recorder's dumps begin, in the directory that they are to be in. The
/// rank stands behind it.
const DUMP_PREFIX: &str = "nccl_trace_rank_";

/// Entries that are given to the intake at once: what finds no place there is dropped as a whole.
const MAX_ENTRIES_AT_ONCE: usize = 1024;

/// How often files are looked at.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What a reader understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Lines, dumps or entries that make no sense, pickles included.
    pub malformed: u64,
    /// Bytes that were passed over: lines or files that are too long, or written faster than read.
    pub skipped_bytes: u64,
    /// Files that were not looked at since there are too many.
    pub files_left_out: u64,
    /// Records that found no place in the intake's queue.
    pub dropped: u64,
}

impl Format {
    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inspector => "inspector",
            Self::FlightRecorder => "flight_recorder",
        }
    }

    /// The variables by which a worker's own tool writes into the directory `path`, as the tool's
    /// documentation has them. What its user has set already counts before these.
    #[must_use]
    pub fn variables(self, path: &Path) -> Vec<(&'static str, OsString)> {
        match self {
            // `ext-profiler/inspector/README.md` in NVIDIA/nccl. Without the interval nothing is written
            // before the end; a second is how often it is looked at.
            Self::Inspector => vec![
                ("NCCL_INSPECTOR_ENABLE", "1".into()),
                ("NCCL_INSPECTOR_DUMP_DIR", path.into()),
                ("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "1000000".into()),
            ],
            // PyTorch's page "ProcessGroupNCCL Environment Variables". The rank follows
            // the name. Each has a name of now and one of before; without entries nothing is recorded.
            Self::FlightRecorder => {
                let prefix = path.join(DUMP_PREFIX);
                vec![
                    ("TORCH_FR_DUMP_TEMP_FILE", prefix.clone().into()),
                    ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", prefix.into()),
                    ("TORCH_FR_BUFFER_SIZE", "2000".into()),
                    ("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000".into()),
                ]
            }
        }
    }
}

/// Reads one file, or the files of one directory, again and again.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    way: Way,
    owners: Owners,
    counts: ReaderCounts,
    /// The epoch of the last look.
    epoch: Option<Epoch>,
}

#[derive(Debug)]
enum Way {
    Inspector(Files),
    FlightRecorder(Dumps),
}

/// What one look finds, on its way to the intake in parts, so that no look is too large for it.
struct Giving<'i> {
    intake: &'i Intake,
    part: Vec<Entry>,
    /// Of whom the part is.
    sender: Sender,
    given: usize,
    dropped: usize,
}

// === impl Reader ===

impl Reader {
    /// A reader of `path`. What is in the Inspector's files already is of an earlier run and is passed
    /// over.
    #[must_use]
    pub fn new(format: Format, path: &Path) -> Self {
        let mut counts = ReaderCounts::default();
        let mut owners = Owners::new();
        let way = match format {
            Format::Inspector => {
                Way::Inspector(Files::at_their_ends(path, &mut owners, &mut counts))
            }
            Format::FlightRecorder => Way::FlightRecorder(Dumps::default()),
        };
        Self { path: path.to_owned(), way, owners, counts: ReaderCounts::default(), epoch: None }
    }

    /// Reads what is new, and gives it to `intake`.
    pub fn look(&mut self, intake: &Intake) {
        let epoch = intake.epoch();
        let before = std::mem::replace(&mut self.epoch, epoch);
        let mut giving = Giving::to(intake);
        let (path, owners, counts) = (&self.path, &mut self.owners, &mut self.counts);
        match &mut self.way {
            Way::Inspector(files) => {
                files.lines(path, owners, counts, |line, sender, counts| {
                    match inspector::entry(line, |pid| intake.rank_of_process(pid)) {
                        Some(entry) => giving.put(entry, sender),
                        None => counts.malformed += 1,
                    }
                });
            }
            Way::FlightRecorder(dumps) => {
                if before.is_some() && before != epoch {
                    dumps.begin_anew(path, owners, counts);
                }
                dumps.look(path, owners, counts, |entry, sender| giving.put(entry, sender));
            }
        }
        giving.give();
        add(&mut self.counts.read, giving.given);
        add(&mut self.counts.dropped, giving.dropped);
        let format = match self.way {
            Way::Inspector(_) => Format::Inspector,
            Way::FlightRecorder(_) => Format::FlightRecorder,
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

// === impl Giving ===

impl<'i> Giving<'i> {
    const fn to(intake: &'i Intake) -> Self {
        Self { intake, part: Vec::new(), sender: Sender::Verified, given: 0, dropped: 0 }
    }

    fn put(&mut self, entry: Entry, sender: Sender) {
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
