//! Which thread has which cells: devices, shards and claims, all under one lock.
//!
//! Nothing here is on the path of an update.

use crate::cell::{Cell, CellType, Tag};
use crate::claims::{Claims, PairClaims, publish};
use crate::device::{DeviceEntry, DeviceSlot, publish as publish_device};
use crate::file::LedgerFile;
use crate::layout::{
    CELL_BYTES, CELLS_CAPACITY, CELLS_OFFSET, DEVICE_BYTES, DEVICES_CAPACITY, DEVICES_OFFSET,
    KINDS_CAPACITY, PAGE_BYTES, SHARDS_CAPACITY, header as at,
};
use crate::mapping::Mapping;
use crate::posting::{PostingMode, overflow_frees, take_over};
use crate::sync::{Arc, AtomicI64, AtomicPtr, AtomicU32, Ordering};

/// Device entries on one page: memory for them is reserved a page at a time.
const DEVICES_PER_PAGE: usize = PAGE_BYTES / DEVICE_BYTES;

/// Why a device has no slot.
#[derive(Debug, thiserror::Error)]
pub enum AddDeviceError {
    /// There are too many.
    #[error(
        "the ledger already has {DEVICES_CAPACITY} devices; close some and restart the process"
    )]
    TooMany,
    /// There is no memory for its entry.
    #[error(
        "cannot reserve memory for one more device; \
         free space on the runtime directory's file system"
    )]
    Reserve(#[source] std::io::Error),
}

/// The cells of one thread at a time; kept for the next thread when it ends.
pub(super) struct Shard {
    number: u16,
    /// By device, then kind: `KINDS_CAPACITY` for each device.
    entries: Box<[ShardEntry]>,
}

/// What a shard has for one device and kind. The pointers lead into the ledger's map and are null
/// until claimed; all fields are written under the registry's lock, except `posted`, which belongs
/// to the shard's one writer.
#[repr(C)]
pub(super) struct ShardEntry {
    cell: AtomicPtr<Cell>,
    shared: AtomicPtr<Cell>,
    posted: AtomicI64,
    refused: AtomicU32,
}

/// The lock's content.
pub(super) struct Registry {
    claims: Claims,
    pairs: Vec<PairClaims>,
    devices: Vec<DeviceEntry>,
    shards: Vec<Arc<Shard>>,
    free_shards: Vec<u16>,
    growth_refused: bool,
}

// The standard library writes zeroes into over-aligned memory, where it asks for fresh pages for the
// rest: a greater alignment would make the whole table resident for each thread.
const _: () = assert!(align_of::<ShardEntry>() <= 16 && size_of::<ShardEntry>() == 32);

/// What a shard got for a device and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    /// A cell of its own.
    Own,
    /// Only the shared cell.
    SharedOnly,
    /// Nothing: events cannot be recorded.
    Nothing,
}

// === impl Shard, Entry ===

impl Shard {
    fn new(number: u16) -> Self {
        let entries = Box::new_zeroed_slice(DEVICES_CAPACITY * KINDS_CAPACITY);
        // SAFETY: all fields of an Entry are atomics of integers and pointers, for which all-zero
        // bytes are valid. Zeroed memory from the allocator is not touched until used, so that the
        // room for devices that never come costs no resident memory; safe code would write it.
        let entries = unsafe { entries.assume_init() };
        Self { number, entries }
    }

    /// The entry of a device and kind; none if the slot is none that a ledger gives.
    #[inline(always)]
    pub(super) fn entry(&self, slot: DeviceSlot, kind: u16) -> Option<&ShardEntry> {
        self.entries.get(slot.index() * KINDS_CAPACITY + usize::from(kind))
    }

    pub(super) fn entries(&self) -> &[ShardEntry] {
        &self.entries
    }
}

impl ShardEntry {
    /// The shard's own cell; null until claimed.
    #[inline(always)]
    pub(super) fn cell(&self) -> *const Cell {
        self.cell.load(Ordering::Relaxed)
    }

    /// The shared cell; null until claimed.
    pub(super) fn shared(&self) -> *const Cell {
        // Written by another thread when the second shard appears.
        // SYNC: several shards
        self.shared.load(Ordering::Acquire)
    }

    /// What the shard has posted.
    #[inline(always)]
    pub(super) fn posted(&self) -> &AtomicI64 {
        &self.posted
    }

