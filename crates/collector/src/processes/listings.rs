//! What runtime directories have in them: read again only from a directory that has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use rustix::fs::fstat;
use rustix::time::{ClockId, clock_gettime};
use telltale_ledger::directory::{Listing, RuntimeDirectory};

/// A directory whose last change is younger may change again without showing it: file systems
/// stamp by the kernel's tick, and some by the second.
const SETTLED_SECONDS: i64 = 2;

/// A runtime directory of one round.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The directory's number.
    pub(crate) number: u32,
    pub(crate) directory: Arc<RuntimeDirectory>,
    /// The same one as long as no name comes, goes, or becomes another file's. The files themselves
    /// may change meanwhile.
    pub(crate) listing: Arc<Listing>,
}

/// The last listings, by the directories' numbers.
#[derive(Debug, Default)]
pub(crate) struct Listings(BTreeMap<u32, CachedListing>);

#[derive(Debug)]
struct CachedListing {
    listing: Arc<Listing>,
    /// When the directory had changed last, in seconds and nanoseconds since the epoch; none where
    /// that tells nothing yet.
    changed: Option<(i64, u64)>,
}

// === impl Listings ===

impl Listings {
    /// What is in the directory with this number.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub(crate) fn of(
        &mut self,
        number: u32,
        directory: Arc<RuntimeDirectory>,
    ) -> io::Result<Listed> {
        // Before it is read: a change in between makes the next round read it again.
        let changed = settled_change(&directory);
        let known = self.0.get(&number).filter(|kept| changed.is_some() && kept.changed == changed);
        if let Some(CachedListing { listing, .. }) = known {
            let listing = Arc::clone(listing);
            return Ok(Listed { number, directory, listing });
        }
        let listing = Arc::new(directory.list()?);
        let kept = CachedListing { listing: Arc::clone(&listing), changed };
        self.0.insert(number, kept);
        Ok(Listed { number, directory, listing })
    }

    /// Lets go of all directories but these.
    pub(crate) fn keep(&mut self, numbers: &BTreeSet<u32>) {
        self.0.retain(|number, _| numbers.contains(number));
    }
}

/// When a name in the directory was last made, removed or given to another file, if that is long
/// enough ago to distinguish it from every later change.
fn settled_change(directory: &RuntimeDirectory) -> Option<(i64, u64)> {
    let stat = fstat(directory).ok()?;
    // The clock that stamps files, whatever clock the service goes by.
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let age_seconds = now.tv_sec.checked_sub(stat.st_mtime)?;
    (age_seconds > SETTLED_SECONDS).then_some((stat.st_mtime, stat.st_mtime_nsec))
}

#[cfg(test)]
mod tests {
    use super::{Listings, SETTLED_SECONDS};
    use rustix::fs::{Timespec, Timestamps, futimens};
    use rustix::time::{ClockId, clock_gettime};
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use telltale_harness::Scratch;
    use telltale_ledger::directory::{Purpose, RuntimeDirectory};

    /// Lets the directory's last change be so long ago.
    fn age(directory: &RuntimeDirectory, seconds: i64) {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let then = Timespec { tv_sec: now.tv_sec - seconds, tv_nsec: 0 };
        let times = Timestamps { last_access: then, last_modification: then };
        futimens(directory.as_fd(), &times).unwrap();
    }

    #[test]
    fn a_directory_is_read_again_when_it_has_changed_or_may_have() {
        let scratch = Scratch::new();
        let path = scratch.join("tt");
        std::fs::create_dir(&path).unwrap();
        let directory = Arc::new(RuntimeDirectory::open(&path, Purpose::Writing).unwrap());
        let mut listings = Listings::default();
        let mut list = || listings.of(1, Arc::clone(&directory)).unwrap().listing;

        age(&directory, SETTLED_SECONDS + 10);
        let empty = list();
        assert!(Arc::ptr_eq(&empty, &list()));

        std::fs::write(path.join("metrics_7.sock"), "").unwrap();
        let young = list();
        assert_eq!(young.endpoints.len(), 1);
        // What was changed a moment ago may change again at what is the same time to the kernel.
        std::fs::remove_file(path.join("metrics_7.sock")).unwrap();
        age(&directory, 0);
        assert!(list().endpoints.is_empty());
        assert!(!Arc::ptr_eq(&list(), &list()));

        age(&directory, SETTLED_SECONDS + 5);
        let settled = list();
        assert!(!Arc::ptr_eq(&empty, &settled));
        assert!(Arc::ptr_eq(&settled, &list()));
    }
}
