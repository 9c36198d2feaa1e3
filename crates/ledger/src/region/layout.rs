//! Where each field of a region lies, as data: one table by (version, file size).
//!
//! The offsets are those of the C++ struct on x86-64, little-endian; the tests compile the struct
//! in C and compare. No byte of a region is touched here.
#![forbid(unsafe_code)]

/// Chip rows in every layout.
pub const CHIP_ROWS: usize = 16;
/// Process rows in every layout.
pub const PROCESS_ROWS: usize = 64;
/// Bytes of a process row's name, the terminating NUL included.
pub const PROCESS_NAME_BYTES: usize = 64;
/// The chip id of an unused chip row from late version 2 on; before, 0 means unused.
pub const UNUSED_CHIP: u32 = u32::MAX;
/// The pid of a row of version 4 that is being given up, as the file has it (−1).
pub(super) const RELEASING: u32 = u32::MAX;
/// The value of version 4's `init_state` while a process initialises the region.
pub(super) const INIT_STATE_IN_PROGRESS: u32 = 1;
/// The value of version 4's `init_state` in a region that may be used ("REDY").
pub const INIT_STATE_READY: u32 = 0x5245_4459;
/// The largest file that is read: no known layout is larger.
pub const MAX_REGION_BYTES: usize = 9280;

/// What a region counts separately. Unlike the ledger it does not split kernels, and system memory
/// has no counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegionKind {
    /// Device memory.
    Dram,
    /// On-chip memory of the cores.
    L1,
    /// The reserved part of L1.
    L1Small,
    /// Recorded traces, in DRAM.
    Trace,
    /// Circular buffers, in L1.
    Cb,
    /// Kernel code; only version 1 has a counter for it.
    Kernel,
}

impl RegionKind {
    /// Every kind, in the order in which the counters follow each other in a region.
    pub const ALL: [Self; 6] =
        [Self::Dram, Self::L1, Self::L1Small, Self::Trace, Self::Cb, Self::Kernel];

    /// The kind's place in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Dram => 0,
            Self::L1 => 1,
            Self::L1Small => 2,
            Self::Trace => 3,
            Self::Cb => 4,
            Self::Kernel => 5,
        }
    }
}

/// The layouts that are known to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayoutVariant {
    /// Version 1 with kernel counters and 64 bytes of padding, 9280 bytes.
    V1,
    /// Version 1 without kernel counters, padded, 8640 bytes.
    V1WithoutKernel,
    /// Version 1 with kernel counters and no padding, 9184 bytes: the struct as first published.
    V1Unpadded,
    /// Version 2, 8576 bytes.
    V2,
    /// Version 3, 8576 bytes: what tt-metal ships.
    V3,
    /// Version 4, 8576 bytes, with `init_state` in what was padding.
    V4,
}

/// The offsets of one layout, in bytes from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which layout this is.
    pub variant: LayoutVariant,
    /// The number in the file's first four bytes.
    pub version: u32,
    /// The exact size of the file.
    pub size_bytes: usize,
    /// How many of [`RegionKind::ALL`] have counters: 5, or 6 with kernels.
    pub kind_count: usize,
    /// Offset of the first chip row.
    pub chips_offset: usize,
    /// Offset of the first process row.
    pub processes_offset: usize,
    /// Offset of `init_state`, where the layout has one.
    pub init_state_offset: Option<usize>,
}

const fn layout(
    variant: LayoutVariant,
    version: u32,
    size_bytes: usize,
    kind_count: usize,
    init_state_offset: Option<usize>,
) -> Layout {
    let chips_offset = Layout::TOTALS + 8 * kind_count;
    let processes_offset = chips_offset + CHIP_ROWS * (8 + 8 * kind_count);
    Layout {
        variant,
        version,
        size_bytes,
        kind_count,
        chips_offset,
        processes_offset,
        init_state_offset,
    }
}

/// Every known layout; (version, size) is unique in it.
pub const LAYOUTS: [Layout; 6] = [
    layout(LayoutVariant::V1, 1, 9280, 6, None),
    layout(LayoutVariant::V1WithoutKernel, 1, 8640, 5, None),
    layout(LayoutVariant::V1Unpadded, 1, 9184, 6, None),
    layout(LayoutVariant::V2, 2, 8576, 5, None),
    layout(LayoutVariant::V3, 3, 8576, 5, None),
    layout(LayoutVariant::V4, 4, 8576, 5, Some(8536)),
];

