//! Removing what dead processes left: `smi --clean`.
//!
//! Only ledgers and endpoints of the runtime directory are removed, only those that belong to us
//! (root may remove anyone's), and only when their process has ended for certain.
//!
//! tt-metal's regions are the one thing of others that is written, and only here, by order of a
//! user: the rows of processes that have ended for certain are taken out, under the lock and the
//! rules of a process that attaches. The file stays. A ledger stays, too, while its process is in a
//! region: nothing else tells that those bytes are a dead process's.

/// What was cleaned and what was not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanReport {
    /// What was removed.
    pub removed: Vec<Cleaned>,
    /// Regions of tt-metal that dead processes were taken out of.
    pub mended: Vec<Cleaned>,
    /// What a dead process left, or may have left, and is still there.
    pub left: Vec<Cleaned>,
    /// How many of those left were to be removed or checked, and could not be.
    pub failed: usize,
    /// Files of processes that live.
    pub alive: usize,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// Its path.
    pub path: String,
    /// Why it was removed or left, or what was done to it.
    pub why: String,
}
