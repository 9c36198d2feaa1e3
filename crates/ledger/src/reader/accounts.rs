//! Adding up the cells of a copy: per device and kind, over all threads.
//!
//! What each cell adds to is worked out when the cells' tags are new and kept for the next time, so
//! that reading the same ledger again and again is a pass of plain additions without allocation.

use telltale_schema::memory::{MemoryKind, MemoryUsage};

use super::{Header, LedgerReading};
use crate::cell::{
    ALLOCATED_BYTES, ALLOCATIONS, CELL_WORDS, CellType, FAILED, FREED_BYTES, FREES,
    OVERFLOW_ALLOCATED_BYTES, OVERFLOW_ALLOCATIONS, OVERFLOW_FREED_BYTES, OVERFLOW_FREES, OWN_PEAK,
    PEAK, TAG, Tag, is_whole, net,
};
use crate::device::DeviceSlot;
use crate::layout::CELL_BYTES;

/// What was worked out of one ledger's cells.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    known: Vec<KnownCell>,
    /// One for each entry of the reading's usage, in the same order.
    sums: Vec<Sums>,
    /// How many devices there were when `known` was worked out.
    devices: usize,
}

/// A cell by its tag.
#[derive(Debug, Clone, Copy)]
struct KnownCell {
    tag: u64,
    adds_to: AddsTo,
}

/// What a cell adds to: an index in `sums`.
#[derive(Debug, Clone, Copy)]
enum AddsTo {
    Thread(usize),
    Shared(usize),
    /// Not published, or unknown to this version.
    Nothing,
}

/// The sums of one device and kind.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    allocations: u64,
    allocated_bytes: u64,
    frees: u64,
    freed_bytes: u64,
    peak_bytes: u64,
    failed: u64,
}

/// The copy has cells that were not known at the last time.
struct NewTags;

// === impl Accounts ===

impl Accounts {
    /// How many cells were in use at the last time.
    pub(crate) fn cells(&self) -> usize {
        self.known.len()
    }

    /// Adds up `cells` cells of a copy into `reading`. Gives false if another copy may be better:
    /// a cell was torn, or more was freed than allocated.
    pub(crate) fn add_up(
        &mut self,
        header: &Header,
        copy: &[u8],
        cells: usize,
        reading: &mut LedgerReading,
    ) -> bool {
        let all = &copy[header.cells_offset()..header.cells_end(cells)];
        let width = header.cell_bytes();
        let known = self.known.len() == cells && self.devices == reading.devices.len();
        let torn = match known.then(|| self.add_cells(all, width)) {
            Some(Ok(torn)) => torn,
            Some(Err(NewTags)) | None => {
                self.work_out(all.chunks_exact(width).map(|cell| words(cell)[TAG]), reading);
                self.add_cells(all, width).unwrap_or_else(|NewTags| {
                    unreachable!("the tags were taken from the same copy")
                })
            }
        };
        reading.torn = torn;
        reading.faults = header.faults(copy);
        reading.implausible = header.counts_are_implausible(copy);
        for (sums, (_, _, usage)) in self.sums.iter().zip(&mut reading.usage) {
            reading.implausible |= sums.close(usage);
        }
        !(reading.torn || reading.implausible)
    }

    /// Works out what each cell adds to.
    fn work_out(&mut self, tags: impl Iterator<Item = u64> + Clone, reading: &mut LedgerReading) {
        let devices = reading.devices.len();
        reading.usage.clear();
        reading.usage.extend(tags.clone().filter_map(|tag| {
            let (slot, kind, _) = identify(tag, devices)?;
            Some((slot, kind, MemoryUsage::default()))
        }));
        reading.usage.sort_unstable_by_key(|(slot, kind, _)| (*slot, *kind));
        reading.usage.dedup_by_key(|(slot, kind, _)| (*slot, *kind));
        reading.unknown_cells = 0;
        reading.shards = 0;
        self.devices = devices;
        self.sums.clear();
        self.sums.resize(reading.usage.len(), Sums::default());
        self.known.clear();
        self.known.extend(tags.map(|tag| {
            let Some((slot, kind, cell_type)) = identify(tag, devices) else {
                reading.unknown_cells += u32::from(tag != 0);
                return KnownCell { tag, adds_to: AddsTo::Nothing };
            };
            let key = (slot, kind);
            let index = reading
                .usage
                .binary_search_by_key(&key, |(slot, kind, _)| (*slot, *kind))
                .expect("each device and kind was put there above");
            let adds_to = match cell_type {
                CellType::Thread => {
                    let shard = u32::from(Tag::from_word(tag).shard);
                    reading.shards = reading.shards.max(shard + 1);
                    AddsTo::Thread(index)
                }
                CellType::Shared => AddsTo::Shared(index),
            };
            KnownCell { tag, adds_to }
        }));
    }

