//! Finds or makes a region's file, locks it and maps it.
//!
//! Refuses whatever is not an empty file or a region of the wanted layout; never changes the size
//! of a file that has one, never removes a file, never waits longer than its timeout.
#![forbid(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{
    FallocateFlags, FileType, FlockOperation, Mode, OFlags, fallocate, flock, fstat, openat,
};
use rustix::io::{Errno, pread};

use super::super::layout::Layout;
use super::super::read::FileIdentity;
use super::AttachError;
use crate::mapping::Mapping;

/// The pause between two tries to get the lock.
const LOCK_PAUSE: Duration = Duration::from_micros(200);

/// How a region's file is opened.
const FLAGS: OFlags =
    OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// The lock on a region's file; given back on drop, and by the kernel at death.
#[derive(Debug)]
pub(super) struct Lock<'a> {
    descriptor: &'a OwnedFd,
}

impl<'a> Lock<'a> {
    /// Takes the lock; absent if others still hold it at `deadline`.
    pub(super) fn take(descriptor: &'a OwnedFd, deadline: Instant) -> Result<Option<Self>, Errno> {
        loop {
            match flock(descriptor, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self { descriptor })),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // Unlocking a lock that is held cannot fail; if it did, closing the file unlocks.
        let _ = flock(self.descriptor, FlockOperation::Unlock);
    }
}

/// Opens `name` in `directory` or creates it with `mode`; nothing if another process removed or
/// created it between both tries.
///
/// The first try is without `CREATE`: with it, `fs.protected_regular` refuses another user's file
/// in a sticky directory.
pub(super) fn open_or_create(
    directory: impl AsFd,
    name: &str,
    mode: Mode,
) -> Result<Option<OwnedFd>, AttachError> {
    match open_first(|flags| {
        let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
        openat(&directory, name, flags, mode)
    }) {
        Ok(descriptor) => Ok(Some(descriptor)),
        Err(Errno::EXIST | Errno::NOENT) => Ok(None),
        Err(error) => Err(refusal(name, error)),
    }
}

/// Opens a region that must be there, to change it.
pub(super) fn open_existing(directory: impl AsFd, name: &str) -> Result<OwnedFd, AttachError> {
    openat(&directory, name, FLAGS, Mode::empty()).map_err(|error| refusal(name, error))
}

/// Why a file could not be opened.
fn refusal(name: &str, error: Errno) -> AttachError {
    match error {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            AttachError::PermissionDenied { name: name.into(), source: error.into() }
        }
        Errno::LOOP | Errno::NXIO | Errno::ISDIR => {
            AttachError::NotARegularFile { name: name.into() }
        }
        error => AttachError::system(name, "open", error),
    }
}

/// Has `open` open the file, and create it only if there is none.
fn open_first<T>(mut open: impl FnMut(OFlags) -> Result<T, Errno>) -> Result<T, Errno> {
    match open(FLAGS) {
        Err(Errno::NOENT) => open(FLAGS | OFlags::CREATE | OFlags::EXCL),
        other => other,
    }
}

/// Which of these layouts a file has.
pub(super) fn layout_of(
    descriptor: &OwnedFd,
    name: &str,
    layouts: impl IntoIterator<Item = &'static Layout>,
) -> Result<&'static Layout, AttachError> {
    let stat = fstat(descriptor).map_err(|error| AttachError::system(name, "examine", error))?;
    let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
    let version = version(descriptor).map_err(|error| AttachError::system(name, "read", error))?;
    let is_it = |layout: &&'static Layout| {
        usize::try_from(size_bytes) == Ok(layout.size_bytes) && version == Some(layout.version)
    };
    let found = layouts.into_iter().find(is_it);
    found.ok_or_else(|| AttachError::Unsupported { name: name.into(), version, size_bytes })
}

/// Checks that the locked file is a region of this layout, or empty and thus to become one, and
/// maps it. Nothing if the file has no name any more: another process cleaned up before it was locked, and
/// it will never be read.
pub(super) fn map(
    descriptor: BorrowedFd<'_>,
    name: &str,
    layout: &'static Layout,
) -> Result<Option<(FileIdentity, Mapping)>, AttachError> {
    let system = |step, error| AttachError::system(name, step, error);
    let stat = fstat(descriptor).map_err(|error| system("examine", error))?;
    if stat.st_nlink == 0 {
        return Ok(None);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(AttachError::NotARegularFile { name: name.into() });
    }
    let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
    if size_bytes != 0 {
        let version = version(descriptor).map_err(|error| system("read", error))?;
        let is_fit = usize::try_from(size_bytes) == Ok(layout.size_bytes)
            && (version == Some(0) || version == Some(layout.version));
        if !is_fit {
            return Err(AttachError::Unsupported { name: name.into(), version, size_bytes });
        }
    }
    reserve(descriptor, layout.size_bytes).map_err(|error| match error {
        Errno::NOSPC | Errno::DQUOT => {
            AttachError::NoSpace { name: name.into(), source: error.into() }
        }
        _ => system("reserve", error),
    })?;
    let mapping = Mapping::writable(descriptor, layout.size_bytes)
        .map_err(|source| AttachError::System { name: name.into(), step: "map", source })?;
    let identity = FileIdentity { device: stat.st_dev, inode: stat.st_ino };
    Ok(Some((identity, mapping)))
}

/// Reserves the file's blocks; it lengthens an empty file and never shortens one.
///
/// Without this, touching a page that a full file system cannot give would kill the process.
fn reserve(descriptor: BorrowedFd<'_>, size_bytes: usize) -> Result<(), Errno> {
    let length = u64::try_from(size_bytes).map_err(|_| Errno::FBIG)?;
    fallocate(descriptor, FallocateFlags::empty(), 0, length)
}

/// The file's first four bytes; absent if it has fewer.
fn version(descriptor: impl AsFd) -> Result<Option<u32>, Errno> {
    let mut first = [0; 4];
    let count = pread(descriptor, &mut first, 0)?;
    Ok((count == first.len()).then_some(u32::from_le_bytes(first)))
}

#[cfg(test)]
mod tests {
    use super::open_first;
    use rustix::fs::OFlags;
    use rustix::io::Errno;

    /// What `open` gives in a sticky directory under `fs.protected_regular`, which a test must not
    /// set: creating another user's file is refused, even though it is there.
    fn protected(exists: bool) -> impl FnMut(OFlags) -> Result<bool, Errno> {
        move |flags| match (exists, flags.contains(OFlags::CREATE)) {
            (true, true) => Err(Errno::ACCESS),
            (true, false) => Ok(false),
            (false, true) if flags.contains(OFlags::EXCL) => Ok(true),
            (false, true) => panic!("a file that appears in between would be refused"),
            (false, false) => Err(Errno::NOENT),
        }
    }

    #[test]
    fn another_users_file_is_opened_and_only_a_missing_one_created() {
        assert_eq!(open_first(protected(true)), Ok(false));
        assert_eq!(open_first(protected(false)), Ok(true));
        assert_eq!(open_first(|_| Err::<(), _>(Errno::PERM)), Err(Errno::PERM));
    }
}
