//! The tables of a mapped region: rows claimed and vacated, counters added and taken, reset.
//!
//! What needs the file's lock says so. Counters are atomics that any process may change at any
//! time: takes saturate and return what was really there, so the sum of rows and the total move by
//! the same amount. Nothing here opens, locks or waits.
#![forbid(unsafe_code)]

use super::super::layout::{
    CHIP_ROWS, INIT_STATE_IN_PROGRESS, INIT_STATE_READY, Layout, PROCESS_NAME_BYTES, PROCESS_ROWS,
    RELEASING, RegionKind, UNUSED_CHIP,
};
use crate::mapping::Mapping;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Bytes from the end of the process rows to the intent word, in the padding: past version 4's
/// `init_state`, which a reader of that version may search for in any file of this size.
const INTENT_AFTER_ROWS: usize = 8;

/// The row of an intent to initialise a region of version 4.
const INITIALISING: usize = PROCESS_ROWS;

const _: () = assert!(cfg!(target_endian = "little"), "regions are little-endian");

/// A region's words by meaning.
#[derive(Debug)]
pub(super) struct RegionTable {
    mapping: Mapping,
    layout: &'static Layout,
}

/// Adds `bytes` as they are: the sum of all allocations that live stays far below 2^64.
pub(super) fn add(counter: &AtomicU64, bytes: u64) {
    counter.fetch_add(bytes, Ordering::Relaxed);
}

/// Takes up to `bytes` and returns what was taken.
pub(super) fn take(counter: &AtomicU64, bytes: u64) -> u64 {
    let before = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
        Some(held.saturating_sub(bytes))
    });
    bytes.min(before.unwrap_or_else(|held| held))
}

impl RegionTable {
    pub(super) fn new(mapping: Mapping, layout: &'static Layout) -> Self {
        let table = Self { mapping, layout };
        assert!(table.intent_offset() + 8 <= layout.size_bytes, "the padding has room");
        table
    }

    /// The kinds that have counters here.
    pub(super) fn kinds(&self) -> impl Iterator<Item = RegionKind> + use<> {
        RegionKind::ALL.into_iter().take(self.layout.kind_count)
    }

    pub(super) fn version(&self) -> &AtomicU32 {
        self.mapping.half_word(Layout::VERSION)
    }

    pub(super) fn last_update(&self) -> &AtomicU64 {
        self.mapping.word(Layout::LAST_UPDATE)
    }

    pub(super) fn reference_count(&self) -> &AtomicU32 {
        self.mapping.half_word(Layout::REFERENCE_COUNT)
    }

    pub(super) fn total(&self, kind: RegionKind) -> Option<&AtomicU64> {
        Some(self.mapping.word(self.layout.total(kind)?))
    }

    pub(super) fn pid(&self, row: usize) -> &AtomicU32 {
        self.mapping.half_word(self.layout.process(row))
    }

    pub(super) fn process_counter(&self, row: usize, kind: RegionKind) -> Option<&AtomicU64> {
        Some(self.mapping.word(self.layout.process_counter(row, kind)?))
    }

    pub(super) fn process_last_update(&self, row: usize) -> &AtomicU64 {
        self.mapping.word(self.layout.process_last_update(row))
    }

    pub(super) fn chip_counter(&self, row: usize, kind: RegionKind) -> Option<&AtomicU64> {
        Some(self.mapping.word(self.layout.chip_counter(row, kind)?))
    }

    fn chip_id(&self, row: usize) -> &AtomicU32 {
        self.mapping.half_word(self.layout.chip(row))
    }

    /// The chip id of an unused row.
    fn unused_chip(&self) -> u32 {
        if self.layout.version == 1 { 0 } else { UNUSED_CHIP }
    }

    /// Whether nothing was ever written, or its writer has not finished. Needs the lock.
    pub(super) fn is_new(&self) -> bool {
        match self.init_state() {
            Some(state) => state.load(Ordering::Acquire) != INIT_STATE_READY,
            // SYNC: region-version.
            None => self.version().load(Ordering::Acquire) == 0,
        }
    }

