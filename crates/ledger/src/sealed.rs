//! A ledger for a process that knows nothing of it: a preloaded library records there.
//!
//! All its memory is reserved when it is made, and no descriptor stays open: the program may close
//! whatever it did not open, and finds no number taken. A child that is forked does not have the
//! map, and so not the lock by which the ledger counts as alive. Counting takes no lock, makes no
//! system call, needs no thread-local storage and may happen in a signal handler.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, getpid};
use telltale_schema::memory::MemoryKind;

use crate::cell::{Cell, CellType, Tag};
use crate::claims::publish;
use crate::device::{DeviceEntry, DeviceSlot};
use crate::directory::RuntimeDirectory;
use crate::file::{CreateError, LedgerFile};
use crate::hold;
use crate::layout::{CELL_BYTES, CELLS_OFFSET, DEVICE_BYTES, FILE_BYTES, PAGE_BYTES, header as at};
use crate::mapping::Mapping;
use crate::owner::LedgerOwner;
use crate::posting::{count_failure, sealed_allocation, sealed_free};
use crate::sync::{Mutex, PoisonError};
use crate::writer::{Faults, write_header};

/// Devices that a sealed ledger has room for: one page of entries.
pub const SEALED_DEVICES: usize = PAGE_BYTES / DEVICE_BYTES;

/// Cells that it has room for: what the header leaves of the first page.
const CELLS: usize = (PAGE_BYTES - CELLS_OFFSET) / CELL_BYTES;

/// One process's ledger, made once and for all.
pub struct SealedLedger {
    mapping: Mapping,
    /// The file's whole name, for a removal without any allocation.
    path: CString,
    device: u64,
    inode: u64,
    creator: Pid,
    given: Mutex<Given>,
}

/// What has been given out.
#[derive(Debug, Default)]
struct Given {
    devices: Vec<DeviceEntry>,
    cells: Vec<(DeviceSlot, MemoryKind)>,
}

/// Where one device's memory of one kind is counted. Any thread may count, at any time.
#[derive(Clone, Copy)]
pub struct Account<'ledger> {
    cell: &'ledger Cell,
}

// === impl SealedLedger ===

impl SealedLedger {
    /// Makes the ledger of this process in `directory`. `owner` must name this process.
    ///
    /// # Errors
    /// As [`crate::Ledger::create`], and where the kernel cannot keep the map from children.
    pub fn create(directory: &RuntimeDirectory, owner: &LedgerOwner) -> Result<Self, CreateError> {
        let (file, mapping) = LedgerFile::create(directory, &owner.identity, |file| {
            let mapping = Mapping::writable(file, FILE_BYTES).map_err(CreateError::Map)?;
            mapping.keep_from_children().map_err(CreateError::Map)?;
            write_header(&mapping, owner, hold::take(file));
            Ok(mapping)
        })?;
        let named = whole_name(directory, file.name());
        let (device, inode) = file.identity();
        match named {
            Ok(path) => {
                let given = Mutex::new(Given::default());
                Ok(Self { mapping, path, device, inode, creator: getpid(), given })
            }
            Err(source) => {
                file.remove();
                let (directory, name) = (directory.path().into(), file.name().to_owned());
                Err(CreateError::Create { directory, name, source })
            }
        }
    }

    /// Adds a device, or finds one with the same content. `None` beyond [`SEALED_DEVICES`].
    pub fn add_device(&self, entry: &DeviceEntry) -> Option<DeviceSlot> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let known = given.devices.iter().position(|known| known == entry);
        let index = known.unwrap_or(given.devices.len());
        let slot = DeviceSlot(u16::try_from(index).ok().filter(|_| index < SEALED_DEVICES)?);
        if known.is_none() {
            crate::device::publish(&self.mapping, slot, entry);
            given.devices.push(entry.clone());
        }
        Some(slot)
    }

    /// Where memory of `kind` on a device is counted. `None` for a device that was not added, and
    /// where all cells are given out.
    pub fn account(&self, slot: DeviceSlot, kind: MemoryKind) -> Option<Account<'_>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.index() >= given.devices.len() {
            return None;
        }
        let known = given.cells.iter().position(|known| *known == (slot, kind));
        let index = known.unwrap_or(given.cells.len());
        if index >= CELLS {
            return None;
        }
        let cell = self.mapping.cell(index);
        if known.is_none() {
            let cell_type = CellType::Shared.code();
            let tag = Tag { device: slot.0, kind: kind.code(), shard: 0, cell_type };
            publish(self.mapping.word(at::CELLS_USED), cell, index, tag);
            given.cells.push((slot, kind));
        }
        Some(Account { cell })
    }

    /// The counters of what goes wrong in recording.
    pub fn faults(&self) -> Faults<'_> {
        Faults::new(&self.mapping)
    }

    /// Removes the file, unless this is another process than the one that made it. Three system calls and no
    /// allocation, so that it may be called where a process ends, even in a signal handler.
    pub fn remove(&self) {
        let is_ours =
            |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino) == (self.device, self.inode);
        let path: &CStr = &self.path;
        if getpid() == self.creator && rustix::fs::lstat(path).is_ok_and(is_ours) {
            // A failure leaves what a killed process leaves: a file that `smi -c` removes.
            let _ = rustix::fs::unlink(path);
        }
    }
}

impl fmt::Debug for SealedLedger {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("SealedLedger").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The file's name from the root: the program may go to another working directory.
fn whole_name(directory: &RuntimeDirectory, name: &str) -> io::Result<CString> {
    let path = directory.path().canonicalize()?.join(name);
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

// === impl Account ===

impl Account<'_> {
    /// Counts an allocation of `bytes`.
    #[inline]
    pub fn allocated(self, bytes: u64) {
        sealed_allocation(self.cell, bytes);
    }

    /// Counts the free of an allocation of `bytes`.
    #[inline]
    pub fn freed(self, bytes: u64) {
        sealed_free(self.cell, bytes);
    }

    /// Counts an allocation that was refused.
    pub fn failed(self) {
        count_failure(self.cell);
    }
}

impl fmt::Debug for Account<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Account").finish_non_exhaustive()
    }
}
