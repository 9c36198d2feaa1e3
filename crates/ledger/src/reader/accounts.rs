//! Adding up the cells of a copy: per device and kind, over all threads.
//!
//! No allocation unless the ledger has more devices than at the last time.

use telltale_schema::memory::{MemoryKind, MemoryUsage};

use super::{Header, LedgerReading};
use crate::cell::{
    ALLOCATED_BYTES, ALLOCATIONS, CELL_WORDS, CellType, FAILED, FREED_BYTES, FREES,
    OVERFLOW_ALLOCATED_BYTES, OVERFLOW_ALLOCATIONS, OVERFLOW_FREED_BYTES, OVERFLOW_FREES, OWN_PEAK,
    PEAK, TAG, Tag, is_whole, net,
};
use crate::device::DeviceSlot;
use crate::layout::CELL_BYTES;

const KINDS: usize = MemoryKind::ALL.len();

/// The sums of one device and kind.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    allocations: u64,
    allocated_bytes: u64,
    frees: u64,
    freed_bytes: u64,
    peak_bytes: u64,
    failed: u64,
    used: bool,
}

/// Reusable room for adding up.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// By device, then kind.
    sums: Vec<Sums>,
    /// The indices in `sums` that are used.
    used: Vec<usize>,
    cells: usize,
}

impl Accounts {
    /// How many cells were in use at the last time.
    pub(crate) fn cells(&self) -> usize {
        self.cells
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
        self.clear(reading.devices.len() * KINDS);
        self.cells = cells;
        reading.torn = false;
        reading.implausible = header.counts_are_implausible(copy);
        reading.unknown_cells = 0;
        reading.shards = 0;
        reading.faults = header.faults(copy);
        let all = &copy[header.cells_offset()..header.cells_end(cells)];
        if header.cell_bytes() == CELL_BYTES {
            // The size of our own version, known to the compiler: several times faster.
            all.as_chunks::<CELL_BYTES>().0.iter().for_each(|cell| {
                self.add_cell(&words(cell), reading);
            });
        } else {
            for cell in all.chunks_exact(header.cell_bytes()) {
                self.add_cell(&words(cell), reading);
            }
        }
        self.close(reading);
        !(reading.torn || reading.implausible)
    }

    fn clear(&mut self, size: usize) {
        for index in self.used.drain(..) {
            self.sums[index] = Sums::default();
        }
        if self.sums.len() < size {
            self.sums.resize(size, Sums::default());
        }
    }

    fn add_cell(&mut self, words: &[u64; CELL_WORDS], reading: &mut LedgerReading) {
        if words[TAG] == 0 {
            // Claimed, not published yet, and still empty.
            return;
        }
        let tag = Tag::from_word(words[TAG]);
        let known = MemoryKind::from_code(tag.kind)
            .filter(|_| usize::from(tag.device) < reading.devices.len())
            .zip(CellType::from_code(tag.cell_type));
        let Some((_, cell_type)) = known else {
            reading.unknown_cells += 1;
            return;
        };
        let index = usize::from(tag.device) * KINDS + usize::from(tag.kind);
        let sums = &mut self.sums[index];
        if !sums.used {
            sums.used = true;
            self.used.push(index);
        }
        match cell_type {
            CellType::Thread => {
                reading.torn |= !is_whole(words);
                reading.shards = reading.shards.max(u32::from(tag.shard) + 1);
                sums.add([ALLOCATIONS, ALLOCATED_BYTES, FREES, FREED_BYTES].map(|at| words[at]));
                sums.peak_bytes = sums.peak_bytes.max(words[OWN_PEAK]);
            }
            CellType::Shared => {
                let overflow = [
                    OVERFLOW_ALLOCATIONS,
                    OVERFLOW_ALLOCATED_BYTES,
                    OVERFLOW_FREES,
                    OVERFLOW_FREED_BYTES,
                ];
                sums.add(overflow.map(|at| words[at]));
                sums.peak_bytes = sums.peak_bytes.max(words[PEAK]);
                sums.failed = sums.failed.wrapping_add(words[FAILED]);
            }
        }
    }

    fn close(&mut self, reading: &mut LedgerReading) {
        if !self.used.is_sorted() {
            self.used.sort_unstable();
        }
        reading.usage.clear();
        for &index in &self.used {
            let sums = &self.sums[index];
            let live_bytes = net(sums.allocated_bytes, sums.freed_bytes);
            let live_buffers = net(sums.allocations, sums.frees);
            reading.implausible |= live_bytes < 0 || live_buffers < 0;
            let live_bytes = u64::try_from(live_bytes).unwrap_or(0);
            let slot = u16::try_from(index / KINDS).expect("an index came from a 16-bit slot");
            reading.usage.push((
                DeviceSlot(slot),
                MemoryKind::ALL[index % KINDS],
                MemoryUsage {
                    live_bytes,
                    live_buffers: u64::try_from(live_buffers).unwrap_or(0),
                    // Postings may be behind, and a sum may be higher than any of them.
                    peak_bytes: sums.peak_bytes.max(live_bytes),
                    allocations: sums.allocations,
                    allocated_bytes: sums.allocated_bytes,
                    failed_allocations: sums.failed,
                },
            ));
        }
    }
}

impl Sums {
    fn add(&mut self, [allocations, allocated_bytes, frees, freed_bytes]: [u64; 4]) {
        self.allocations = self.allocations.wrapping_add(allocations);
        self.allocated_bytes = self.allocated_bytes.wrapping_add(allocated_bytes);
        self.frees = self.frees.wrapping_add(frees);
        self.freed_bytes = self.freed_bytes.wrapping_add(freed_bytes);
    }
}

/// The words we know of a cell; those that an older, shorter one lacks are zero.
#[inline(always)]
fn words(bytes: &[u8]) -> [u64; CELL_WORDS] {
    let mut words = [0; CELL_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}