    /// Version 4's word about its initialisation.
    fn init_state(&self) -> Option<&AtomicU32> {
        Some(self.mapping.half_word(self.layout.init_state_offset?))
    }

    /// Makes a region of a file that is none yet. False while another program does: version 4's
    /// writers agree by a word of the region, without our lock. Needs the lock.
    pub(super) fn initialise(&self, gateway_chip_id: u32) -> bool {
        if !self.is_new() {
            return true;
        }
        let Some(state) = self.init_state() else {
            self.reset(gateway_chip_id);
            return true;
        };
        // By the intent the next one knows that it was one of ours that died at this.
        self.begin_intent(INITIALISING, 0);
        let (from, to) = (0, INIT_STATE_IN_PROGRESS);
        let claimed = state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if claimed.is_ok() {
            self.reset(gateway_chip_id);
            self.write_version();
            // SYNC: region-version. In version 4 this word says that the region is initialised.
            state.store(INIT_STATE_READY, Ordering::Release);
        }
        self.end_intent();
        claimed.is_ok() || claimed == Err(INIT_STATE_READY)
    }

    /// Says which layout it is. Needs the lock.
    pub(super) fn write_version(&self) {
        // SYNC: region-version. Who sees the version sees an initialised region.
        self.version().store(self.layout.version, Ordering::Release);
    }

    /// Writes who the region is about, as every attaching process does. Needs the lock.
    pub(super) fn write_identity(&self, board_serial: u64, asic_id: u64, device_id: u32) {
        self.mapping.word(Layout::BOARD_SERIAL).store(board_serial, Ordering::Relaxed);
        self.mapping.word(Layout::ASIC_ID).store(asic_id, Ordering::Relaxed);
        self.mapping.half_word(Layout::DEVICE_ID).store(device_id, Ordering::Relaxed);
    }

    /// Zeroes totals and chip rows and gives row 0 to the gateway chip; for a region that no process is
    /// attached to. Needs the lock.
    pub(super) fn reset(&self, gateway_chip_id: u32) {
        for kind in self.kinds() {
            self.total(kind).expect("kinds() has counters").store(0, Ordering::Relaxed);
        }
        for row in 0..CHIP_ROWS {
            self.chip_id(row).store(self.unused_chip(), Ordering::Relaxed);
            self.mapping.half_word(self.layout.chip_is_remote(row)).store(0, Ordering::Relaxed);
            for kind in self.kinds() {
                let counter = self.chip_counter(row, kind).expect("kinds() has counters");
                counter.store(0, Ordering::Relaxed);
            }
        }
        self.chip_id(0).store(gateway_chip_id, Ordering::Release);
    }

    /// The taken process rows with their pids, as the file has them. Needs the lock.
    pub(super) fn taken_rows(&self) -> Vec<(usize, u32)> {
        let rows = (0..PROCESS_ROWS).map(|row| (row, self.pid(row).load(Ordering::Acquire)));
        rows.filter(|(_, pid)| *pid != 0).collect()
    }

    /// Whether no process is attached. Needs the lock.
    pub(super) fn is_idle(&self) -> bool {
        self.reference_count().load(Ordering::Relaxed) == 0 && self.taken_rows().is_empty()
    }

    /// `num_active_processes` is the number of rows. Needs the lock.
    pub(super) fn write_process_count(&self) {
        let count = u32::try_from(self.taken_rows().len()).expect("there are 64 rows");
        self.mapping.half_word(Layout::PROCESS_COUNT).store(count, Ordering::Relaxed);
    }

    /// How many processes are attached, as the file has it. Needs the lock.
    pub(super) fn references(&self) -> u32 {
        self.reference_count().load(Ordering::Relaxed)
    }

