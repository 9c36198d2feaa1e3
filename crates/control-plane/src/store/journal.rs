//! The store of a coordinator that is alone: a file on its own disk, to which each decision is appended
//! before it counts.
//!
//! A record that a crash cut short is dropped, since no node knows of it. A record that is damaged
//! in the midst of others is not passed over: an older state would come back to life.

mod actor;
mod contents;
mod directory;
mod frames;

use std::io;
use std::path::PathBuf;

use prost::Message as _;
use telltale_wire::cluster_state::message::{JournalRecord, journal_record::Content};

use super::decode::{StateError, StoredDecision};
use super::encode;
use super::kept::{DecisionRecord, IncidentRecord};
use telltale_cluster::epoch::{Revision, Term};
use telltale_cluster::stored::{Decision, StoreOutcome, StoredState};

pub(super) use actor::run;
use contents::Contents;
pub use contents::read;
use directory::{JournalPath, Medium};

/// Bytes from which on a journal is rewritten, without what has been overtaken.
const LEAST_COMPACTED_BYTES: usize = 1 << 20;
/// It is rewritten only when it is this many times as long as it then was.
const GROWTH: usize = 4;
/// Bytes of the longest journal that is read.
const MAX_JOURNAL_BYTES: u64 = 1 << 30;

/// Where a journal is.
#[derive(Debug, Clone)]
pub struct JournalSettings {
    /// The directory, on a disk of this machine; it is made if it is not there. One job, one directory.
    pub directory: PathBuf,
}

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another coordinator has it.
    #[error(
        "{} belongs to another coordinator that runs; this one waits until that has ended",
        directory.display()
    )]
    Taken {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory cannot be made or opened.
    #[error(
        "cannot open {} to keep decisions in; it must be a directory that this user may write",
        directory.display()
    )]
    Open {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read the journal {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is no journal.
    #[error("{} is no journal of a coordinator; move it away, or name another directory", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer program wrote the file.
    #[error(
        "the journal {} has version {version}, and this program knows {}; run the newer program",
        path.display(), frames::VERSION
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u8,
    },
    /// A record in the midst of the file is damaged.
    #[error(
        "the journal {} is damaged at byte {offset}, and whole records follow: restore it from a \
         copy, or stop the job, move the file away, and start over",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
    },
    /// A record is whole, and makes no sense.
    #[error("the journal {} has a record at byte {offset} that cannot be used", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// Why.
        #[source]
        source: StateError,
    },
    /// The path does not lead to what this coordinator wrote.
    #[error("{} is not the journal that this coordinator writes: {displaced}", path.display())]
    Displaced {
        /// The file.
        path: PathBuf,
        /// What is there.
        displaced: Displaced,
    },
    /// Something cannot be written.
    #[error("cannot write the journal {}; make room on its disk, or mend it", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What is in the way of a journal, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Displaced {
    /// The file has another inode.
    #[error("another file has its name; move that away, and the journal is written there again")]
    File,
    /// The directory has another inode.
    #[error(
        "another directory has the name of its directory; put the right one back, or move the other \
         away, and the journal is written there again"
    )]
    Directory,
    /// The directory is gone, and the one above it is gone or on another file system.
    #[error(
        "its directory is gone with the file system that it was on; put that back before this \
         coordinator ends"
    )]
    FileSystem,
}

/// A journal that this coordinator has alone.
#[derive(Debug)]
struct Journal<M> {
    medium: M,
    /// Bytes of the file, all of them whole records.
    length: usize,
    /// Bytes that it had when it was last rewritten.
    compacted: usize,
    /// Whether the file may have other bytes than those `length` bytes; it is then rewritten
    /// before anything is added.
    unsure: bool,
    contents: Contents,
}

// === impl Journal ===

impl<M: Medium> Journal<M> {
    /// Reads a journal and begins a term in it, larger than every one before.
    fn open(mut medium: M) -> Result<Self, JournalError> {
        let path = medium.path();
        let read = |source| JournalError::Read { path: path.clone(), source };
        let bytes = medium.read(MAX_JOURNAL_BYTES).map_err(read)?;
        let mut contents = Contents::empty();
        if !bytes.is_empty() {
            contents.replay(&bytes, &path)?;
        }
        let mut journal = Self { medium, length: 0, compacted: 0, unsure: true, contents };
        journal.begin_term()?;
        Ok(journal)
    }

    /// Begins another term, as if the journal was reopened.
    fn begin_term(&mut self) -> Result<(), JournalError> {
        let term = self.contents.term.number() + 1;
        let opened = record(Content::Opened(term));
        self.write(&opened).map_err(|failure| failure.error)?;
        self.contents.term = Term::new(term);
        Ok(())
    }

