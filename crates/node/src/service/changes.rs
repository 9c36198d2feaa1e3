//! Notices entries that come and go in runtime directories, and runtime directories themselves.
//!
//! What is noticed only says that it is time to look: nothing of an event is believed. So an event
//! that is lost, or a directory that cannot be watched, costs the time to the next collection.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{FileType, fstat, stat};
use telltale_ledger::directory::{EntryKind, RuntimeDirectory, parse_name};

/// Directories that are watched; more are checked at each collection alone.
pub(crate) const MAX_WATCHED: usize = 512;

/// Bytes of events that are read at once. Each has at most 16 and a name of 256.
const BUFFER_BYTES: usize = 8 * 1024;

/// Buffers that one check takes; the rest comes with the next.
const MAX_BUFFERS: usize = 64;

/// What has changed since the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Change {
    /// Something that a collection would see.
    pub(crate) relevant: bool,
    /// The kernel's queue was full and it dropped events.
    pub(crate) overflown: bool,
}

/// Device and inode.
type Identity = (u64, u64);

/// Watches directories.
#[derive(Debug)]
pub(crate) struct Changes {
    inotify: OwnedFd,
    watched: BTreeMap<i32, Watched>,
}

/// One directory and what about it matters.
#[derive(Debug)]
struct Watched {
    identity: Identity,
    /// It is a runtime directory: ledgers and endpoints matter.
    entries: bool,
    /// Names of runtime directories that may appear in it.
    names: Vec<OsString>,
}

// === impl Changes ===

