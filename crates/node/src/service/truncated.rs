//! Runtime directories with more names than are checked: said when that begins, and when it is over.

use std::collections::BTreeSet;
use std::path::PathBuf;
use tracing::{info, warn};

use telltale_ledger::directory::MOST_ENTRIES_LISTED;

/// Those that have been reported.
#[derive(Debug, Default)]
pub(super) struct Truncated(BTreeSet<PathBuf>);

// === impl Truncated ===

impl Truncated {
    /// Takes note of those there are now, and logs what has changed.
    pub(super) fn tell(&mut self, now: &[PathBuf]) {
        if now.is_empty() && self.0.is_empty() {
            return;
        }
        let now: BTreeSet<PathBuf> = now.iter().cloned().collect();
        for path in now.difference(&self.0) {
            warn!(
                "{} has more than the {MOST_ENTRIES_LISTED} names that are looked at, so that processes \
                 may be missing; remove what no process needs",
                path.display()
            );
        }
        for path in self.0.difference(&now) {
            info!("{} has no more names than are looked at", path.display());
        }
        self.0 = now;
    }
}
