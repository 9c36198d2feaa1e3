//! The memory that stands for a chip's DRAM and L1, and what of it an address reaches. Only the
//! device's thread has it, so copies need no lock.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;

use telltale_schema::chip::ChipFacts;
use telltale_schema::memory::MemorySpace;

use super::memory::{LiveBuffer, OpenChip};
use crate::kernels::{AccessKind, AccessibleMemory, BufferAccess, KernelFault, Memory};

/// Buffers that are found without a lock.
const REMEMBERED: usize = 64;

/// See the module.
pub(super) struct Reach {
    chip: Arc<OpenChip>,
    dram: Memory,
    l1: Memory,
    remembered: [Cell<Option<Remembered>>; REMEMBERED],
    /// Whether it is noted which buffers are written.
    watches: Cell<bool>,
    /// The addresses of those that were.
    written: RefCell<Vec<u32>>,
}

/// Memories as large as a chip's.
pub(super) struct Memories {
    dram: Memory,
    l1: Memory,
}

/// An address that was looked up, and what was found.
#[derive(Clone, Copy)]
struct Remembered {
    generation: u64,
    address: u32,
    page_bytes: u32,
    /// From the address to the buffer's end.
    bytes: u64,
    start: *mut u8,
}

impl Memories {
    pub(super) fn reserve(facts: &ChipFacts) -> io::Result<Self> {
        let reserve = |bytes: u64| {
            Memory::reserve(usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?)
        };
        Ok(Self {
            dram: reserve(facts.dram_capacity_bytes)?,
            l1: reserve(facts.l1_capacity_bytes())?,
        })
    }
}

impl Reach {
    /// What `chip`'s addresses reach in `memories`, which are as large as its own.
    pub(super) fn new(chip: Arc<OpenChip>, memories: Memories) -> Self {
        let Memories { dram, l1 } = memories;
        Self {
            chip,
            dram,
            l1,
            remembered: [const { Cell::new(None) }; REMEMBERED],
            watches: Cell::new(false),
            written: RefCell::default(),
        }
    }

    /// Notes from now on which buffers kernels write.
    pub(super) fn watch_writes(&self) {
        self.watches.set(true);
    }

    /// The buffers that were written since [`Self::watch_writes`], which ends.
    pub(super) fn written(&self) -> Vec<u32> {
        self.watches.set(false);
        self.written.take()
    }

    /// Copies to the beginning of a live buffer; false if there is none, or it is too small.
    pub(super) fn copy_in(&mut self, address: u32, from: &[u8]) -> bool {
        let Some((buffer, offset)) = self.located(address) else { return false };
        let fits = from.len() as u64 <= buffer.bytes;
        fits && match buffer.space {
            MemorySpace::Dram => self.dram.copy_in(offset, from),
            _ => self.l1.copy_in(offset, from),
        }
    }

    /// A copy of a live buffer.
    pub(super) fn copy_out(&self, address: u32) -> Option<Vec<u8>> {
        let (buffer, offset) = self.located(address)?;
        self.memory(buffer.space).copy_out(offset, usize::try_from(buffer.bytes).ok()?)
    }

    fn located(&self, address: u32) -> Option<(LiveBuffer, usize)> {
        let buffer = self.chip.live.find(address).filter(|found| found.address == address)?;
        Some((buffer, usize::try_from(self.chip.place_in_memory(&buffer)).ok()?))
    }

    fn memory(&self, space: MemorySpace) -> &Memory {
        match space {
            MemorySpace::Dram => &self.dram,
            _ => &self.l1,
        }
    }

    fn find(&self, address: u32) -> Option<Remembered> {
        let generation = self.chip.live.generation();
        // Buffers begin at multiples of 16 or more.
        let slot = &self.remembered[(address >> 4) as usize % REMEMBERED];
        let known =
            slot.get().filter(|known| known.address == address && known.generation == generation);
        known.or_else(|| {
            let found = self.look_up(address, generation);
            slot.set(found);
            found
        })
    }

    #[cold]
    fn look_up(&self, address: u32, generation: u64) -> Option<Remembered> {
        let buffer = self.chip.live.find(address)?;
        let inside = u64::from(address - buffer.address);
        let bytes = buffer.bytes.checked_sub(inside)?;
        let offset = usize::try_from(self.chip.place_in_memory(&buffer) + inside).ok()?;
        let start = self.memory(buffer.space).range(offset, usize::try_from(bytes).ok()?)?;
        Some(Remembered { generation, address, page_bytes: buffer.page_bytes, bytes, start })
    }
}

impl BufferAccess for Reach {
    #[inline]
    fn place(
        &self,
        access: AccessKind,
        address: u32,
        offset: u64,
        bytes: u32,
        page_bytes: u32,
    ) -> Result<AccessibleMemory, KernelFault> {
        let Some(found) = self.find(address) else {
            return Err(KernelFault::NoBuffer { access, address });
        };
        if page_bytes != 0 && page_bytes != found.page_bytes {
            let buffer_page_bytes = found.page_bytes;
            return Err(KernelFault::PageSize { access, address, page_bytes, buffer_page_bytes });
        }
        let end = offset.checked_add(bytes.into());
        let too_long = page_bytes != 0 && bytes > page_bytes;
        if too_long || end.is_none_or(|end| end > found.bytes) {
            let (buffer_bytes, page_bytes) = (found.bytes, found.page_bytes);
            return Err(KernelFault::OutsideBuffer {
                access,
                address,
                offset,
                bytes,
                buffer_bytes,
                page_bytes,
            });
        }
        if self.watches.get() && access == AccessKind::Write {
            self.note_write(address);
        }
        // The end is inside the mapping, so the offset is a usize and the sum does not wrap.
        Ok(AccessibleMemory {
            start: found.start.wrapping_add(usize::try_from(offset).unwrap_or_default()),
        })
    }

    fn extent(&self, address: u32) -> u64 {
        self.find(address).map_or(0, |found| found.bytes)
    }

    fn notes_writes(&self) -> bool {
        self.watches.get()
    }

    #[cold]
    fn note_write(&self, address: u32) {
        let Some(buffer) = self.chip.live.find(address) else { return };
        let mut written = self.written.borrow_mut();
        if !written.contains(&buffer.address) {
            written.push(buffer.address);
        }
    }
}
