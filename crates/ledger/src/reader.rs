//! The reader: opens another process's ledger, checks it once, and copies it with bounded effort.
//!
//! What the file says is an allegation by its owner. It is never mapped into this process's own
//! reads: it is copied by `pread`, so that a file cut short is an error and no signal.

mod accounts;
mod header;
mod settling;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, openat};
use rustix::io::{Errno, pread, retry_on_intr};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::RecordingFaults;

use crate::device::{DeviceEntry, DeviceSlot, decode};
use crate::directory::{RuntimeDirectory, checked};
use crate::hold;
use crate::layout::{LARGEST_FILE_BYTES, LONGEST_HEADER_BYTES, PAGE_BYTES, SHORTEST_HEADER_BYTES};

pub(crate) use accounts::Accounts;
pub(crate) use header::LedgerHeader;
pub(crate) use settling::settle;

/// `OVERLAYFS_SUPER_MAGIC` of `linux/magic.h`.
const OVERLAY_MAGIC: rustix::fs::FsWord = 0x794C_7630;

/// Copies taken of one ledger in one reading before a torn cell is accepted as it is.
pub(crate) const MOST_COPIES: usize = 16;

/// Why a file is not read as a ledger.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be opened.
    #[error("cannot open the ledger {name}")]
    Open {
        /// The file's name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is a directory, a pipe, a symbolic link or the like.
    #[error("the ledger is not a regular file; remove it")]
    NotAFile,
    /// It cannot be a ledger: too short or absurdly long.
    #[error("the ledger has {0} bytes, which no version writes; remove it")]
    Size(u64),
    /// It does not begin as a ledger does.
    #[error("the file does not begin as a ledger does; remove it")]
    Magic,
    /// Its process has not finished the header, or died before.
    #[error("the ledger is not ready: its process is starting or died while it was")]
    NotReady,
    /// It is of a version that this one cannot read.
    #[error(
        "the ledger has layout {written}, readable since layout {since}; \
         this version reads {} to {}: update it",
        crate::layout::OLDEST_READABLE,
        crate::layout::LAYOUT_VERSION
    )]
    Version {
        /// The layout version of its writer.
        written: u32,
        /// The oldest reader that could read it.
        since: u32,
    },
    /// Its header contradicts itself.
    #[error("the ledger's header is implausible: {0}; its process does not write what it says")]
    Header(&'static str),
    /// It could not be copied.
    #[error("cannot read the ledger")]
    Read(#[source] io::Error),
}

/// Why a ledger that was opened gives no reading.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It could not be copied.
    #[error("cannot read the ledger")]
    Read(#[source] io::Error),
    /// It is shorter than what it says it holds: someone cut it.
    #[error("the ledger was cut short under its reader")]
    Truncated,
    /// Its beginning is not what it was when it was opened.
    #[error("the ledger's header changed under its reader; open it again")]
    Changed,
}

/// What the lock says that a writer holds for as long as it has its ledger open or mapped. The lock
/// is one of the file, so it is seen alike from every namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterLock {
    /// A process holds it: the writer, or a child that it forked.
    Held,
    /// The writer held it and no process does any more.
    Free,
    /// The writer did not say that it holds one, or the file system does not tell.
    Unknown,
}

/// The numbers by which the kernel knows a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileNumber {
    /// The file system.
    pub device: u64,
    /// The inode there.
    pub inode: u64,
}

/// What one reading of a ledger gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerReading {
    /// The process, as the ledger names it.
    pub owner: ProcessIdentity,
    /// The user that owns the file, from the kernel.
    pub uid: u32,
    /// The process's short name.
    pub name: String,
    /// Name and version of the runtime that records.
    pub runtime: String,
    /// When recording began.
    pub started_at: Timestamp,
    /// The devices it opened; a slot is an index into these.
    pub devices: Vec<DeviceEntry>,
    /// The values for each device and kind with any, ordered by device and kind.
    pub usage: Vec<(DeviceSlot, MemoryKind, MemoryUsage)>,
    /// Cells of a kind, type or device that this version does not know; not in `usage`.
    pub unknown_cells: u32,
    /// What went wrong in recording, as its process counted it.
    pub faults: RecordingFaults,
    /// How many shards (threads at the same time) have recorded. One means that peaks are exact.
    pub shards: u32,
    /// A cell's writer is stopped or died in the middle of a record, of which the values may lack
    /// a part; or, hardly ever, it was writing during each of many copies.
    pub torn: bool,
    /// More was freed than allocated somewhere, or the header counts more cells or devices than
    /// there is room for; such values are cut to what is possible.
    pub implausible: bool,
}

