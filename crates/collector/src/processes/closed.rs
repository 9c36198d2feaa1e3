//! Processes of other users whose files may not be opened: how many they are.
//!
//! On a machine with several users that is as it should be, and so it is no error of a source. The
//! numbers come from names and owners alone, so that they are a hint and no more.

use std::collections::BTreeMap;

use telltale_ledger::directory::{DirectoryEntry, EntryKind};

use super::identity::Checks;

/// Counts them, each once, by its ledger and its endpoint.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    /// Ledgers and endpoints, by directory, user and pid: in several containers one pid is several
    /// processes.
    files: BTreeMap<(u32, u32, u32), (u64, u64)>,
}

impl Closed {
    /// Counts an entry of user `owner` that may not be opened, unless its process has certainly
    /// ended. Returns whether that is as it should be: not for our own entries, nor for root.
    pub(crate) fn take(
        &mut self,
        number: u32,
        entry: &DirectoryEntry,
        owner: u32,
        checks: &Checks<'_>,
    ) -> bool {
        let own = rustix::process::geteuid();
        if own.is_root() || owner == own.as_raw() {
            return false;
        }
        let start = match entry.kind {
            EntryKind::Ledger { start_time_ticks } => Some(start_time_ticks),
            EntryKind::Endpoint => None,
            // Its process has a ledger or an endpoint's name besides.
            EntryKind::Temporary { .. } => return true,
        };
        if checks.may_live(entry.pid, start, owner) {
            let (ledgers, endpoints) = self.files.entry((number, owner, entry.pid)).or_default();
            *(if start.is_some() { ledgers } else { endpoints }) += 1;
        }
        true
    }

    /// How many processes these are.
    pub(crate) fn count(&self) -> u64 {
        self.files.values().map(|(ledgers, endpoints)| *ledgers.max(endpoints)).sum()
    }
}
