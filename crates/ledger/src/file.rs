//! The ledger's file on the writer's side: made, given memory, removed.
//!
//! Memory is reserved before a page is touched, so that a full file system is an error here and
//! never a signal in the workload. Nothing here interprets counters.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, fallocate, fchmod, flock, fstat,
    ftruncate, linkat, openat, statat, unlinkat,
};
use rustix::io::{Errno, fcntl_dupfd_cloexec, pwrite, retry_on_intr};
use rustix::process::{Resource, getrlimit};
use telltale_schema::process::ProcessIdentity;

use crate::directory::{EntryStatus, RuntimeDirectory, ledger_name};
use crate::layout::{DEVICES_OFFSET, FILE_BYTES, PAGE_BYTES};
use crate::mapping::Mapping;
use crate::reader::LedgerReader;

/// Why a process has no ledger.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Its names are taken by others.
    #[error("cannot create the ledger {name}: user {uid} has taken its name; remove that file")]
    NameTaken {
        /// The last name tried.
        name: String,
        /// Who owns the entry there.
        uid: u32,
    },
    /// The file could not be made.
    #[error(
        "cannot create the ledger {name} in {}; check the directory's permissions and free space",
        directory.display()
    )]
    Create {
        /// The runtime directory.
        directory: PathBuf,
        /// The file's name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is no memory for it.
    #[error(
        "cannot reserve memory for the ledger; free space on the file system of {}",
        directory.display()
    )]
    Reserve {
        /// The runtime directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It could not be mapped.
    #[error("cannot map the ledger; raise the limit on address space (ulimit -v)")]
    Map(#[source] io::Error),
    /// The process may not have files that large; trying would raise SIGXFSZ.
    #[error(
        "the limit on file sizes is {limit_bytes} bytes and a ledger needs {FILE_BYTES}; \
         raise it (ulimit -f)"
    )]
    FileSizeLimit {
        /// The limit.
        limit_bytes: u64,
    },
}

/// The file of one ledger.
#[derive(Debug)]
pub(crate) struct LedgerFile {
    name: String,
    directory: OwnedFd,
    writable: OwnedFd,
    readable: OwnedFd,
    device: u64,
    inode: u64,
}