/// An open ledger.
#[derive(Debug)]
pub struct LedgerReader {
    descriptor: OwnedFd,
    header: LedgerHeader,
    /// The copy, during a reading.
    buffer: Vec<u8>,
    /// The copy before, while one reading takes several.
    settled: Vec<u8>,
    accounts: Accounts,
    reading: LedgerReading,
    has_read: bool,
}

impl OpenError {
    /// Whether we are not allowed to open it.
    pub fn is_forbidden(&self) -> bool {
        let Self::Open { source, .. } = self else { return false };
        source.kind() == io::ErrorKind::PermissionDenied
    }
}

impl LedgerReader {
    /// Opens and checks the ledger `name`.
    pub fn open_at(directory: &RuntimeDirectory, name: &str) -> Result<Self, OpenError> {
        let descriptor =
            open(directory, name).map_err(|source| match Errno::from_io_error(&source) {
                // What `O_NOFOLLOW` says of a symbolic link.
                Some(Errno::LOOP) => OpenError::NotAFile,
                _ => OpenError::Open { name: name.to_owned(), source },
            })?;
        Self::from_descriptor(descriptor)
    }

    /// Checks the ledger behind a descriptor that someone handed over.
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<Self, OpenError> {
        let stat = fstat(&descriptor).map_err(|error| OpenError::Read(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(OpenError::NotAFile);
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let shortest = u64::try_from(SHORTEST_HEADER_BYTES).unwrap_or(u64::MAX);
        if size < shortest || size > LARGEST_FILE_BYTES {
            return Err(OpenError::Size(size));
        }
        let mut start = vec![0; LONGEST_HEADER_BYTES];
        let length = copy(descriptor.as_fd(), &mut start, 0).map_err(OpenError::Read)?;
        let header = LedgerHeader::check(&start[..length], size)?;
        let reading = header.empty_reading(stat.st_uid);
        Ok(Self {
            descriptor,
            header,
            buffer: Vec::new(),
            settled: Vec::new(),
            accounts: Accounts::default(),
            reading,
            has_read: false,
        })
    }

    /// The process, as the ledger names it.
    pub fn owner(&self) -> &ProcessIdentity {
        &self.reading.owner
    }

    /// The user that owns the file, from the kernel.
    pub fn uid(&self) -> u32 {
        self.reading.uid
    }

    /// What the writer's lock says. Takes no lock itself.
    pub fn writer_lock(&self) -> WriterLock {
        match hold::is_free(self.descriptor.as_fd()) {
            Ok(false) => WriterLock::Held,
            Ok(true) if self.header.is_held() && !self.is_on_overlay() => WriterLock::Free,
            Ok(true) | Err(_) => WriterLock::Unknown,
        }
    }

    /// Whether the file is on an overlay file system. A map does not keep the open file there, and
    /// with it the lock, as it does elsewhere: a process that closed its descriptors has none.
    fn is_on_overlay(&self) -> bool {
        fstatfs(&self.descriptor).is_ok_and(|system| system.f_type == OVERLAY_MAGIC)
    }

    /// The file system and the inode by which the file is known.
    pub fn file(&self) -> io::Result<FileNumber> {
        let stat = fstat(&self.descriptor)?;
        Ok(FileNumber { device: stat.st_dev, inode: stat.st_ino })
    }

    /// Copies the ledger and adds it up. Bounded: at most [`MOST_COPIES`] copies of the used part,
    /// whatever the file says. Room for the copies is taken for one reading alone: of a hundred
    /// ledgers that are read in turn, only one has it.
    pub fn read(&mut self) -> Result<&LedgerReading, ReadError> {
        let outcome = self.read_copies();
        (self.buffer, self.settled) = (Vec::new(), Vec::new());
        outcome.map(|()| &self.reading)
    }

    fn read_copies(&mut self) -> Result<(), ReadError> {
        let mut before = 0;
        for attempt in 1.. {
            let used = self.copy_used()?;
            let end = self.header.cells_end(used);
            // A first copy has nothing to be compared with.
            let moving = settle(&self.header, &self.settled[..before], &mut self.buffer[..end]);
            let is_good = self.add_up(used)?;
            let is_same = self.buffer[..end] == self.settled[..before];
            if is_good || is_same || attempt == MOST_COPIES {
                break;
            }
            if !moving && !self.reading.implausible {
                break;
            }
            std::mem::swap(&mut self.buffer, &mut self.settled);
            before = end;
        }
        Ok(())
    }

    /// The last reading; empty before the first.
    pub fn last(&self) -> &LedgerReading {
        &self.reading
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// How many bytes hold all cells that were in use at the last copy.
    pub(crate) fn expected_bytes(&self) -> usize {
        self.header.cells_end(self.accounts.cells())
    }

    /// Takes a copy that someone else made of the ledger's first `expected_bytes`. Gives whether
    /// it was whole; if not, [`Self::read`] is the way to go on.
    pub(crate) fn take_copy(&mut self, copy: &[u8]) -> Result<bool, ReadError> {
        let cells = self.header.recheck(copy)?;
        if self.header.cells_end(cells) > copy.len() {
            return Ok(false);
        }
        self.refresh_devices(copy)?;
        Ok(self.accounts.add_up(&self.header, copy, cells, &mut self.reading))
    }

    /// Copies header and used cells into the buffer. Gives the number of cells in it.
    fn copy_used(&mut self) -> Result<usize, ReadError> {
        // The first time, a page: it holds all cells of most processes.
        let mut wanted = self.expected_bytes().max(if self.has_read { 0 } else { PAGE_BYTES });
        self.has_read = true;
        // A second round if cells were added since. Those added after that can wait.
        let mut length = 0;
        for _ in 0..2 {
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            let start = &mut self.buffer[..wanted];
            length = copy(self.descriptor.as_fd(), start, 0).map_err(ReadError::Read)?;
            let cells = self.header.recheck(&start[..length])?;
            let needed = self.header.cells_end(cells);
            if needed <= length {
                return Ok(cells);
            }
            if length < wanted {
                return Err(ReadError::Truncated);
            }
            wanted = needed;
        }
        Ok(self.header.cells_within(length))
    }

    fn add_up(&mut self, cells: usize) -> Result<bool, ReadError> {
        let buffer = std::mem::take(&mut self.buffer);
        let copy = &buffer[..self.header.cells_end(cells)];
        let result = self
            .refresh_devices(copy)
            .map(|()| self.accounts.add_up(&self.header, copy, cells, &mut self.reading));
        self.buffer = buffer;
        result
    }

    /// Reads device entries that were added since the last time. Entries never change.
    fn refresh_devices(&mut self, copy_of_start: &[u8]) -> Result<(), ReadError> {
        let used = self.header.devices_used(copy_of_start);
        if self.reading.devices.len() >= used {
            return Ok(());
        }
        let width = self.header.device_bytes();
        let mut entries = [0; PAGE_BYTES];
        while self.reading.devices.len() < used {
            let missing = used - self.reading.devices.len();
            let wanted = missing.min(PAGE_BYTES / width) * width;
            let offset = self.header.device_offset(self.reading.devices.len());
            let length = copy(self.descriptor.as_fd(), &mut entries[..wanted], offset)
                .map_err(ReadError::Read)?;
            if length < wanted {
                return Err(ReadError::Truncated);
            }
            let before = self.reading.devices.len();
            let published = entries[..length].chunks_exact(width).map_while(decode);
            self.reading.devices.extend(published);
            if self.reading.devices.len() - before < length / width {
                // Counted although not published: its process lies, or the machine crashed.
                break;
            }
        }
        Ok(())
    }
}

/// Whether a process holds a writer's lock on the file `name`, ledger or not. False where that cannot
/// be known. Takes no lock itself.
pub fn is_locked(directory: &RuntimeDirectory, name: &str) -> bool {
    open(directory, name)
        .and_then(|descriptor| hold::is_free(descriptor.as_fd()))
        .is_ok_and(|free| !free)
}

fn open(directory: &RuntimeDirectory, name: &str) -> io::Result<OwnedFd> {
    // Without O_NONBLOCK a pipe under that name would hold us up.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(directory, checked(name)?, flags, Mode::empty())?)
}

/// Copies from `offset` until the buffer is full or the file ends. Gives the bytes copied.
fn copy(descriptor: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        let at = offset + u64::try_from(length).expect("a buffer's length fits in 64 bits");
        match retry_on_intr(|| pread(descriptor, &mut buffer[length..], at))? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}