    /// Marks that no process is attached, if the references are still so many: tt-metal's processes
    /// attach without our lock. Needs the lock.
    pub(super) fn forget_references(&self, references: u32) {
        let count = self.reference_count();
        let _ = count.compare_exchange(references, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The chip that the region was made for. Needs the lock.
    pub(super) fn gateway(&self) -> u32 {
        self.chip_id(0).load(Ordering::Relaxed)
    }

    /// All totals together. Needs the lock.
    pub(super) fn bytes(&self) -> u64 {
        let totals = self.kinds().filter_map(|kind| self.total(kind));
        let bytes = totals.map(|total| total.load(Ordering::Relaxed));
        bytes.fold(0, u64::saturating_add)
    }

    /// Counts a reference without a row. Needs the lock.
    pub(super) fn enter_without_row(&self) {
        self.change_references(|count| count.saturating_add(1));
    }

    /// Takes back a reference without a row. Needs the lock.
    pub(super) fn leave_without_row(&self) {
        self.change_references(|count| count.saturating_sub(1));
    }

    fn change_references(&self, change: impl Fn(u32) -> u32) {
        let references = self.reference_count();
        let changed = references
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(change(count)));
        debug_assert!(changed.is_ok(), "the update always has a value");
    }

    /// Claims a free row and counts its reference; absent if there is none. Needs the lock.
    pub(super) fn enter(&self, pid: u32, name: &str, stamp_ns: u64) -> Option<usize> {
        assert!(pid != 0, "0 is the mark of a free row");
        let base = self.reference_count().load(Ordering::Relaxed);
        let prepare = |row| {
            self.clear_counters(row);
            self.write_name(row, name);
            self.process_last_update(row).store(stamp_ns, Ordering::Relaxed);
        };
        for row in 0..PROCESS_ROWS {
            // Foreign writers claim and leave rows without our lock, so a free row is prepared and
            // then claimed in one step.
            if self.pid(row).load(Ordering::Acquire) != 0 {
                continue;
            }
            self.begin_intent(row, base);
            if !self.rows_are_released() {
                prepare(row);
            }
            let claimed =
                self.pid(row).compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire);
            if claimed.is_ok() {
                // Version 4's free rows are empty, and one that another has just claimed is its own.
                if self.rows_are_released() {
                    prepare(row);
                }
                self.change_references(|count| count.saturating_add(1));
                self.end_intent();
                return Some(row);
            }
            self.end_intent();
        }
        None
    }

    /// Whether a row is given up in two steps, marked as such in between: in version 4.
    fn rows_are_released(&self) -> bool {
        self.layout.init_state_offset.is_some()
    }

    /// Frees a row: takes what it holds from the totals, exactly, and takes back its reference.
    /// Needs the lock.
    ///
    /// Bytes leave the row before they leave the total: a process killed in between leaves too
    /// much in the total, which the next reset heals, and never takes another's bytes. A row that is
    /// not `pid`'s any more stays as it is.
    pub(super) fn vacate(&self, row: usize, pid: u32) {
        let references = self.reference_count().load(Ordering::Relaxed);
        self.begin_intent(row, references.saturating_sub(1));
        let to = if self.rows_are_released() { RELEASING } else { pid };
        if self.pid(row).compare_exchange(pid, to, Ordering::AcqRel, Ordering::Acquire).is_err() {
            self.end_intent();
            return;
        }
        self.empty(row);
        self.change_references(|count| count.saturating_sub(1));
        self.end_intent();
    }

    /// Takes what a row holds from the totals and frees it.
    fn empty(&self, row: usize) {
        for kind in self.kinds() {
            let counter = self.process_counter(row, kind).expect("kinds() has counters");
            let held = counter.swap(0, Ordering::Relaxed);
            take(self.total(kind).expect("kinds() has counters"), held);
        }
        self.write_name(row, "");
        self.process_last_update(row).store(0, Ordering::Relaxed);
        self.pid(row).store(0, Ordering::Release);
    }