    /// Stores a decision; with the error, if there was one.
    fn store(&mut self, decision: &Decision) -> (StoreOutcome, Option<JournalError>) {
        if let Some(last) = &self.contents.last
            && (last.record.term, last.record.number) == (decision.term, decision.number)
        {
            return (StoreOutcome::Stored(self.revision()), None);
        }
        if decision.term != self.contents.term || decision.expected != self.revision() {
            return (StoreOutcome::Conflict, None);
        }
        let count = self.revision().number() + 1;
        let payload = record(Content::Decision(encode::decision(decision, count)));
        if let Err(failure) = self.write(&payload) {
            let outcome =
                if failure.certain { StoreOutcome::Failed } else { StoreOutcome::Unknown };
            return (outcome, Some(failure.error));
        }
        let record = DecisionRecord::of(decision, count);
        self.contents.adopt(StoredDecision { record, state: decision.state.clone() }, payload);
        (StoreOutcome::Stored(self.revision()), None)
    }

    /// Keeps an incident.
    fn keep(&mut self, incident: IncidentRecord) -> Result<(), JournalError> {
        let payload = record(Content::Incident(encode::incident(&incident)));
        self.write(&payload).map_err(|failure| failure.error)?;
        self.contents.kept.keep(incident);
        Ok(())
    }

    /// The state and its revision: how many decisions were ever stored.
    fn stored(&self) -> Option<(StoredState, Revision)> {
        self.contents.last.as_ref().map(|last| (last.state.clone(), self.revision()))
    }

    fn revision(&self) -> Revision {
        self.contents.last.as_ref().map_or(Revision::EMPTY, |last| Revision::new(last.record.count))
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::Write { path: self.medium.path(), source }
    }

    /// Makes sure that what is added is found again at the journal's path.
    fn look_for_it(&mut self) -> Result<(), JournalError> {
        let path = self.medium.path();
        match self.medium.place().map_err(|source| self.failed(source))? {
            JournalPath::Kept => Ok(()),
            // Whatever removed it, the whole of it is known here.
            JournalPath::Empty => {
                self.unsure = true;
                Ok(())
            }
            JournalPath::Other(displaced) => Err(JournalError::Displaced { path, displaced }),
            JournalPath::Taken => {
                let directory = path.parent().map(PathBuf::from).unwrap_or_default();
                Err(JournalError::Taken { directory })
            }
        }
    }

    /// Adds a record. When this fails, the file is as it was, or is put in order before the next.
    fn write(&mut self, payload: &[u8]) -> Result<(), WriteFailure> {
        self.look_for_it().map_err(|error| WriteFailure { error, certain: true })?;
        if self.unsure || self.length >= self.compacted.max(LEAST_COMPACTED_BYTES / GROWTH) * GROWTH
        {
            let rewritten = self.rewrite();
            // A journal that is merely long can go on being so.
            if let (true, Err(cause)) = (self.unsure, rewritten) {
                return Err(WriteFailure { error: self.failed(cause), certain: true });
            }
        }
        let frame = frames::frame(payload);
        if let Err(cause) = self.medium.append(&frame) {
            let cut = self.medium.cut(self.length);
            self.unsure = cut.is_err();
            return Err(WriteFailure { error: self.failed(cause), certain: cut.is_ok() });
        }
        if let Err(cause) = self.medium.sync() {
            // What a failed sync has left on the disk is unknown (fsync(2)).
            self.unsure = true;
            return Err(WriteFailure { error: self.failed(cause), certain: false });
        }
        self.length += frame.len();
        Ok(())
    }

    /// Rewrites the file, with what still matters, in one step.
    fn rewrite(&mut self) -> io::Result<()> {
        let mut bytes = frames::HEAD.to_vec();
        bytes.extend(frames::frame(&record(Content::Opened(self.contents.term.number()))));
        for logged in self.contents.kept.decisions() {
            bytes.extend(frames::frame(&record(Content::Logged(encode::logged(logged)))));
        }
        for (id, content) in self.contents.kept.incidents() {
            let incident = encode::incident(&IncidentRecord { id, content: content.to_vec() });
            bytes.extend(frames::frame(&record(Content::Incident(incident))));
        }
        if self.contents.last.is_some() {
            bytes.extend(frames::frame(&self.contents.last_bytes));
        }
        self.medium.replace(&bytes)?;
        self.length = bytes.len();
        self.compacted = bytes.len();
        self.unsure = false;
        Ok(())
    }
}

/// Why a record was not written.
#[derive(Debug)]
struct WriteFailure {
    error: JournalError,
    /// Whether it is certainly not in the file, now and after a crash.
    certain: bool,
}

fn record(content: Content) -> Vec<u8> {
    JournalRecord { content: Some(content) }.encode_to_vec()
}

#[cfg(test)]
mod tests;
