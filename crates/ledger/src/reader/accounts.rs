//! Adding up the cells of a copy: per device and kind, over all threads.
//!
//! What each cell adds to is worked out when the cells' tags are new and kept for the next time, so
//! that reading the same ledger repeatedly is a pass of plain additions without allocation.

use telltale_schema::memory::{MemoryKind, MemoryUsage};

use super::{LedgerHeader, LedgerReading};
use crate::cell::{
    ALLOCATED_BYTES, ALLOCATIONS, CELL_WORDS, CellType, FAILED, FREED_BYTES, FREES,
    OVERFLOW_ALLOCATED_BYTES, OVERFLOW_ALLOCATIONS, OVERFLOW_FREED_BYTES, OVERFLOW_FREES, OWN_PEAK,
    PEAK, POSTED_LIVE, TAG, TAKEN_PEAK, Tag, is_whole,
};
use crate::device::DeviceSlot;
use crate::layout::CELL_BYTES;

/// What was worked out of one ledger's cells.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    known: Vec<KnownCell>,
    /// How many devices there were when `known` was worked out.
    devices: usize,
}

/// A cell by its tag.
#[derive(Debug, Clone, Copy)]
struct KnownCell {
    tag: u64,
    adds_to: AddsTo,
}

/// What a cell adds to: an index in the reading's usage. A service keeps thousands of these.
#[derive(Debug, Clone, Copy)]
enum AddsTo {
    Thread(u32),
    Shared(u32),
    /// Not published, or unknown to this version.
    Nothing,
}

/// A row of a reading's usage. While cells are added up, its live bytes and buffers are differences
/// that may be below zero, in two's complement.
type Row = (DeviceSlot, MemoryKind, MemoryUsage);

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
        header: &LedgerHeader,
        copy: &[u8],
        cells: usize,
        reading: &mut LedgerReading,
    ) -> bool {
        let all = &copy[header.cells_offset()..header.cells_end(cells)];
        let width = header.cell_bytes();
        let known = self.known.len() == cells && self.devices == reading.devices.len();
        let torn = match known.then(|| self.add_cells(all, width, &mut reading.usage)) {
            Some(Ok(torn)) => torn,
            Some(Err(NewTags)) | None => {
                self.work_out(all.chunks_exact(width).map(|cell| words(cell)[TAG]), reading);
                self.add_cells(all, width, &mut reading.usage).unwrap_or_else(|NewTags| {
                    unreachable!("the tags were taken from the same copy")
                })
            }
        };
        reading.torn = torn;
        reading.faults = header.faults(copy);
        reading.implausible = header.counts_are_implausible(copy);
        for (_, _, usage) in &mut reading.usage {
            reading.implausible |= close(usage);
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
        reading.usage.shrink_to_fit();
        reading.unknown_cells = 0;
        reading.shards = 0;
        self.devices = devices;
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
            let index = u32::try_from(index).expect("there are fewer rows than cells are read");
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
    fn add_cells(&self, all: &[u8], width: usize, rows: &mut [Row]) -> Result<bool, NewTags> {
        for (_, _, usage) in &mut *rows {
            *usage = MemoryUsage::default();
        }
        if width == CELL_BYTES {
            // The width of our own version, known to the compiler: much faster.
            self.add_each(all.as_chunks::<CELL_BYTES>().0.iter().map(|cell| words(cell)), rows)
        } else {
            self.add_each(all.chunks_exact(width).map(words), rows)
        }
    }

    #[inline(always)]
    fn add_each(
        &self,
        cells: impl Iterator<Item = [u64; CELL_WORDS]>,
        rows: &mut [Row],
    ) -> Result<bool, NewTags> {
        let mut torn = false;
        for (words, known) in cells.zip(&self.known) {
            if words[TAG] != known.tag {
                return Err(NewTags);
            }
            match known.adds_to {
                AddsTo::Thread(index) => {
                    torn |= !is_whole(&words);
                    add_thread(&mut rows[index as usize].2, &words);
                }
                AddsTo::Shared(index) => add_shared(&mut rows[index as usize].2, &words),
                AddsTo::Nothing => {}
            }
        }
        Ok(torn)
    }
}

#[inline(always)]
fn add_thread(usage: &mut MemoryUsage, words: &[u64; CELL_WORDS]) {
    add(usage, [ALLOCATIONS, ALLOCATED_BYTES, FREES, FREED_BYTES].map(|at| words[at]));
    usage.peak_bytes = usage.peak_bytes.max(words[OWN_PEAK]).max(words[TAKEN_PEAK]);
}

fn add_shared(usage: &mut MemoryUsage, words: &[u64; CELL_WORDS]) {
    let overflow =
        [OVERFLOW_ALLOCATIONS, OVERFLOW_ALLOCATED_BYTES, OVERFLOW_FREES, OVERFLOW_FREED_BYTES];
    add(usage, overflow.map(|at| words[at]));
    // What is posted is no higher than the peak, unless that was taken.
    let posted = u64::try_from(words[POSTED_LIVE].cast_signed()).unwrap_or(0);
    usage.peak_bytes = usage.peak_bytes.max(words[PEAK]).max(posted);
    usage.failed_allocations = usage.failed_allocations.wrapping_add(words[FAILED]);
}

#[inline(always)]
fn add(usage: &mut MemoryUsage, [allocations, allocated, frees, freed]: [u64; 4]) {
    usage.allocations = usage.allocations.wrapping_add(allocations);
    usage.allocated_bytes = usage.allocated_bytes.wrapping_add(allocated);
    usage.live_buffers = usage.live_buffers.wrapping_add(allocations).wrapping_sub(frees);
    usage.live_bytes = usage.live_bytes.wrapping_add(allocated).wrapping_sub(freed);
}

/// Turns the sums into values. Gives whether they are impossible.
fn close(usage: &mut MemoryUsage) -> bool {
    let implausible = usage.live_bytes.cast_signed() < 0 || usage.live_buffers.cast_signed() < 0;
    usage.live_bytes = u64::try_from(usage.live_bytes.cast_signed()).unwrap_or(0);
    usage.live_buffers = u64::try_from(usage.live_buffers.cast_signed()).unwrap_or(0);
    // Postings may be behind, and a sum may be higher than any of them.
    usage.peak_bytes = usage.peak_bytes.max(usage.live_bytes);
    implausible
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
