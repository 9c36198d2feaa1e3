//! The runtime directory: where ledgers and endpoints are, which directory that is, and whether
//! it can be trusted.
//!
//! The directory is opened once and checked through its descriptor; everything in it is then
//! opened relative to that descriptor, so that it cannot be swapped afterwards. Nothing here reads
//! the content of a file.

mod choice;
mod listing;
mod names;
mod users;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat, unlinkat,
};
use rustix::io::Errno;

pub use choice::{DirectoryEnvironment, INSTALLED_DIRECTORY};
pub use listing::{Listing, MOST_ENTRIES_LISTED};
pub use names::{
    DirectoryEntry, EntryKind, endpoint_name, ledger_name, parse_name, temporary_name,
};
pub use users::{OVERFLOW_UID, has_own_users};

const DIRECTORY_ONLY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const STICKY: u32 = 0o1000;
const SET_GROUP_ID: u32 = 0o2000;
const OTHERS_WRITE: u32 = 0o002;
const OTHERS_ANY: u32 = 0o077;

/// An open, checked runtime directory.
#[derive(Debug)]
pub struct RuntimeDirectory {
    descriptor: OwnedFd,
    path: PathBuf,
    is_installed: bool,
    owner: u32,
}

/// What a directory is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To leave a ledger and an endpoint in it.
    Writing,
    /// To search for those of others.
    Reading,
}