    /// Takes what a row holds from the chip rows too, where only one can mean it: a row does not
    /// say which chips its bytes are on. Needs the lock.
    pub(super) fn take_from_only_chip(&self, process_row: usize) {
        let unused = self.unused_chip();
        let mut used = (0..CHIP_ROWS)
            .filter(|row| *row == 0 || self.chip_id(*row).load(Ordering::Relaxed) != unused);
        let (Some(chip_row), None) = (used.next(), used.next()) else { return };
        for kind in self.kinds() {
            let held = self.process_counter(process_row, kind).expect("kinds() has counters");
            let chip = self.chip_counter(chip_row, kind).expect("kinds() has counters");
            take(chip, held.load(Ordering::Relaxed));
        }
    }

    /// The row of a chip, claimed if it has none; absent if the table is full, or in version 1 for
    /// chip 0 unless it is the gateway: there 0 means an unused row.
    pub(super) fn chip_row(&self, chip_id: u32, is_remote: bool) -> Option<usize> {
        let unused = self.unused_chip();
        if self.chip_id(0).load(Ordering::Acquire) == chip_id {
            return Some(0);
        }
        if chip_id == unused {
            return None;
        }
        // Row 0 is the gateway's. Rows are claimed from low to high and freed only by a reset, so
        // of two claims for one chip the later one meets the earlier one's row.
        (1..CHIP_ROWS).find(|row| {
            let cell = self.chip_id(*row);
            match cell.compare_exchange(unused, chip_id, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let remote = self.mapping.half_word(self.layout.chip_is_remote(*row));
                    remote.store(u32::from(is_remote), Ordering::Relaxed);
                    true
                }
                Err(present) => present == chip_id,
            }
        })
    }

    /// Sets right what a process left that died between claiming or freeing a row and counting the
    /// reference. Needs the lock.
    pub(super) fn finish_intent(&self) {
        let intent = self.mapping.word(self.intent_offset()).load(Ordering::Acquire);
        let row = intent >> 32;
        let Some(row) = row.checked_sub(1).and_then(|row| usize::try_from(row).ok()) else {
            return;
        };
        if row == INITIALISING {
            // The one that began has died: restart.
            if let Some(state) = self.init_state() {
                let from = INIT_STATE_IN_PROGRESS;
                let _ = state.compare_exchange(from, 0, Ordering::AcqRel, Ordering::Acquire);
            }
        }
        if row < PROCESS_ROWS {
            if self.rows_are_released() && self.pid(row).load(Ordering::Acquire) == RELEASING {
                self.empty(row);
            }
            let base = u32::try_from(intent & u64::from(u32::MAX)).expect("masked to 32 bits");
            let own = u32::from(self.pid(row).load(Ordering::Acquire) != 0);
            self.reference_count().store(base.saturating_add(own), Ordering::Relaxed);
        }
        self.end_intent();
    }

    /// Notes that `row` is about to be claimed or freed, and the references without it.
    fn begin_intent(&self, row: usize, references_without_row: u32) {
        let row = u64::try_from(row).expect("there are 64 rows");
        let intent = ((row + 1) << 32) | u64::from(references_without_row);
        self.mapping.word(self.intent_offset()).store(intent, Ordering::Release);
    }

    fn end_intent(&self) {
        self.mapping.word(self.intent_offset()).store(0, Ordering::Release);
    }

    fn intent_offset(&self) -> usize {
        let end = self.layout.process(PROCESS_ROWS - 1) + self.layout.process_stride();
        end + INTENT_AFTER_ROWS
    }

    fn clear_counters(&self, row: usize) {
        for kind in self.kinds() {
            let counter = self.process_counter(row, kind).expect("kinds() has counters");
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Writes as much of the name as fits with its NUL, cut between characters.
    fn write_name(&self, row: usize, name: &str) {
        let fits = name.floor_char_boundary(PROCESS_NAME_BYTES - 1);
        let mut bytes = [0; PROCESS_NAME_BYTES];
        bytes[..fits].copy_from_slice(&name.as_bytes()[..fits]);
        let start = self.layout.process_name(row);
        for (index, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let cell = self.mapping.word(start + 8 * index);
            cell.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
    }
}