impl LedgerFile {
    /// Makes the file, reserves its first page and its first page of devices, and lets `fill` map
    /// it and write its header. The file gets its name last, so that a reader never finds a
    /// half-made one and a kill in between leaves nothing; only on a file system without unnamed
    /// files is the name there first.
    pub(crate) fn create(
        directory: &RuntimeDirectory,
        identity: &ProcessIdentity,
        fill: impl Fn(BorrowedFd<'_>) -> Result<Mapping, CreateError>,
    ) -> Result<(Self, Mapping), CreateError> {
        Self::create_from(create_unnamed(directory).ok(), directory, identity, fill)
    }

    /// [`Self::create`] with an unnamed file, or none where there are no such files.
    fn create_from(
        unnamed: Option<OwnedFd>,
        directory: &RuntimeDirectory,
        identity: &ProcessIdentity,
        fill: impl Fn(BorrowedFd<'_>) -> Result<Mapping, CreateError>,
    ) -> Result<(Self, Mapping), CreateError> {
        check_size_limit()?;
        if let Some(descriptor) = unnamed {
            let mapping =
                prepare(&descriptor, directory).and_then(|()| fill(descriptor.as_fd()))?;
            match take_name(directory, identity, |name| link(&descriptor, directory, name)) {
                Ok((name, ())) => return Ok((Self::open(directory, name, descriptor)?, mapping)),
                // Without /proc, or in a process that may not check its own, an unnamed file
                // cannot be named.
                Err(CreateError::Create { source, .. })
                    if matches!(
                        source.kind(),
                        ErrorKind::NotFound | ErrorKind::PermissionDenied
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        let (name, descriptor) =
            take_name(directory, identity, |name| create_new(directory, name))?;
        let filled = prepare(&descriptor, directory).and_then(|()| fill(descriptor.as_fd()));
        let file = Self::open(directory, name, descriptor)?;
        match filled {
            Ok(mapping) => Ok((file, mapping)),
            Err(error) => {
                file.remove();
                Err(error)
            }
        }
    }

    /// Completes a file that has its name; takes the name away if that fails.
    fn open(
        directory: &RuntimeDirectory,
        name: String,
        writable: OwnedFd,
    ) -> Result<Self, CreateError> {
        open_rest(directory, &name, writable).map_err(|source| {
            // If the name cannot go, the error below says more.
            let _ = directory.remove(&name);
            CreateError::Create { directory: directory.path().into(), name, source }
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file system and the inode by which the file is known.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// A descriptor for another process: it cannot write through it.
    pub(crate) fn read_only_descriptor(&self) -> io::Result<OwnedFd> {
        Ok(fcntl_dupfd_cloexec(&self.readable, 0)?)
    }

    /// Gives memory to a part of the file.
    pub(crate) fn reserve(&self, offset: usize, length: usize) -> io::Result<()> {
        reserve(&self.writable, offset, length)
    }

    /// Removes the file's name if it is still this file's.
    pub(crate) fn remove(&self) {
        let still_ours = statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (self.device, self.inode));
        if still_ours {
            // A failure leaves what a killed process leaves: a file that `smi -c` removes.
            let _ = unlinkat(&self.directory, &*self.name, AtFlags::empty());
        }
    }
}

fn check_size_limit() -> Result<(), CreateError> {
    match getrlimit(Resource::Fsize).current {
        Some(limit_bytes) if limit_bytes < to_u64(FILE_BYTES) => {
            Err(CreateError::FileSizeLimit { limit_bytes })
        }
        _ => Ok(()),
    }
}

fn prepare(file: &OwnedFd, directory: &RuntimeDirectory) -> Result<(), CreateError> {
    lock(file);
    // The umask may have taken bits that the service's group needs.
    fchmod(file, Mode::from_raw_mode(directory.ledger_mode()))
        .and_then(|()| ftruncate(file, to_u64(FILE_BYTES)))
        .map_err(io::Error::from)
        .and_then(|()| reserve(file, 0, PAGE_BYTES))
        .and_then(|()| reserve(file, DEVICES_OFFSET, PAGE_BYTES))
        .map_err(|source| CreateError::Reserve { directory: directory.path().into(), source })
}

fn reserve(file: &OwnedFd, offset: usize, length: usize) -> io::Result<()> {
    assert!(offset + length <= FILE_BYTES, "only what is mapped needs memory");
    let (start, bytes) = (to_u64(offset), to_u64(length));
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), start, bytes)) {
        Ok(()) => Ok(()),
        // Written zeroes have memory too, on file systems that cannot reserve.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeroes(file, offset, length),
        Err(error) => Err(error.into()),
    }
}

fn write_zeroes(file: &OwnedFd, offset: usize, length: usize) -> io::Result<()> {
    let zeroes = [0; PAGE_BYTES];
    let mut written = 0;
    while written < length {
        let part = &zeroes[..(length - written).min(PAGE_BYTES)];
        match retry_on_intr(|| pwrite(file, part, to_u64(offset + written)))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => written += count,
        }
    }
    Ok(())
}

/// Marks the file as in use for as long as its writer has it open; an `exec` or a kill ends that.
fn lock(file: &OwnedFd) {
    // Where there are no locks, only a second ledger of one process can tell the difference.
    let _ = flock(file, FlockOperation::NonBlockingLockExclusive);
}

fn open_rest(
    directory: &RuntimeDirectory,
    name: &str,
    writable: OwnedFd,
) -> io::Result<LedgerFile> {
    let stat = fstat(&writable)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let readable = openat(directory, name, flags, Mode::empty())?;
    let again = fstat(&readable)?;
    if (again.st_dev, again.st_ino) != (stat.st_dev, stat.st_ino) {
        return Err(Errno::STALE.into());
    }
    Ok(LedgerFile {
        name: name.to_owned(),
        directory: fcntl_dupfd_cloexec(directory, 0)?,
        writable,
        readable,
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

/// Has `take` take the plain name; else, if that is another process's, the name with the PID
/// namespace. `take` fails with EXIST if a name is taken.
fn take_name<T>(
    directory: &RuntimeDirectory,
    identity: &ProcessIdentity,
    take: impl Fn(&str) -> Result<T, Errno>,
) -> Result<(String, T), CreateError> {
    let mut taken_by = 0;
    let mut name = String::new();
    for namespace in [None, Some(identity.pid_namespace)] {
        name = ledger_name(identity.pid, identity.start_time_ticks, namespace);
        let failed = |source: io::Error| CreateError::Create {
            directory: directory.path().into(),
            name: name.clone(),
            source,
        };
        // The second try follows the removal of a leftover.
        for _ in 0..2 {
            match take(&name) {
                Ok(taken) => return Ok((name, taken)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error.into())),
            }
            match directory.entry_status(&name) {
                Ok(status) => {
                    taken_by = status.uid;
                    if !is_our_leftover(directory, &name, &status, identity)
                        || directory.remove(&name).is_err()
                    {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
    Err(CreateError::NameTaken { name, uid: taken_by })
}

fn create_unnamed(directory: &RuntimeDirectory) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    openat(directory, ".", flags, Mode::RUSR | Mode::WUSR)
}

fn link(file: &OwnedFd, directory: &RuntimeDirectory, name: &str) -> Result<(), Errno> {
    // By way of /proc, because AT_EMPTY_PATH needs a capability.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(rustix::fs::CWD, path, directory, name, AtFlags::SYMLINK_FOLLOW)
}

fn create_new(directory: &RuntimeDirectory, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Whether the entry is of our user and its process is provably gone: an earlier image of this
/// process (it has our identity), or one before the last boot, whose lock is free. A boot id alone
/// proves nothing: a system container may have one of its own.
fn is_our_leftover(
    directory: &RuntimeDirectory,
    name: &str,
    status: &EntryStatus,
    identity: &ProcessIdentity,
) -> bool {
    if status.uid != rustix::process::geteuid().as_raw() {
        return false;
    }
    match LedgerReader::open_at(directory, name) {
        Ok(reader) => {
            let found = reader.owner();
            let same_namespace = found.pid_namespace == identity.pid_namespace;
            let is_ours = same_namespace && found.pid == identity.pid;
            // With the namespace and the pid being ours, no other living process has them; and if
            // the lock is free, no other part of this process.
            (is_ours || found.boot_id != identity.boot_id) && !is_locked(&reader)
        }
        // Another container's process may be about to complete it: not provably dead.
        Err(_) => false,
    }
}

fn is_locked(reader: &LedgerReader) -> bool {
    // The lock goes with the reader's descriptor.
    flock(reader.descriptor(), FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).expect("a file offset fits in 64 bits")
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use super::{CreateError, LedgerFile};
    use crate::directory::{Purpose, RuntimeDirectory};
    use crate::layout::FILE_BYTES;
    use crate::mapping::Mapping;
    use crate::owner::identity_of_this_process;

    #[test]
    fn a_file_system_without_unnamed_files_does_as_well() {
        let scratch = telltale_harness::Scratch::new();
        let directory = RuntimeDirectory::open(scratch.path(), Purpose::Writing).unwrap();
        let identity = identity_of_this_process().unwrap();
        let create = |fill: fn(BorrowedFd<'_>) -> Result<Mapping, CreateError>| {
            LedgerFile::create_from(None, &directory, &identity, fill)
        };
        let refused = create(|_| Err(CreateError::FileSizeLimit { limit_bytes: 0 }));
        assert!(refused.is_err() && directory.list().unwrap().ledgers.is_empty());
        let (file, mapping) =
            create(|file| Mapping::writable(file, FILE_BYTES).map_err(CreateError::Map)).unwrap();
        assert_eq!(mapping.length(), FILE_BYTES);
        assert_eq!(directory.list().unwrap().ledgers[0].name, file.name());
        assert_eq!(directory.entry_status(file.name()).unwrap().mode, 0o600);
        file.remove();
        assert!(directory.list().unwrap().ledgers.is_empty());
    }
}
