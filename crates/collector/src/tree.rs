//! A machine's files under a root directory: `/` for this machine, another one for an emulated or
//! recorded one.
//!
//! Everything is opened relative to a directory that was opened before, for reading only, and
//! every read has a limit. Symbolic links are followed, because sysfs consists of them. Nothing
//! here waits for a deadline: a driver may hang in a read, so attributes are read on a thread that
//! can be given up ([`crate::timeout`]).

mod failure;

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, Stat, fstat, openat, readlinkat, statat};
use rustix::io::{Errno, read};

pub use failure::Unreadable;

/// The most that one attribute may have: sysfs gives at most a page.
pub const MAX_ATTRIBUTE_BYTES: usize = 4096;

/// The most that the driver's list of openers may have.
pub const MAX_PIDS_BYTES: usize = 64 * 1024;

/// Directory entries that one listing checks.
pub const MAX_ENTRIES: usize = 16 * 1024;

/// A machine's files.
#[derive(Debug)]
pub struct Tree {
    root: Directory,
    path: PathBuf,
}

/// A directory of a machine, kept open.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    /// Whether a dangling link `errno:NAME` stands for an error, as in an emulated tree.
    emulated: bool,
}

/// The root directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {path} as the machine's root; pass an existing directory to --root")]
pub struct OpenTreeError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

// === impl Tree ===

impl Tree {
    /// Opens the tree under `root`. Any root but `/` is an emulated one.
    ///
    /// # Errors
    /// When `root` is no directory or must not be read.
    pub fn open(root: &Path) -> Result<Self, OpenTreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = openat(CWD, root, flags, Mode::empty())
            .map_err(|errno| OpenTreeError { path: root.to_owned(), source: errno.into() })?;
        let emulated = root != Path::new("/");
        Ok(Self { root: Directory { descriptor, emulated }, path: root.to_owned() })
    }

    /// The root, to which paths without a leading `/` are relative.
    pub fn root(&self) -> &Directory {
        &self.root
    }

    /// The root's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is not the machine we run on, but a tree that stands for one.
    pub fn is_emulated(&self) -> bool {
        self.root.emulated
    }

    /// How a path of this tree is shown to a person.
    pub fn display(&self, relative: &str) -> String {
        self.path.join(relative).display().to_string()
    }
}

// === impl Directory ===

impl Directory {
    /// The directory `path` in this one.
    ///
    /// # Errors
    /// Whatever the kernel says, or the tree's injected error.
    pub fn directory(&self, path: &str) -> Result<Self, Unreadable> {
        let descriptor = self.open(path, OFlags::DIRECTORY)?;
        Ok(Self { descriptor, emulated: self.emulated })
    }

    /// An attribute: one read of at most [`MAX_ATTRIBUTE_BYTES`], as sysfs gives it.
    ///
    /// # Errors
    /// As [`Self::directory`], and when it is longer.
    pub fn attribute(&self, name: &str) -> Result<Vec<u8>, Unreadable> {
        let file = self.open(name, OFlags::empty())?;
        let mut buffer = [0u8; MAX_ATTRIBUTE_BYTES + 1];
        let length = retrying(|| read(&file, &mut buffer)).map_err(Unreadable::Errno)?;
        if length > MAX_ATTRIBUTE_BYTES {
            return Err(Unreadable::TooLong { limit: MAX_ATTRIBUTE_BYTES });
        }
        Ok(buffer[..length].to_vec())
    }

    /// A file read to its end.
    ///
    /// # Errors
    /// As [`Self::directory`], and when it is longer than `limit`.
    pub fn file(&self, name: &str, limit: usize) -> Result<Vec<u8>, Unreadable> {
        let bytes = self.read(name, limit.saturating_add(1), false)?;
        if bytes.len() > limit { Err(Unreadable::TooLong { limit }) } else { Ok(bytes) }
    }

    /// The first `limit` bytes of a file, or all of it where it is shorter. Only for files of
    /// which a read gives all there is, unless the buffer is too small: all but long lists.
    ///
    /// # Errors
    /// As [`Self::directory`].
    pub fn beginning(&self, name: &str, limit: usize) -> Result<Vec<u8>, Unreadable> {
        self.read(name, limit, true)
    }

    fn read(&self, name: &str, limit: usize, short_is_all: bool) -> Result<Vec<u8>, Unreadable> {
        let file = self.open(name, OFlags::empty())?;
        let mut bytes = Vec::new();
        let mut buffer = [0u8; MAX_ATTRIBUTE_BYTES];
        while bytes.len() < limit {
            let wanted = buffer.len().min(limit - bytes.len());
            let length =
                retrying(|| read(&file, &mut buffer[..wanted])).map_err(Unreadable::Errno)?;
            bytes.extend_from_slice(&buffer[..length]);
            if length == 0 || (short_is_all && length < wanted) {
                break;
            }
        }
        Ok(bytes)
    }

    /// Where the link `name` points to.
    ///
    /// # Errors
    /// As [`Self::directory`], and when it is no link.
    pub fn link(&self, name: &str) -> Result<PathBuf, Unreadable> {
        let target = readlinkat(&self.descriptor, name, Vec::new()).map_err(Unreadable::Errno)?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// What `name` is, links followed.
    ///
    /// # Errors
    /// As [`Self::directory`].
    pub fn stat(&self, name: &str) -> Result<Stat, Unreadable> {
        statat(&self.descriptor, name, AtFlags::empty()).map_err(Unreadable::Errno)
    }

    /// What this directory itself is.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn own_stat(&self) -> Result<Stat, Unreadable> {
        fstat(&self.descriptor).map_err(Unreadable::Errno)
    }

    /// The names in this directory that are UTF-8, `.` and `..` left out, in no order. At most
    /// [`MAX_ENTRIES`] are checked.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn names(&self) -> Result<Vec<String>, Unreadable> {
        self.names_up_to(MAX_ENTRIES)
    }

    /// The same, of which `limit` entries are checked beside `.` and `..`.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn names_up_to(&self, limit: usize) -> Result<Vec<String>, Unreadable> {
        let again = self.open(".", OFlags::DIRECTORY)?;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(again, &mut buffer);
        let mut names = Vec::new();
        // The directory and the one above it are entries as well.
        for _ in 0..limit.saturating_add(2) {
            let Some(entry) = entries.next() else { break };
            let entry = entry.map_err(Unreadable::Errno)?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        names.truncate(limit);
        Ok(names)
    }

    fn open(&self, path: &str, more: OFlags) -> Result<OwnedFd, Unreadable> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | more;
        retrying(|| openat(&self.descriptor, path, flags, Mode::empty()))
            .map_err(|errno| self.injected(path, errno))
    }

    /// The error that a dangling link of an emulated tree stands for, else `errno`.
    fn injected(&self, path: &str, errno: Errno) -> Unreadable {
        let injected = match errno {
            Errno::NOENT | Errno::LOOP if self.emulated => self
                .link(path)
                .ok()
                .and_then(|target| failure::named(target.to_str()?.strip_prefix("errno:")?)),
            _ => None,
        };
        Unreadable::Errno(injected.unwrap_or(errno))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Repeats a system call that a signal interrupted.
fn retrying<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