impl Changes {
    pub(crate) fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { inotify, watched: BTreeMap::new() })
    }

    /// Watches these runtime directories, and the parents of those `places` where none is yet;
    /// nothing else any more. Returns how many could not be watched.
    pub(crate) fn follow(
        &mut self,
        directories: &[Arc<RuntimeDirectory>],
        places: &[PathBuf],
    ) -> usize {
        let mut meant: BTreeMap<Identity, Meant> = BTreeMap::new();
        let mut too_many = 0;
        for directory in directories {
            let Ok(stat) = fstat(directory) else { continue };
            // By descriptor: the path may have been given to another directory.
            let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd()));
            let one = Meant { path, entries: true, names: Vec::new() };
            let room = meant.len() < MAX_WATCHED;
            if room {
                meant.insert((stat.st_dev, stat.st_ino), one);
            } else {
                too_many += 1;
            }
        }
        for place in places {
            let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else { continue };
            let Some(identity) = directory_identity(parent).filter(|_| !place.exists()) else {
                continue;
            };
            let fresh = || Meant { path: parent.to_owned(), entries: false, names: Vec::new() };
            meant.entry(identity).or_insert_with(fresh).names.push(name.to_owned());
        }
        self.watched.retain(|number, one| {
            let keep = meant.contains_key(&one.identity);
            if !keep {
                // It fails when the directory has gone, and the watch with it.
                let _ = inotify::remove_watch(&self.inotify, *number);
            }
            keep
        });
        too_many + meant.into_iter().map(|(identity, one)| self.add(identity, one)).sum::<usize>()
    }

    /// Watches one directory, or changes what matters about it; 1 when it cannot be watched.
    fn add(&mut self, identity: Identity, meant: Meant) -> usize {
        let Meant { path, entries, names } = meant;
        if let Some(known) = self.watched.values_mut().find(|one| one.identity == identity) {
            (known.entries, known.names) = (entries, names);
            return 0;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        match inotify::add_watch(&self.inotify, &path, flags) {
            Ok(number) => {
                self.watched.insert(number, Watched { identity, entries, names });
                0
            }
            Err(_) => 1,
        }
    }

    /// Takes the events since the last call.
    pub(crate) fn take(&mut self) -> Change {
        let mut change = Change::default();
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut buffers = 0;
        while buffers < MAX_BUFFERS || !reader.is_buffer_empty() {
            buffers += usize::from(reader.is_buffer_empty());
            // An error means that there is none left.
            let Ok(event) = reader.next() else { break };
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                change = Change { relevant: true, overflown: true };
                continue;
            }
            let Some(watched) = self.watched.get(&event.wd()) else { continue };
            let itself = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
            change.relevant |= flags.intersects(itself)
                || event.file_name().is_some_and(|name| watched.minds(name.to_bytes()));
            if flags.contains(ReadFlags::IGNORED) {
                let number = event.wd();
                self.watched.remove(&number);
                change.relevant = true;
            }
        }
        change
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// A directory to watch.
struct Meant {
    path: PathBuf,
    entries: bool,
    names: Vec<OsString>,
}

// === impl Watched ===

impl Watched {
    /// Whether an entry of this name matters.
    fn minds(&self, name: &[u8]) -> bool {
        let is_ours = || {
            let entry = std::str::from_utf8(name).ok().and_then(parse_name);
            entry.is_some_and(|entry| !matches!(entry.kind, EntryKind::Temporary { .. }))
        };
        (self.entries && is_ours()) || self.names.iter().any(|one| one == OsStr::from_bytes(name))
    }
}

fn directory_identity(path: &Path) -> Option<Identity> {
    let found = stat(path).ok()?;
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    is_directory.then_some((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::{Change, Changes};
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use telltale_harness::Scratch;
    use telltale_ledger::directory::{Purpose, RuntimeDirectory};

    const RELEVANT: Change = Change { relevant: true, overflown: false };
    const NOTHING: Change = Change { relevant: false, overflown: false };

    fn open(path: &Path) -> Arc<RuntimeDirectory> {
        Arc::new(RuntimeDirectory::open(path, Purpose::Reading).unwrap())
    }

    #[test]
    fn ledgers_and_endpoints_that_come_and_go_are_noticed_and_other_files_are_not() {
        let place = Scratch::new();
        let mut changes = Changes::new().unwrap();
        assert_eq!(changes.follow(&[open(place.path())], &[]), 0);
        assert_eq!(changes.take(), NOTHING);
        fs::write(place.join("telemetry.sock"), "").unwrap();
        fs::write(place.join("notes"), "").unwrap();
        assert_eq!(changes.take(), NOTHING);
        let socket = place.join("metrics_7.sock");
        fs::rename(place.join("notes"), &socket).unwrap();
        assert_eq!((changes.take(), changes.take()), (RELEVANT, NOTHING));
        // To follow it once more loses nothing.
        assert_eq!(changes.follow(&[open(place.path())], &[]), 0);
        fs::remove_file(&socket).unwrap();
        assert_eq!((changes.take(), changes.take()), (RELEVANT, NOTHING));
    }

    #[test]
    fn a_directory_that_is_made_later_is_noticed_and_then_watched() {
        let place = Scratch::new();
        let path = place.join("run");
        let places = [path.clone()];
        let mut changes = Changes::new().unwrap();
        assert_eq!(changes.follow(&[], &places), 0);
        fs::write(place.join("other"), "").unwrap();
        assert_eq!(changes.take(), NOTHING);
        fs::create_dir(&path).unwrap();
        assert_eq!(changes.take(), RELEVANT);
        assert_eq!(changes.follow(&[open(&path)], &places), 0);
        fs::write(path.join("metrics_7.sock"), "").unwrap();
        assert_eq!(changes.take(), RELEVANT);
        fs::remove_dir_all(&path).unwrap();
        assert_eq!(changes.take(), RELEVANT);
        assert_eq!(changes.follow(&[], &places), 0);
        fs::create_dir(&path).unwrap();
        assert_eq!(changes.take(), RELEVANT);
    }

    #[test]
    fn a_directory_that_is_not_followed_any_more_is_not_watched() {
        let place = Scratch::new();
        let mut changes = Changes::new().unwrap();
        changes.follow(&[open(place.path())], &[]);
        changes.follow(&[], &[]);
        fs::write(place.join("metrics_7.sock"), "").unwrap();
        // The end of the watch is an event that is ignored.
        assert_eq!(changes.take(), NOTHING);
    }

    #[test]
    fn no_queue_is_long_enough_and_that_is_reported() {
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: u32 = limit.trim().parse().unwrap();
        let place = Scratch::new();
        let mut changes = Changes::new().unwrap();
        changes.follow(&[open(place.path())], &[]);
        // Two names in turn: the kernel joins equal events that follow each other.
        for _ in 0..=limit / 4 {
            for name in ["metrics_7.sock", "metrics_8.sock"] {
                fs::write(place.join(name), "").unwrap();
            }
            for name in ["metrics_7.sock", "metrics_8.sock"] {
                fs::remove_file(place.join(name)).unwrap();
            }
        }
        let mut overflown = false;
        loop {
            let change = changes.take();
            overflown |= change.overflown;
            if !change.relevant {
                break;
            }
        }
        assert!(overflown);
    }
}