    /// Adds all cells up, if they are those that are known. Gives whether one is torn.
    fn add_cells(&mut self, all: &[u8], width: usize) -> Result<bool, NewTags> {
        self.sums.fill(Sums::default());
        if width == CELL_BYTES {
            // The width of our own version, known to the compiler: much faster.
            self.add_each(all.as_chunks::<CELL_BYTES>().0.iter().map(|cell| words(cell)))
        } else {
            self.add_each(all.chunks_exact(width).map(words))
        }
    }

    #[inline(always)]
    fn add_each(
        &mut self,
        cells: impl Iterator<Item = [u64; CELL_WORDS]>,
    ) -> Result<bool, NewTags> {
        let mut torn = false;
        for (words, known) in cells.zip(&self.known) {
            if words[TAG] != known.tag {
                return Err(NewTags);
            }
            match known.adds_to {
                AddsTo::Thread(index) => {
                    torn |= !is_whole(&words);
                    self.sums[index].add_thread(&words);
                }
                AddsTo::Shared(index) => self.sums[index].add_shared(&words),
                AddsTo::Nothing => {}
            }
        }
        Ok(torn)
    }
}

// === impl Sums ===

impl Sums {
    #[inline(always)]
    fn add_thread(&mut self, words: &[u64; CELL_WORDS]) {
        self.add([ALLOCATIONS, ALLOCATED_BYTES, FREES, FREED_BYTES].map(|at| words[at]));
        self.peak_bytes = self.peak_bytes.max(words[OWN_PEAK]);
    }

    fn add_shared(&mut self, words: &[u64; CELL_WORDS]) {
        let overflow =
            [OVERFLOW_ALLOCATIONS, OVERFLOW_ALLOCATED_BYTES, OVERFLOW_FREES, OVERFLOW_FREED_BYTES];
        self.add(overflow.map(|at| words[at]));
        self.peak_bytes = self.peak_bytes.max(words[PEAK]);
        self.failed = self.failed.wrapping_add(words[FAILED]);
    }

    #[inline(always)]
    fn add(&mut self, [allocations, allocated_bytes, frees, freed_bytes]: [u64; 4]) {
        self.allocations = self.allocations.wrapping_add(allocations);
        self.allocated_bytes = self.allocated_bytes.wrapping_add(allocated_bytes);
        self.frees = self.frees.wrapping_add(frees);
        self.freed_bytes = self.freed_bytes.wrapping_add(freed_bytes);
    }

    /// Turns the sums into figures. Gives whether they are impossible.
    fn close(&self, usage: &mut MemoryUsage) -> bool {
        let live_bytes = net(self.allocated_bytes, self.freed_bytes);
        let live_buffers = net(self.allocations, self.frees);
        let implausible = live_bytes < 0 || live_buffers < 0;
        let live_bytes = u64::try_from(live_bytes).unwrap_or(0);
        *usage = MemoryUsage {
            live_bytes,
            live_buffers: u64::try_from(live_buffers).unwrap_or(0),
            // Postings may be behind, and a sum may be higher than any of them.
            peak_bytes: self.peak_bytes.max(live_bytes),
            allocations: self.allocations,
            allocated_bytes: self.allocated_bytes,
            failed_allocations: self.failed,
        };
        implausible
    }
}

/// What a tag says; none for an unpublished cell and what this version does not know.
fn identify(word: u64, devices: usize) -> Option<(DeviceSlot, MemoryKind, CellType)> {
    let tag = Tag::from_word(word);
    let cell_type = CellType::from_code(tag.cell_type)?;
    let kind = MemoryKind::from_code(tag.kind)?;
    (usize::from(tag.device) < devices).then_some((DeviceSlot(tag.device), kind, cell_type))
}

/// The words we know of a cell; those that an older, shorter one lacks are zero.
#[inline(always)]
pub(super) fn words(bytes: &[u8]) -> [u64; CELL_WORDS] {
    let mut words = [0; CELL_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}
