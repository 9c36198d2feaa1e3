//! What the records of a journal add up to, for its coordinator and for those who look back.

use std::fs::OpenOptions;
use std::path::Path;

use prost::Message as _;
use rustix::fs::OFlags;
use telltale_cluster::epoch::Term;
use telltale_wire::cluster_state::message::{JournalRecord, journal_record::Content};

use super::super::decode::{self, StateError, StoredDecision};
use super::super::kept::SideState;
use super::{JournalError, MAX_JOURNAL_BYTES, directory, frames};

/// What a journal's records add up to.
#[derive(Debug)]
pub(super) struct Contents {
    /// The newest term.
    pub(super) term: Term,
    /// The decision that holds.
    pub(super) last: Option<StoredDecision>,
    /// Its record, as it is in the file.
    pub(super) last_bytes: Vec<u8>,
    /// What is kept beside it.
    pub(super) kept: SideState,
}

/// What the journal at `path` keeps beside the state: `path` is its directory or its file.
///
/// Nothing is locked or written, so a coordinator may go on writing meanwhile; a record that is half written
/// is left out.
///
/// # Errors
///
/// If the file cannot be read, is no journal, or is damaged.
pub fn read(path: &Path) -> Result<SideState, JournalError> {
    let path = if path.is_dir() { path.join(directory::FILE_NAME) } else { path.to_path_buf() };
    let file = directory::opened(OFlags::empty(), &path, OpenOptions::new().read(true));
    let bytes = file
        .and_then(|file| directory::read_all(&file, MAX_JOURNAL_BYTES))
        .map_err(|source| JournalError::Read { path: path.clone(), source })?;
    let mut contents = Contents::empty();
    contents.replay(&bytes, &path)?;
    Ok(contents.kept())
}

// === impl Contents ===

impl Contents {
    /// Those of a journal that was never written.
    pub(super) fn empty() -> Self {
        let (last, last_bytes) = (None, Vec::new());
        Self { term: Term::new(0), last, last_bytes, kept: SideState::default() }
    }

    /// Adds all records of `bytes`; `path` is what errors name.
    pub(super) fn replay(&mut self, bytes: &[u8], path: &Path) -> Result<(), JournalError> {
        let path = || path.to_path_buf();
        let frames = frames::scan(bytes).map_err(|damage| match damage {
            frames::Damage::Foreign => JournalError::Foreign { path: path() },
            frames::Damage::Newer(version) => JournalError::Newer { path: path(), version },
            frames::Damage::At(offset) => JournalError::Damaged { path: path(), offset },
        })?;
        for (offset, payload) in frames {
            let unusable = |source| JournalError::Record { path: path(), offset, source };
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

    /// Takes a decision as the one that holds.
    pub(super) fn adopt(&mut self, decision: StoredDecision, payload: Vec<u8>) {
        self.term = self.term.max(decision.record.term);
        if let Some(previous) = self.last.replace(decision) {
            self.kept.log(previous.record);
        }
        self.last_bytes = payload;
    }

    /// Everything that is kept, with the decision that holds.
    pub(super) fn kept(&self) -> SideState {
        let mut kept = self.kept.clone();
        if let Some(last) = &self.last {
            kept.log(last.record.clone());
        }
        kept
    }
}
