//! The writer: one process's own ledger, and the recorders its threads count with.
//!
//! Counting is in `writer::recorder` and takes no lock, makes no system call and allocates
//! nothing. Everything else here happens once for a process, a device, a thread, or a thread's
//! first use of a device and kind.

mod faults;
mod recorder;
mod registry;
mod start;

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, getpid};
use telltale_schema::memory::MemoryKind;

use crate::device::{DeviceEntry, DeviceSlot};
use crate::directory::RuntimeDirectory;
use crate::file::{CreateError, LedgerFile};
use crate::hold;
use crate::layout::{CELL_BYTES, CELLS_OFFSET, FILE_BYTES, KINDS_CAPACITY, header as at};
use crate::mapping::Mapping;
use crate::owner::LedgerOwner;
use crate::posting::PostingMode;
use crate::reader::{Accounts, LedgerHeader, LedgerReading, MOST_COPIES, settle};
use crate::sync::{
    Arc, AtomicU32, Mutex, MutexGuard, Ordering, PoisonError, prepare_heavy_barrier,
};

pub use faults::Faults;
pub use recorder::Recorder;
pub use registry::AddDeviceError;
pub(crate) use start::write_header;

use registry::Registry;

/// One process's ledger. Clones are handles to the same one; the file goes when the last handle
/// and the last [`Recorder`] are dropped, or at [`Ledger::remove`].
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

/// What handles and recorders share.
struct Inner {
    mode: PostingMode,
    /// Set once this process is a child that must leave its parent's ledger alone.
    abandoned: AtomicU32,
    mapping: Mapping,
    file: LedgerFile,
    owner: LedgerOwner,
    /// Who made the ledger: a forked child has another pid.
    creator: Pid,
    registry: Mutex<Registry>,
}

// === impl Ledger ===

impl Ledger {
    /// Makes the ledger of this process in `directory`. `owner` must name this process.
    pub fn create(directory: &RuntimeDirectory, owner: LedgerOwner) -> Result<Self, CreateError> {
        let (file, mapping) = LedgerFile::create(directory, &owner.identity, |file| {
            let mapping = Mapping::writable(file, FILE_BYTES).map_err(CreateError::Map)?;
            // Before the header is complete, and long before anyone can open the file.
            write_header(&mapping, &owner, hold::take(file));
            Ok(mapping)
        })?;
        prepare_heavy_barrier();
        let inner = Inner {
            mode: PostingMode::new(),
            abandoned: AtomicU32::new(0),
            mapping,
            file,
            owner,
            creator: getpid(),
            registry: Mutex::new(Registry::new()),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Adds a device, or finds the slot of one that was added before with the same content.
    pub fn add_device(&self, entry: &DeviceEntry) -> Result<DeviceSlot, AddDeviceError> {
        let inner = &*self.inner;
        inner.registry().add_device(&inner.mapping, &inner.file, entry)
    }

    /// Counts `buffers` allocations of `bytes` together as freed, as when the device they were on
    /// is closed. It makes no difference to how exact the peak is. No thread may record
    /// for this device meanwhile, or what it records may be lost.
    pub fn release(&self, slot: DeviceSlot, kind: MemoryKind, buffers: u64, bytes: u64) {
        let inner = &*self.inner;
        let index = slot.index() * KINDS_CAPACITY + usize::from(kind.code());
        let amount = (buffers, bytes);
        let mut registry = inner.registry();
        if !registry.release(&inner.mode, &inner.mapping, &inner.file, index, amount) {
            self.faults().unrecorded();
        }
    }

    /// A recorder for one thread. It reuses the cells of a recorder that was dropped.
    pub fn recorder(&self) -> Recorder {
        let mut registry = self.inner.registry();
        let shard = registry.shard(&self.inner.mode, &self.inner.mapping);
        Recorder::new(Arc::clone(&self.inner), shard)
    }

    /// The counters of what goes wrong in recording.
    pub fn faults(&self) -> Faults<'_> {
        Faults::new(&self.inner.mapping)
    }

    /// A descriptor of the file that cannot be written through, for another process.
    pub fn read_only_descriptor(&self) -> io::Result<OwnedFd> {
        self.inner.file.read_only_descriptor()
    }

    /// The file's name in the runtime directory.
    pub fn file_name(&self) -> &str {
        self.inner.file.name()
    }

    /// Whose ledger it is.
    pub fn owner(&self) -> &LedgerOwner {
        &self.inner.owner
    }

    /// The values as a reader would see them, without the file.
    pub fn usage(&self) -> LedgerReading {
        self.inner.usage()
    }

    /// Removes the file's name now. Recording and handed-out descriptors go on working.
    pub fn remove(&self) {
        if self.inner.is_ours() {
            self.inner.file.remove();
        }
    }

    /// To be called in a forked child, before anything is recorded there: puts private memory in
    /// place of the parent's ledger, so that recorders the child inherited count into nothing, and
    /// leaves the parent's file alone when they are dropped. The child makes a ledger of its own.
    ///
    /// One store and one system call, no lock: fit for a `pthread_atfork` handler. If even
    /// that call fails, the error says so, and the child must not record.
    pub fn abandon(&self) -> io::Result<()> {
        self.inner.abandoned.store(1, Ordering::Relaxed);
        self.inner.mapping.detach()
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Ledger").field("file", &self.file_name()).finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        // A panic while the lock is held leaves at worst a cell that is claimed and unused.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the process that made the ledger, and not a child of it.
    fn is_ours(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) == 0 && getpid() == self.creator
    }

    fn usage(&self) -> LedgerReading {
        let used = self.mapping.word(at::CELLS_USED).load(Ordering::Acquire);
        let cells = usize::try_from(used).expect("the count of cells fits in a usize");
        // After the count, so that the devices of all these cells are there.
        let devices = self.registry().devices().to_vec();
        let mut copy = Vec::new();
        self.copy_into(&mut copy, CELLS_OFFSET + cells * CELL_BYTES);
        let size = u64::try_from(FILE_BYTES).expect("the file's size fits in 64 bits");
        let header = LedgerHeader::check(&copy, size).expect("a ledger of our own is in order");
        let mut reading = header.empty_reading(self.owner.uid);
        reading.devices = devices;
        let mut accounts = Accounts::default();
        let mut before = Vec::new();
        for _ in 0..MOST_COPIES {
            let moving = settle(&header, &before, &mut copy);
            let is_good = accounts.add_up(&header, &copy, cells, &mut reading);
            if is_good || !(moving || reading.implausible) {
                break;
            }
            std::mem::swap(&mut before, &mut copy);
            self.copy_into(&mut copy, CELLS_OFFSET + cells * CELL_BYTES);
        }
        reading
    }

    fn copy_into(&self, copy: &mut Vec<u8>, length: usize) {
        copy.resize(length, 0);
        for (word, offset) in copy.chunks_exact_mut(8).zip((0..).step_by(8)) {
            let value = self.mapping.word(offset).load(Ordering::Relaxed);
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_ours() {
            self.file.remove();
        }
    }
}

// Handles are for any thread; a recorder may move to one.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    const fn is_send<T: Send>() {}
    is_send_and_sync::<Ledger>();
    is_send::<Recorder>();
};