    /// Whether nothing could be claimed, once and for all.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed) != 0
    }

    fn set_cell(&self, cell: &Cell) {
        self.cell.store(std::ptr::from_ref(cell).cast_mut(), Ordering::Relaxed);
    }

    fn set_shared(&self, cell: &Cell) {
        // SYNC: several shards
        self.shared.store(std::ptr::from_ref(cell).cast_mut(), Ordering::Release);
    }
}

// === impl Registry ===

impl Registry {
    pub(super) fn new() -> Self {
        Self {
            claims: Claims::new((PAGE_BYTES - CELLS_OFFSET) / CELL_BYTES),
            pairs: Vec::new(),
            devices: Vec::new(),
            shards: Vec::new(),
            free_shards: Vec::new(),
            growth_refused: false,
        }
    }

    pub(super) fn devices(&self) -> &[DeviceEntry] {
        &self.devices
    }

    /// How many pairs of device and kind there may be cells for.
    pub(super) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn add_device(
        &mut self,
        mapping: &Mapping,
        file: &LedgerFile,
        entry: &DeviceEntry,
    ) -> Result<DeviceSlot, AddDeviceError> {
        let known = self.devices.iter().position(|known| known == entry);
        let index = known.unwrap_or(self.devices.len());
        let slot = u16::try_from(index).map_err(|_| AddDeviceError::TooMany)?;
        if known.is_some() {
            return Ok(DeviceSlot(slot));
        }
        if index >= DEVICES_CAPACITY {
            return Err(AddDeviceError::TooMany);
        }
        let offset = DEVICES_OFFSET + index * DEVICE_BYTES;
        if index.is_multiple_of(DEVICES_PER_PAGE) {
            file.reserve(offset, PAGE_BYTES).map_err(AddDeviceError::Reserve)?;
        }
        publish_device(mapping, DeviceSlot(slot), entry);
        self.devices.push(entry.clone());
        self.pairs.resize(self.devices.len() * KINDS_CAPACITY, PairClaims::default());
        Ok(DeviceSlot(slot))
    }

    /// A shard for a new recorder: one that is free, else a new one. With the second one, the
    /// first one's values go to the shared cells. None when all are taken.
    pub(super) fn shard(&mut self, mode: &PostingMode, mapping: &Mapping) -> Option<Arc<Shard>> {
        if let Some(number) = self.free_shards.pop() {
            return Some(Arc::clone(&self.shards[usize::from(number)]));
        }
        if self.shards.len() >= SHARDS_CAPACITY {
            return None;
        }
        if self.shards.len() == 1 {
            self.become_several(mode, mapping);
        }
        let number = u16::try_from(self.shards.len()).expect("shards are bounded");
        let shard = Arc::new(Shard::new(number));
        self.shards.push(Arc::clone(&shard));
        Some(shard)
    }

    /// Keeps the shard of a dropped recorder for the next one.
    pub(super) fn give_back(&mut self, shard: &Shard) {
        debug_assert!(!self.free_shards.contains(&shard.number), "a shard has one recorder");
        self.free_shards.push(shard.number);
    }

    fn become_several(&mut self, mode: &PostingMode, mapping: &Mapping) {
        // Without the barrier (a sandbox forbids it), an update that the first thread makes at
        // this very moment is missing from the posted sums until it records there again.
        let _ = mode.begin_several();
        let first = Arc::clone(&self.shards[0]);
        for index in 0..self.pairs.len() {
            if !self.pairs[index].has_thread_cell {
                continue;
            }
            let shared = self.shared_cell(mapping, index).expect("it is owed to a recorded pair");
            let entry = &first.entries[index];
            // SAFETY: the pointer is null or was set from a cell of this map, which outlives the
            // registry's users: `Inner` holds both.
            let own = unsafe { entry.cell().as_ref() };
            if let Some(own) = own {
                take_over(shared, own, &entry.posted);
            }
            entry.set_shared(shared);
        }
        mode.finish_several();
    }

