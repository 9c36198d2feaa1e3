//! Notification by the kernel that something in directories or files has changed. Says where, not
//! what: the caller looks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// The most directories and files that are watched at once.
const MAX_WATCHED: usize = 65_536;
/// Room for many changes, and for at least one with the longest name.
const BUFFER_BYTES: usize = 16 << 10;

/// Directories and files whose changes are reported; its descriptor is readable when there are some.
#[derive(Debug)]
pub struct DirectoryWatch {
    descriptor: OwnedFd,
    paths: HashMap<i32, PathBuf>,
    is_incomplete: bool,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// An entry of a directory, or a watched path itself.
    At(PathBuf),
    /// A watched path is no longer there.
    Gone(PathBuf),
}

impl DirectoryWatch {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// When the system gives no more of these.
    pub fn new() -> io::Result<Self> {
        let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { descriptor, paths: HashMap::new(), is_incomplete: false })
    }

    /// Also watches this path. Where that is not possible, [`DirectoryWatch::is_incomplete`] says so from
    /// now on.
    pub fn add(&mut self, path: &Path) {
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF;
        if self.paths.len() >= MAX_WATCHED {
            self.is_incomplete = true;
            return;
        }
        match inotify::add_watch(&self.descriptor, path, flags) {
            Ok(number) => {
                self.paths.insert(number, path.to_owned());
            }
            // What is no longer there needs no watch.
            Err(Errno::NOENT) => {}
            Err(_) => self.is_incomplete = true,
        }
    }

    /// Stops watching this path.
    pub(super) fn remove(&mut self, path: &Path) {
        let number = self.paths.iter().find(|(_, watched)| *watched == path).map(|(n, _)| *n);
        if let Some(number) = number {
            self.paths.remove(&number);
            // It may have gone by itself.
            let _ = inotify::remove_watch(&self.descriptor, number);
        }
    }

    /// Whether changes may go untold, so that it is better to look now and then.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Forgets all changes so far, for a caller that rereads everything anyway.
    ///
    /// # Errors
    /// When reading fails.
    pub fn clear(&mut self) -> io::Result<()> {
        self.changes().map(|_| ())
    }

    /// All changes so far; none stands for so many that the kernel did not keep them.
    pub(super) fn changes(&mut self) -> io::Result<Option<Vec<Change>>> {
        let mut changes = Vec::new();
        let mut are_all_there = true;
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(self.descriptor.as_fd(), &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let kind = event.events();
            if kind.contains(ReadFlags::QUEUE_OVERFLOW) {
                are_all_there = false;
                continue;
            }
            let Some(path) = self.paths.get(&event.wd()) else { continue };
            if kind.contains(ReadFlags::IGNORED) {
                changes.push(Change::Gone(path.clone()));
                self.paths.remove(&event.wd());
                continue;
            }
            let at = match event.file_name() {
                Some(name) => path.join(OsString::from_vec(name.to_bytes().to_vec())),
                None => path.clone(),
            };
            // One file that grows changes many times in a row.
            if changes.last() != Some(&Change::At(at.clone())) {
                changes.push(Change::At(at));
            }
        }
        Ok(are_all_there.then_some(changes))
    }
}

impl AsFd for DirectoryWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