impl Layout {
    /// Offset of `version`, u32.
    pub const VERSION: usize = 0;
    /// Offset of `num_active_processes`, u32.
    pub const PROCESS_COUNT: usize = 4;
    /// Offset of `last_update_timestamp`, u64.
    pub const LAST_UPDATE: usize = 8;
    /// Offset of `reference_count`, u32.
    pub const REFERENCE_COUNT: usize = 16;
    /// Offset of `board_serial`, u64.
    pub const BOARD_SERIAL: usize = 24;
    /// Offset of `asic_id`, u64.
    pub const ASIC_ID: usize = 32;
    /// Offset of `device_id`, i32 in version 1 and u32 later.
    pub const DEVICE_ID: usize = 40;
    /// Offset of the first total, u64.
    pub const TOTALS: usize = 48;

    /// The layout of a file with this version and size, if there is one.
    #[must_use]
    pub fn find(version: u32, size_bytes: usize) -> Option<&'static Self> {
        LAYOUTS.iter().find(|known| known.version == version && known.size_bytes == size_bytes)
    }

    /// The layout of this variant.
    #[must_use]
    pub fn of(variant: LayoutVariant) -> &'static Self {
        let found = LAYOUTS.iter().find(|known| known.variant == variant);
        found.expect("the table has every variant")
    }

    /// Whether the layout has a counter for `kind`.
    #[must_use]
    pub const fn counts(&self, kind: RegionKind) -> bool {
        kind.index() < self.kind_count
    }

    /// Offset of the total of `kind`, u64.
    #[must_use]
    pub fn total(&self, kind: RegionKind) -> Option<usize> {
        self.counts(kind).then(|| Self::TOTALS + 8 * kind.index())
    }

    /// Bytes from one chip row to the next.
    #[must_use]
    pub const fn chip_stride(&self) -> usize {
        8 + 8 * self.kind_count
    }

    /// Offset of a chip row, which begins with `chip_id`, u32.
    #[must_use]
    pub const fn chip(&self, row: usize) -> usize {
        assert!(row < CHIP_ROWS, "there is no such chip row");
        self.chips_offset + row * self.chip_stride()
    }

    /// Offset of a chip row's `is_remote`, u32.
    #[must_use]
    pub const fn chip_is_remote(&self, row: usize) -> usize {
        self.chip(row) + 4
    }

    /// Offset of the counter of `kind` in a chip row, u64.
    #[must_use]
    pub fn chip_counter(&self, row: usize, kind: RegionKind) -> Option<usize> {
        self.counts(kind).then(|| self.chip(row) + 8 + 8 * kind.index())
    }

    /// Bytes from one process row to the next.
    #[must_use]
    pub const fn process_stride(&self) -> usize {
        16 + 8 * self.kind_count + PROCESS_NAME_BYTES
    }

    /// Offset of a process row, which begins with `pid`, i32.
    #[must_use]
    pub const fn process(&self, row: usize) -> usize {
        assert!(row < PROCESS_ROWS, "there is no such process row");
        self.processes_offset + row * self.process_stride()
    }

    /// Offset of the counter of `kind` in a process row, u64.
    #[must_use]
    pub fn process_counter(&self, row: usize, kind: RegionKind) -> Option<usize> {
        self.counts(kind).then(|| self.process(row) + 8 + 8 * kind.index())
    }

    /// Offset of a process row's `last_update_timestamp`, u64.
    #[must_use]
    pub const fn process_last_update(&self, row: usize) -> usize {
        self.process(row) + 8 + 8 * self.kind_count
    }

    /// Offset of a process row's name, [`PROCESS_NAME_BYTES`] long.
    #[must_use]
    pub const fn process_name(&self, row: usize) -> usize {
        self.process_last_update(row) + 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_lies_inside_the_file() {
        for known in &LAYOUTS {
            let end = known.process(PROCESS_ROWS - 1) + known.process_stride();
            assert!(end <= known.init_state_offset.unwrap_or(known.size_bytes), "{known:?}");
            assert!(known.size_bytes <= MAX_REGION_BYTES, "{known:?}");
            let kind = RegionKind::ALL[known.kind_count - 1];
            assert_eq!(known.chip_counter(15, kind).map(|at| at + 8), Some(known.processes_offset));
        }
    }

    #[test]
    fn version_and_size_together_name_one_layout() {
        for known in &LAYOUTS {
            assert_eq!(Layout::find(known.version, known.size_bytes), Some(known));
            assert_eq!(Layout::of(known.variant), known);
        }
        assert_eq!(Layout::find(1, 8576), None, "a version 1 file that a later writer shrank");
        assert_eq!(Layout::find(5, 8576), None);
    }
}