/// Why there is no runtime directory to work with.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It cannot be opened.
    #[error(
        "cannot open the runtime directory {path}; \
         create it, or choose another with TT_METRICS_SOCKET_DIR or --runtime-dir"
    )]
    Open {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A private directory could not be made.
    #[error(
        "cannot create the runtime directory {path}; choose another with TT_METRICS_SOCKET_DIR"
    )]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It belongs to someone who could lie to us.
    #[error(
        "the runtime directory {path} belongs to user {owner}; \
         use one that belongs to you or to root, or one with mode 3777 as the installation makes it"
    )]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The number of its owner stands for everyone whom the system cannot name.
    #[error(
        "the runtime directory {path} belongs to user {OVERFLOW_UID}, a number that many users can \
         share; run as a user with a number of its own, or name a directory of such a user"
    )]
    Nobody {
        /// The directory.
        path: PathBuf,
    },
    /// Anyone could remove what is in it.
    #[error(
        "the runtime directory {path} has mode {mode:04o}, in which any user can replace any entry; \
         run: chmod 3777 {path}"
    )]
    WorldWritable {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A private directory lets others in.
    #[error("the private runtime directory {path} has mode {mode:04o}; run: chmod 700 {path}")]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

impl DirectoryError {
    /// Whether there is nothing at its path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl RuntimeDirectory {
    /// Opens the directory at `path`, which must exist, and checks it.
    pub fn open(path: &Path, purpose: Purpose) -> Result<Self, DirectoryError> {
        Self::check(path, openat(rustix::fs::CWD, path, DIRECTORY_ONLY, Mode::empty()), purpose)
    }

    /// Opens and checks for reading the directory that a process whose root directory is `root`
    /// has at `inside`. Symbolic links on the way lead where they lead that process, never out of
    /// its root. `shown` is the path to report. Fails on a kernel without `openat2`.
    pub fn open_beneath(
        root: BorrowedFd<'_>,
        inside: &Path,
        shown: &Path,
    ) -> Result<Self, DirectoryError> {
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(root, inside, DIRECTORY_ONLY, Mode::empty(), within);
        Self::check(shown, opened, Purpose::Reading)
    }

    fn check(
        path: &Path,
        opened: Result<OwnedFd, Errno>,
        purpose: Purpose,
    ) -> Result<Self, DirectoryError> {
        let open_error =
            |error: Errno| DirectoryError::Open { path: path.into(), source: error.into() };
        let descriptor = opened.map_err(open_error)?;
        let stat = fstat(&descriptor).map_err(open_error)?;
        check(path, &stat, purpose)?;
        Ok(Self {
            descriptor,
            path: path.into(),
            is_installed: is_installed(stat.st_mode),
            owner: stat.st_uid,
        })
    }

    /// Opens the directory at `path` as [`Self::open`] does, and refuses one that lets others in.
    fn open_private(path: &Path, purpose: Purpose) -> Result<Self, DirectoryError> {
        let directory = Self::open(path, purpose)?;
        let stat = fstat(&directory.descriptor)
            .map_err(|error| DirectoryError::Open { path: path.into(), source: error.into() })?;
        let mode = stat.st_mode & 0o7777;
        if mode & OTHERS_ANY != 0 {
            return Err(DirectoryError::NotPrivate { path: path.into(), mode });
        }
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who owns it.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Whether it is as the installation makes it, for the users of this machine, and not one user's
    /// own: by its set-group-id bit.
    pub fn is_installed(&self) -> bool {
        self.is_installed
    }

    /// The mode of a ledger in this directory.
    pub fn ledger_mode(&self) -> u32 {
        if self.is_installed { 0o640 } else { 0o600 }
    }

    /// The mode of an endpoint in this directory.
    pub fn endpoint_mode(&self) -> u32 {
        if self.is_installed { 0o660 } else { 0o600 }
    }

    /// The names of ledgers, endpoints and unfinished endpoints in it, up to [`MOST_ENTRIES_LISTED`].
    pub fn list(&self) -> io::Result<Listing> {
        listing::list(self.as_fd())
    }

    /// The user that owns the entry `name`, its type and inode, without following a link.
    pub fn entry_status(&self, name: &str) -> io::Result<EntryStatus> {
        let stat = statat(&self.descriptor, checked(name)?, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(EntryStatus {
            uid: stat.st_uid,
            mode: stat.st_mode & 0o7777,
            is_regular_file: FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
            is_socket: FileType::from_raw_mode(stat.st_mode) == FileType::Socket,
            device: stat.st_dev,
            inode: stat.st_ino,
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        })
    }

    /// Removes the entry `name`.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, checked(name)?, AtFlags::empty())?)
    }
}

impl AsFd for RuntimeDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What the system says of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryStatus {
    /// Its owner.
    pub uid: u32,
    /// Its permission bits.
    pub mode: u32,
    /// It is a regular file, as a ledger must be.
    pub is_regular_file: bool,
    /// It is a socket, as an endpoint must be.
    pub is_socket: bool,
    /// The file system it is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// Its size.
    pub size_bytes: u64,
    /// When its inode was last changed, in seconds and nanoseconds since the epoch: tells an entry
    /// from a later one to which the file system gave the same inode.
    pub changed: (i64, u64),
}

/// Whether a directory of these permission bits is an installed one; see
/// [`RuntimeDirectory::is_installed`].
pub fn is_installed(mode: u32) -> bool {
    mode & SET_GROUP_ID != 0
}

/// A name that cannot lead out of the directory.
pub(crate) fn checked(name: &str) -> io::Result<&str> {
    let bad = name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']);
    if bad { Err(Errno::INVAL.into()) } else { Ok(name) }
}

fn check(path: &Path, stat: &Stat, purpose: Purpose) -> Result<(), DirectoryError> {
    let mode = stat.st_mode & 0o7777;
    let installed = mode & (STICKY | SET_GROUP_ID) == STICKY | SET_GROUP_ID;
    let myself = rustix::process::geteuid().as_raw();
    // Root may look anywhere: what is read is not believed because of the directory alone.
    let root_looks = purpose == Purpose::Reading && myself == 0;
    let trusted = stat.st_uid == 0 || stat.st_uid == myself || installed || root_looks;
    if stat.st_uid == OVERFLOW_UID {
        return Err(DirectoryError::Nobody { path: path.into() });
    }
    if !trusted {
        return Err(DirectoryError::Owner { path: path.into(), owner: stat.st_uid });
    }
    if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        return Err(DirectoryError::WorldWritable { path: path.into(), mode });
    }
    Ok(())
}
