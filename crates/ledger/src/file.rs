//! The ledger's file on the writer's side: made, given memory, removed.
//!
//! Memory is reserved before a page is touched, so that a full file system is an error here and
//! never a signal in the workload. Nothing here interprets counters.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fchmod, fstat, ftruncate, openat};
use rustix::io::{Errno, fcntl_dupfd_cloexec, pwrite, retry_on_intr};
use rustix::process::{Resource, getrlimit};
use telltale_schema::process::ProcessIdentity;

use crate::directory::{EntryStatus, RuntimeDirectory, ledger_name};
use crate::layout::{DEVICES_OFFSET, FILE_BYTES, PAGE_BYTES};
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
        "cannot create the ledger {name} in the runtime directory; check the directory's permissions and free space"
    )]
    Create {
        /// The file's name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is no memory for it.
    #[error(
        "cannot reserve memory for the ledger; free space on the runtime directory's file system"
    )]
    Reserve(#[source] io::Error),
    /// It could not be mapped.
    #[error("cannot map the ledger; raise the limit on address space (ulimit -v)")]
    Map(#[source] io::Error),
    /// The process may not have files that large; trying would raise SIGXFSZ.
    #[error(
        "the limit on file sizes is {limit_bytes} bytes and a ledger needs {FILE_BYTES}; raise it (ulimit -f)"
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
    /// Makes the file and reserves its first page and its first page of devices.
    pub(crate) fn create(
        directory: &RuntimeDirectory,
        identity: &ProcessIdentity,
    ) -> Result<Self, CreateError> {
        check_size_limit()?;
        let (name, writable) = create_named(directory, identity)?;
        let file = open_rest(directory, &name, writable).map_err(|source| {
            // The half-made file is ours and useless; if it cannot go, the error below says more.
            let _ = directory.remove(&name);
            CreateError::Create { name: name.clone(), source }
        })?;
        let prepared = ftruncate(&file.writable, to_u64(FILE_BYTES))
            .map_err(io::Error::from)
            .and_then(|()| file.reserve(0, PAGE_BYTES))
            .and_then(|()| file.reserve(DEVICES_OFFSET, PAGE_BYTES));
        if let Err(error) = prepared {
            file.remove();
            return Err(CreateError::Reserve(error));
        }
        Ok(file)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.writable.as_fd()
    }

    /// A descriptor for another process: it cannot write through it.
    pub(crate) fn read_only_descriptor(&self) -> io::Result<OwnedFd> {
        Ok(fcntl_dupfd_cloexec(&self.readable, 0)?)
    }

    /// Gives memory to a part of the file.
    pub(crate) fn reserve(&self, offset: usize, length: usize) -> io::Result<()> {
        assert!(offset + length <= FILE_BYTES, "only what is mapped needs memory");
        let (start, bytes) = (to_u64(offset), to_u64(length));
        match retry_on_intr(|| fallocate(&self.writable, FallocateFlags::empty(), start, bytes)) {
            Ok(()) => Ok(()),
            // Written zeroes have memory too, on file systems that cannot reserve.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeroes(offset, length),
            Err(error) => Err(error.into()),
        }
    }

    fn write_zeroes(&self, offset: usize, length: usize) -> io::Result<()> {
        let zeroes = [0; PAGE_BYTES];
        let mut written = 0;
        while written < length {
            let part = &zeroes[..(length - written).min(PAGE_BYTES)];
            let at = to_u64(offset + written);
            match retry_on_intr(|| pwrite(&self.writable, part, at))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => written += count,
            }
        }
        Ok(())
    }

    /// Removes the file's name if it is still this file's.
    pub(crate) fn remove(&self) {
        use rustix::fs::{AtFlags, statat, unlinkat};
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

fn open_rest(
    directory: &RuntimeDirectory,
    name: &str,
    writable: OwnedFd,
) -> io::Result<LedgerFile> {
    fchmod(&writable, Mode::from_raw_mode(directory.ledger_mode()))?;
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

/// Makes a new file under the plain name; else, if that is another process's, under the name
/// with the PID namespace.
fn create_named(
    directory: &RuntimeDirectory,
    identity: &ProcessIdentity,
) -> Result<(String, OwnedFd), CreateError> {
    let mut taken_by = 0;
    let mut name = String::new();
    for namespace in [None, Some(identity.pid_namespace)] {
        name = ledger_name(identity.pid, identity.start_time_ticks, namespace);
        let failed = |source: io::Error| CreateError::Create { name: name.clone(), source };
        // The second try follows the removal of a leftover.
        for _ in 0..2 {
            match create_new(directory, &name) {
                Ok(descriptor) => return Ok((name, descriptor)),
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
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
    Err(CreateError::NameTaken { name, uid: taken_by })
}

fn create_new(directory: &RuntimeDirectory, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Whether the entry is of our user and its process is provably gone: an earlier image of this
/// process (it has our identity), or one before the last boot.
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
            // With the namespace and the pid being ours, no other living process has them.
            found.boot_id != identity.boot_id || (same_namespace && found.pid == identity.pid)
        }
        // Another container's process may be about to complete it: not provably dead.
        Err(_) => false,
    }
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).expect("a file offset fits in 64 bits")
}
