//! The store of a coordinator that is alone: a file on its own disk, to which each decision is appended
//! before it counts.
//!
//! A record that a crash cut short is dropped, since no node knows of it. A record that is damaged
//! in the midst of others is not passed over: an older state would come back to life.

mod actor;
mod directory;
mod frames;

use std::io;
use std::path::PathBuf;

use prost::Message as _;
use telltale_wire::cluster_state::message::{JournalRecord, journal_record::Content};

use super::decode::{self, StateError, StoredDecision};
use super::encode;
use super::kept::{DecisionRecord, IncidentRecord, SideState};
use telltale_cluster::epoch::{Revision, Term};
use telltale_cluster::stored::{Decision, StoreOutcome, StoredState};

pub(super) use actor::run;
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
    #[error("{} is no journal of a coordinator; move it away", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
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
    term: Term,
    last: Option<StoredDecision>,
    last_bytes: Vec<u8>,
    kept: SideState,
}

// === impl Journal ===

impl<M: Medium> Journal<M> {
    /// Reads a journal and begins a term in it, larger than every one before.
    fn open(mut medium: M) -> Result<Self, JournalError> {
        let path = medium.path();
        let read = |source| JournalError::Read { path: path.clone(), source };
        let bytes = medium.read(MAX_JOURNAL_BYTES).map_err(read)?;
        let mut journal = Self {
            medium,
            length: 0,
            compacted: 0,
            unsure: true,
            term: Term::new(0),
            last: None,
            last_bytes: Vec::new(),
            kept: SideState::default(),
        };
        if !bytes.is_empty() {
            journal.replay(&bytes)?;
        }
        journal.begin_term()?;
        Ok(journal)
    }

    /// Begins another term, as if the journal was reopened.
    fn begin_term(&mut self) -> Result<(), JournalError> {
        let term = self.term.number() + 1;
        let opened = record(Content::Opened(term));
        self.write(&opened).map_err(|failure| failure.error)?;
        self.term = Term::new(term);
        Ok(())
    }

    fn replay(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let path = self.medium.path();
        let frames = frames::scan(bytes).map_err(|damage| match damage {
            frames::Damage::Foreign => JournalError::Foreign { path: path.clone() },
            frames::Damage::At(offset) => JournalError::Damaged { path: path.clone(), offset },
        })?;
        for (offset, payload) in frames {
            let unusable = |source| JournalError::Record { path: path.clone(), offset, source };
            let content = JournalRecord::decode(payload)
                .map_err(StateError::Malformed)
                .map(|record| record.content)
                .map_err(unusable)?;
            self.take(content, payload).map_err(unusable)?;
        }
        Ok(())
    }

    fn take(&mut self, content: Option<Content>, payload: &[u8]) -> Result<(), StateError> {
        match content.ok_or(StateError::Missing { field: "the content" })? {
            Content::Opened(term) => self.term = self.term.max(Term::new(term)),
            Content::Decision(message) => {
                let decision = decode::decision(message)?;
                self.adopt(decision, payload.to_vec());
            }
            Content::Logged(message) => self.kept.log(decode::logged(message)?),
            Content::Incident(message) => {
                self.kept.keep(decode::incident(message)?);
            }
        }
        Ok(())
    }

    fn adopt(&mut self, decision: StoredDecision, payload: Vec<u8>) {
        self.term = self.term.max(decision.record.term);
        if let Some(previous) = self.last.replace(decision) {
            self.kept.log(previous.record);
        }
        self.last_bytes = payload;
    }

    /// Stores a decision; with the error, if there was one.
    fn store(&mut self, decision: &Decision) -> (StoreOutcome, Option<JournalError>) {
        if let Some(last) = &self.last
            && (last.record.term, last.record.number) == (decision.term, decision.number)
        {
            return (StoreOutcome::Stored(self.revision()), None);
        }
        if decision.term != self.term || decision.expected != self.revision() {
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
        self.adopt(StoredDecision { record, state: decision.state.clone() }, payload);
        (StoreOutcome::Stored(self.revision()), None)
    }

    /// Keeps an incident.
    fn keep(&mut self, incident: IncidentRecord) -> Result<(), JournalError> {
        let payload = record(Content::Incident(encode::incident(&incident)));
        self.write(&payload).map_err(|failure| failure.error)?;
        self.kept.keep(incident);
        Ok(())
    }

    /// The state and its revision: how many decisions were ever stored.
    fn stored(&self) -> Option<(StoredState, Revision)> {
        self.last.as_ref().map(|last| (last.state.clone(), self.revision()))
    }

    fn revision(&self) -> Revision {
        self.last.as_ref().map_or(Revision::EMPTY, |last| Revision::new(last.record.count))
    }

    /// Everything that is kept, with the decision that holds.
    fn kept(&self) -> SideState {
        let mut kept = self.kept.clone();
        if let Some(last) = &self.last {
            kept.log(last.record.clone());
        }
        kept
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
        bytes.extend(frames::frame(&record(Content::Opened(self.term.number()))));
        for logged in self.kept.decisions() {
            bytes.extend(frames::frame(&record(Content::Logged(encode::logged(logged)))));
        }
        for (id, content) in self.kept.incidents() {
            let incident = encode::incident(&IncidentRecord { id, content: content.to_vec() });
            bytes.extend(frames::frame(&record(Content::Incident(incident))));
        }
        if self.last.is_some() {
            bytes.extend(frames::frame(&self.last_bytes));
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
