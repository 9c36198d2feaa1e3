//! Removing what dead processes left: `smi --clean`.
//!
//! Only ledgers and endpoints of the runtime directory are removed, only those that belong to us
//! (root may remove anyone's), and only when their process has ended for certain. What a foreign
//! region still has of dead processes is said and left: others write that file.

use crate::collector::{CollectOptions, Collector};
use crate::tree::OpenTreeError;

/// What was cleaned and what was not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanReport {
    /// What was removed.
    pub removed: Vec<Cleaned>,
    /// What a dead process left, or may have left, and is still there.
    pub left: Vec<Cleaned>,
    /// How many of those left were to be removed or looked at, and could not be.
    pub failed: usize,
    /// Files of processes that live.
    pub alive: usize,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// Its path.
    pub path: String,
    /// Why it was removed or left.
    pub why: String,
}

/// Cleans up once.
///
/// # Errors
/// When the root cannot be opened.
pub fn clean(options: CollectOptions) -> Result<CleanReport, OpenTreeError> {
    Ok(Collector::new(options)?.clean())
}
