//! Whose files are evidence: by the same rule as posts, those of the agent's own user, of root and of the
//! users that workers run as. Only where no other user can have written or exchanged them.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracing::warn;

use crate::intake::senders::Senders;
use telltale_cluster::intake::Sender;

/// The owner's group may write.
const GROUP_WRITE: u32 = 0o020;
/// Others than the owner and its group may write.
const OTHERS_WRITE: u32 = 0o002;
/// In this directory no user can replace another's file.
const STICKY: u32 = 0o1000;
/// Directories that are logged.
const MAX_LOGGED: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Owners {
    senders: Senders,
    logged: BTreeSet<PathBuf>,
    /// Owners of files that were logged since their group may write.
    logged_groups: BTreeSet<u32>,
}

impl Owners {
    pub(super) fn new() -> Self {
        const WHAT: &str = "files";
        const REMEDY: &str = "where one should write some, run a worker as that user";
        Self {
            senders: Senders::new(WHAT, REMEDY),
            logged: BTreeSet::new(),
            logged_groups: BTreeSet::new(),
        }
    }

    /// Whether anything in this directory can be evidence.
    pub(super) fn directory(&mut self, path: &Path) -> Sender {
        let Ok(status) = std::fs::metadata(path) else { return Sender::Unverified };
        let is_kept = !may_others_write(&status) || status.mode() & STICKY != 0;
        if is_kept && self.senders.has(status.uid()) {
            return Sender::Verified;
        }
        // Between two epochs its owner may have no process.
        let is_news = !is_kept || !self.senders.had(status.uid());
        if is_news && self.logged.len() < MAX_LOGGED && self.logged.insert(path.to_owned()) {
            warn!(
                "files in {} are shown as unverified: users without a worker can exchange files \
                    there; chown it to the workers' user, and set the sticky bit (chmod +t) if \
                    others or its group may write",
                path.display()
            );
        }
        Sender::Unverified
    }

    /// Whether a file with this status is evidence, in a directory where anything can be or nothing.
    pub(super) fn file(&mut self, path: &Path, directory: Sender, status: &Metadata) -> Sender {
        let owner = status.uid();
        // A link's own mode says nothing.
        if !status.is_file() || !self.senders.has(owner) {
            return Sender::Unverified;
        }
        if !may_others_write(status) {
            return directory;
        }
        if self.logged_groups.len() < MAX_LOGGED && self.logged_groups.insert(owner) {
            warn!(
                "{} is shown as unverified, as other files that others than their owner {owner} \
                    may write: all users, or group {}; run workers with `umask 022`",
                path.display(),
                status.gid()
            );
        }
        Sender::Unverified
    }
}

/// Whether a user other than the owner and root may write. A group with the owner's number is taken for the owner's
/// own, as is made for each user where the usual umask is 002; in group 0 are root's.
fn may_others_write(status: &Metadata) -> bool {
    let is_own_group = status.gid() == status.uid() || status.gid() == 0;
    status.mode() & OTHERS_WRITE != 0 || (status.mode() & GROUP_WRITE != 0 && !is_own_group)
}
