//! A chip's memory as one process has it: what it allocated, recorded with its runtime, and which
//! of it is live.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use telltale_runtime::Device;
use telltale_schema::memory::{MemoryKind, MemorySpace};

use super::blame::Undone;
use crate::chip::{AllocateError, bank_bytes, banks};
use crate::client::{DeviceClient, DeviceError};
use crate::machine::ChipDescription;

/// A chip that this process has open, twice over: as the emulator knows it, and as this process's
/// runtime records it.
pub(super) struct OpenChip {
    pub(super) client: DeviceClient,
    /// Its place among the device's chips.
    pub(super) chip: usize,
    pub(super) device: Device,
    pub(super) live: LiveBuffers,
}

/// Something that this process allocated on the chip; freed when dropped.
pub(super) struct Allocation {
    chip: Arc<OpenChip>,
    kind: MemoryKind,
    address: u64,
    bytes: u64,
}

/// A buffer in the DRAM or L1 of an accelerator, made of pages. It is freed when the last handle
/// goes; commands that use it hold one until they are done.
pub struct Buffer {
    allocation: Allocation,
    address: u32,
    page_bytes: u32,
    undone: Undone,
}

/// Why a buffer was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Pages that do not make up the buffer.
    #[error("{bytes} bytes are no whole number of pages of {page_bytes}: choose other sizes")]
    Pages {
        /// The buffer's size.
        bytes: u64,
        /// The page's size.
        page_bytes: u32,
    },
    /// Kernels reach only what is on the chip.
    #[error("kernels cannot reach {} memory: use dram or l1", .0.name())]
    Unreachable(MemoryKind),
}

/// The buffers of this process that kernels may use, by address.
#[derive(Debug, Default)]
pub(super) struct LiveBuffers {
    buffers: Mutex<BTreeMap<u32, LiveBuffer>>,
    /// Changes whenever they do.
    generation: AtomicU64,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiveBuffer {
    pub(super) address: u32,
    pub(super) space: MemorySpace,
    pub(super) bytes: u64,
    pub(super) page_bytes: u32,
    /// What it takes of each bank: addresses below `address` plus this are its own.
    bank_bytes: u64,
}

// === impl OpenChip ===

impl OpenChip {
    pub(super) fn description(&self) -> &ChipDescription {
        &self.client.chips()[self.chip]
    }

    /// Allocates and records it; a refusal is recorded too.
    pub(super) fn allocate(
        self: &Arc<Self>,
        kind: MemoryKind,
        bytes: u64,
    ) -> Result<Allocation, DeviceError> {
        match self.client.allocate(self.chip, kind, bytes) {
            Ok(address) => {
                self.device.allocate(kind, address, bytes);
                Ok(Allocation { chip: Arc::clone(self), kind, address, bytes })
            }
            Err(error) => {
                if matches!(error, DeviceError::Allocate(AllocateError::OutOfMemory { .. })) {
                    self.device.allocation_failed(kind);
                }
                Err(error)
            }
        }
    }

    /// Where a buffer's bytes begin in the memory that stands for its space. Banks' shares lie
    /// one after the other there, so that a buffer's pages do.
    pub(super) fn place_in_memory(&self, buffer: &LiveBuffer) -> u64 {
        u64::from(buffer.address) * banks(&self.description().facts, buffer.space)
    }
}

// === impl Allocation ===

impl Allocation {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.chip.device.free(self.kind, self.address);
        // A device that is gone has freed everything already.
        let _ = self.chip.client.free(self.chip.chip, self.kind, self.address);
    }
}

// === impl Buffer ===

impl Buffer {
    pub(super) fn allocate(
        chip: &Arc<OpenChip>,
        kind: MemoryKind,
        bytes: u64,
        page_bytes: u32,
    ) -> Result<Self, BufferError> {
        if kind.space() == MemorySpace::Host {
            return Err(BufferError::Unreachable(kind));
        }
        if page_bytes == 0 || !bytes.is_multiple_of(page_bytes.into()) {
            return Err(BufferError::Pages { bytes, page_bytes });
        }
        let allocation = chip.allocate(kind, bytes)?;
        let address = u32::try_from(allocation.address).map_err(|_| DeviceError::Confused)?;
        let facts = &chip.description().facts;
        let bank_bytes = bank_bytes(facts, kind.space(), bytes).ok_or(DeviceError::Confused)?;
        let space = kind.space();
        chip.live.insert(LiveBuffer { address, space, bytes, page_bytes, bank_bytes });
        Ok(Self { allocation, address, page_bytes, undone: Undone::default() })
    }

    /// What kernels are given to find it. Addresses of L1 are below all those of DRAM.
    pub fn address(&self) -> u32 {
        self.address
    }

    /// What it is for.
    pub fn kind(&self) -> MemoryKind {
        self.allocation.kind
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.allocation.bytes
    }

    /// The size of its pages.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Whether an operation that should have written it failed.
    pub(super) fn undone(&self) -> &Undone {
        &self.undone
    }

    /// Whether it is a buffer of this chip.
    pub(super) fn is_of(&self, chip: &Arc<OpenChip>) -> bool {
        Arc::ptr_eq(&self.allocation.chip, chip)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.allocation.chip.live.remove(self.address);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Buffer")
            .field("kind", &self.kind())
            .field("bytes", &self.bytes())
            .field("page_bytes", &self.page_bytes)
            .finish_non_exhaustive()
    }
}

// === impl LiveBuffers ===

impl LiveBuffers {
    fn insert(&self, buffer: LiveBuffer) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.insert(buffer.address, buffer);
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn remove(&self, address: u32) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.remove(&address);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Another number than before whenever a buffer came or went.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The buffer that an address is in.
    pub(super) fn find(&self, address: u32) -> Option<LiveBuffer> {
        let buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, buffer) = buffers.range(..=address).next_back()?;
        (u64::from(address - buffer.address) < buffer.bank_bytes).then_some(*buffer)
    }
}