    /// Finds cells for a shard's first record of a device and kind.
    pub(super) fn claim(
        &mut self,
        mapping: &Mapping,
        file: &LedgerFile,
        shard: &Shard,
        slot: DeviceSlot,
        kind: u16,
        several: bool,
    ) -> Claimed {
        let index = slot.index() * KINDS_CAPACITY + usize::from(kind);
        let Some(entry) = shard.entries.get(index).filter(|_| index < self.pairs.len()) else {
            return Claimed::Nothing;
        };
        let own = self.growing(file, |claims, pairs| claims.thread_cell(&mut pairs[index]));
        if let Some(cell_index) = own {
            let cell = mapping.cell(cell_index);
            let tag = tag(slot, kind, shard.number, CellType::Thread);
            publish(mapping.word(at::CELLS_USED), cell, cell_index, tag);
            if several {
                let shared = self.shared_cell(mapping, index).expect("it is owed");
                entry.set_shared(shared);
            }
            entry.set_cell(cell);
            return Claimed::Own;
        }
        match self.shared_cell_growing(mapping, file, index) {
            Some(shared) => {
                entry.set_shared(shared);
                Claimed::SharedOnly
            }
            None => {
                entry.refused.store(1, Ordering::Relaxed);
                Claimed::Nothing
            }
        }
    }

    /// Counts frees of all that is left of a device and kind, in which no thread records meanwhile.
    /// Returns whether there was room for that.
    pub(super) fn release(
        &mut self,
        mode: &PostingMode,
        mapping: &Mapping,
        file: &LedgerFile,
        index: usize,
        (buffers, bytes): (u64, u64),
    ) -> bool {
        // The only shard keeps the peak by its own net bytes, so that these must come down there.
        let only = self.shards.first().filter(|_| mode.is_single());
        let entry = only.and_then(|shard| shard.entries.get(index));
        // SAFETY: the pointer is null or was set from a cell of this map, which outlives the
        // registry's users: `Inner` holds both.
        if let Some(own) = entry.and_then(|entry| unsafe { entry.cell().as_ref() }) {
            own.count_frees(buffers, bytes);
            return true;
        }
        let shared = self.shared_cell_growing(mapping, file, index);
        shared.inspect(|shared| overflow_frees(shared, buffers, bytes)).is_some()
    }

    /// The shared cell of a device and kind; claimed if there is none and there is room.
    pub(super) fn shared_cell_growing<'map>(
        &mut self,
        mapping: &'map Mapping,
        file: &LedgerFile,
        index: usize,
    ) -> Option<&'map Cell> {
        if index >= self.pairs.len() {
            return None;
        }
        if self.pairs[index].shared.is_none() {
            let claimed = self.growing(file, |claims, pairs| claims.shared_cell(&mut pairs[index]));
            if let Some(cell_index) = claimed {
                self.publish_shared(mapping, index, cell_index);
            }
        }
        self.pairs[index].shared.map(|cell_index| mapping.cell(cell_index))
    }

    fn shared_cell<'map>(&mut self, mapping: &'map Mapping, index: usize) -> Option<&'map Cell> {
        if self.pairs[index].shared.is_none() {
            let cell_index = self.claims.shared_cell(&mut self.pairs[index])?;
            self.publish_shared(mapping, index, cell_index);
        }
        self.pairs[index].shared.map(|cell_index| mapping.cell(cell_index))
    }

    fn publish_shared(&self, mapping: &Mapping, index: usize, cell_index: usize) {
        let slot = u16::try_from(index / KINDS_CAPACITY).expect("slots are bounded");
        let kind = u16::try_from(index % KINDS_CAPACITY).expect("kinds are bounded");
        let tag = tag(DeviceSlot(slot), kind, 0, CellType::Shared);
        publish(mapping.word(at::CELLS_USED), mapping.cell(cell_index), cell_index, tag);
    }

    /// Claims, reserving one more page if there is no room.
    fn growing(
        &mut self,
        file: &LedgerFile,
        mut claim: impl FnMut(&mut Claims, &mut [PairClaims]) -> Option<usize>,
    ) -> Option<usize> {
        loop {
            let claimed = claim(&mut self.claims, &mut self.pairs);
            if claimed.is_some() || !self.grow(file) {
                return claimed;
            }
        }
    }

    fn grow(&mut self, file: &LedgerFile) -> bool {
        let offset = CELLS_OFFSET + self.claims.reserved() * CELL_BYTES;
        if self.growth_refused || offset >= DEVICES_OFFSET {
            return false;
        }
        // A file system that is full stays refused: retrying would cost each record a call.
        self.growth_refused = file.reserve(offset, PAGE_BYTES).is_err();
        if !self.growth_refused {
            let cells = self.claims.reserved() + PAGE_BYTES / CELL_BYTES;
            self.claims.grow_to(cells.min(CELLS_CAPACITY));
        }
        !self.growth_refused
    }
}

fn tag(slot: DeviceSlot, kind: u16, shard: u16, cell_type: CellType) -> Tag {
    Tag { device: slot.0, kind, shard, cell_type: cell_type.code() }
}
