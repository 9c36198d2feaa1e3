//! Whose files are evidence: by the same rule as posts, those of the agent's own user, of root and of the
//! users that workers run as. Only where nobody else can have written or exchanged them.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use telltale_server::log;

use crate::intake::Sender;
use crate::intake::senders::Senders;

/// Others than the owner and its group may write.
const OTHERS_WRITE: u32 = 0o002;
/// In this directory nobody exchanges another user's file.
const STICKY: u32 = 0o1000;
/// Directories that are logged.
const MAX_LOGGED: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Owners {
    senders: Senders,
    logged: BTreeSet<PathBuf>,
}

impl Owners {
    pub(super) fn new() -> Self {
        const WHAT: &str = "files";
        const REMEDY: &str = "where one should write some, run a worker as that user";
        Self { senders: Senders::new(WHAT, REMEDY), logged: BTreeSet::new() }
    }

    /// Whether anything in this directory can be evidence.
    pub(super) fn directory(&mut self, path: &Path) -> Sender {
        let Ok(status) = std::fs::metadata(path) else { return Sender::Unverified };
        let is_kept = status.mode() & OTHERS_WRITE == 0 || status.mode() & STICKY != 0;
        if is_kept && self.senders.has(status.uid()) {
            return Sender::Verified;
        }
        if self.logged.len() < MAX_LOGGED && self.logged.insert(path.to_owned()) {
            log::warn(&format!(
                "files in {} are shown and decide nothing: users who run no worker can exchange files \
                 there; give it to the workers' user, and set its sticky bit (chmod +t) if all may write",
                path.display()
            ));
        }
        Sender::Unverified
    }

    /// Whether a file with this status is evidence, in a directory where anything can be or nothing.
    pub(super) fn file(&self, directory: Sender, status: &Metadata) -> Sender {
        match status.mode() & OTHERS_WRITE == 0 && self.senders.has(status.uid()) {
            true => directory,
            false => Sender::Unverified,
        }
    }
}
