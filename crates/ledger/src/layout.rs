//! Where everything is in a ledger file: the one definition of every offset, size and limit.
//!
//! docs/ledger.md says the same to people; a test compares the two. The words of cells are
//! defined beside the code that writes them, in `cell`.

use crate::cell::CELL_WORDS;

/// The first eight bytes of a ledger.
pub const MAGIC: [u8; 8] = *b"TELLTALE";

/// The layout this version writes.
pub const LAYOUT_VERSION: u32 = 1;

/// The oldest reader, by layout version, that can read what this version writes.
pub const READABLE_SINCE: u32 = 1;

/// The oldest layout that this version reads.
pub const OLDEST_READABLE: u32 = 1;

/// The value of the ready word once the header is complete.
pub const READY: u64 = 0x5245_4144_5921_0A0D;

/// Bytes of a page: the step in which memory is reserved.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 512;

/// Bytes of the shortest header that a reader accepts: up to the counts.
pub const SHORTEST_HEADER_BYTES: usize = 272;

/// Bytes of the longest header that a reader accepts.
pub const LONGEST_HEADER_BYTES: usize = 4096;

/// Bytes of a cell.
pub const CELL_BYTES: usize = CELL_WORDS * 8;

/// Bytes of the shortest cell that a reader accepts: up to the check word.
pub const SHORTEST_CELL_BYTES: usize = 56;

/// Bytes of the longest cell or device entry that a reader accepts.
pub const LONGEST_ENTRY_BYTES: usize = 1024;

/// Bytes of a device entry.
pub const DEVICE_BYTES: usize = 128;

/// Bytes of the shortest device entry that a reader accepts: up to the board id.
pub const SHORTEST_DEVICE_BYTES: usize = 40;

/// The file's size, and how much of it is mapped. Most of it never gets memory.
pub const FILE_BYTES: usize = 512 * 1024;

/// Where the cells begin.
pub const CELLS_OFFSET: usize = HEADER_BYTES;

/// Where the device entries begin.
pub const DEVICES_OFFSET: usize = FILE_BYTES - DEVICES_CAPACITY * DEVICE_BYTES;

/// How many device entries there is space for.
pub const DEVICES_CAPACITY: usize = 256;

/// How many cells there is space for.
pub const CELLS_CAPACITY: usize = (DEVICES_OFFSET - CELLS_OFFSET) / CELL_BYTES;

/// How many cells or devices of a foreign file a reader checks, whatever the header says.
pub const MOST_CELLS_READ: usize = 16_384;

/// See [`MOST_CELLS_READ`].
pub const MOST_DEVICES_READ: usize = 1_024;

/// The largest file a reader opens.
pub const LARGEST_FILE_BYTES: u64 = 64 << 20;

/// Kinds for which each device has room in a writer's tables: a power of two.
pub const KINDS_CAPACITY: usize = 16;

/// Threads, living and dead, that can have cells of their own; a dead one's are reused.
pub const SHARDS_CAPACITY: usize = 1_024;

/// What each thread may keep to itself, either way, before it posts to the peak's sum: with
/// several threads, a peak is within this for each of them.
pub const POSTING_THRESHOLD_BYTES: u64 = crate::posting::THRESHOLD_BYTES;

/// Offsets in the header.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// u32: [`super::LAYOUT_VERSION`].
    pub const LAYOUT_VERSION: usize = 8;
    /// u32: [`super::READABLE_SINCE`].
    pub const READABLE_SINCE: usize = 12;
    /// u64: [`super::READY`], stored last.
    pub const READY: usize = 16;
    /// u32: bytes of the header.
    pub const HEADER_BYTES: usize = 24;
    /// u32: bytes of the file.
    pub const FILE_BYTES: usize = 28;
    /// 16 bytes: the boot id.
    pub const BOOT_ID: usize = 32;
    /// u64: inode of the PID namespace.
    pub const PID_NAMESPACE: usize = 48;
    /// u64: the process's start in clock ticks after boot.
    pub const START_TIME_TICKS: usize = 56;
    /// u32: the pid in that namespace.
    pub const PID: usize = 64;
    /// u32: the effective user id.
    pub const UID: usize = 68;
    /// u64: when recording began, in nanoseconds since the Unix epoch.
    pub const STARTED_AT_NS: usize = 72;
    /// u32: where the cells begin.
    pub const CELLS_OFFSET: usize = 80;
    /// u32: bytes of a cell.
    pub const CELL_BYTES: usize = 84;
    /// u32: space for cells.
    pub const CELLS_CAPACITY: usize = 88;
    /// u32: where the device entries begin.
    pub const DEVICES_OFFSET: usize = 92;
    /// u32: bytes of a device entry.
    pub const DEVICE_BYTES: usize = 96;
    /// u32: space for device entries.
    pub const DEVICES_CAPACITY: usize = 100;
    /// u32: how many kinds the writer knows.
    pub const KINDS_COUNT: usize = 104;
    /// u32: see [`FLAG_HELD`]; other bits are reserved.
    pub const FLAGS: usize = 108;
    /// 64 bytes: the process's name, UTF-8, zero-padded.
    pub const NAME: usize = 128;
    /// 64 bytes: the runtime's name and version, UTF-8, zero-padded.
    pub const RUNTIME: usize = 192;
    /// u64, changes: cells claimed.
    pub const CELLS_USED: usize = 256;
    /// u64, changes: device entries written.
    pub const DEVICES_USED: usize = 264;
    /// u64, changes: frees of what was freed before.
    pub const DOUBLE_FREES: usize = 320;
    /// u64, changes: frees of what was never recorded.
    pub const UNKNOWN_FREES: usize = 328;
    /// u64, changes: allocations at an address that was live.
    pub const REUSED_LIVE_ADDRESSES: usize = 336;
    /// u64, changes: events that could not be recorded.
    pub const UNRECORDED_EVENTS: usize = 344;
    /// The writer holds a lock of the open file for as long as it has it open or mapped.
    pub const FLAG_HELD: u32 = 1 << 0;
    /// Bytes of each of the two texts.
    pub const TEXT_BYTES: usize = 64;
}

/// Offsets in a device entry.
pub mod device {
    /// u64: [`READY`] once the entry is complete, stored last.
    pub const TAG: usize = 0;
    /// u64: which fields are there, and other flags (see `FLAG_…`).
    pub const FLAGS: usize = 8;
    /// u64: PCI domain, bus, device and function as one number.
    pub const PCI: usize = 16;
    /// u64: the ASIC id.
    pub const ASIC_ID: usize = 24;
    /// u64: the board's serial number.
    pub const BOARD_ID: usize = 32;
    /// u32: N of the driver's `tenstorrent!N`.
    pub const DRIVER_ORDINAL: usize = 40;
    /// u32: the runtime's number for the device.
    pub const LOGICAL_ID: usize = 44;
    /// u8: the chip's place on its board.
    pub const LOCATION: usize = 48;
    /// u8: code of the board type.
    pub const BOARD_TYPE: usize = 49;
    /// u8: code of the architecture.
    pub const ARCHITECTURE: usize = 50;
    /// u8: tray of a Galaxy.
    pub const GALAXY_TRAY: usize = 51;
    /// u8: low nibble of the bus number on a Galaxy.
    pub const GALAXY_NIBBLE: usize = 52;
    /// u64: DRAM in bytes.
    pub const DRAM_CAPACITY_BYTES: usize = 56;
    /// u64: L1 of all worker cores in bytes.
    pub const L1_CAPACITY_BYTES: usize = 64;
    /// u32: DRAM channels.
    pub const DRAM_CHANNELS: usize = 72;
    /// u32: worker cores.
    pub const WORKER_CORES: usize = 76;

    /// The value of the tag.
    pub const READY: u64 = 0x4445_5649_4345_0001;
    /// The PCI address is there.
    pub const FLAG_PCI: u64 = 1 << 0;
    /// The ASIC id is there.
    pub const FLAG_ASIC_ID: u64 = 1 << 1;
    /// The board id is there.
    pub const FLAG_BOARD_ID: u64 = 1 << 2;
    /// The driver ordinal is there.
    pub const FLAG_DRIVER_ORDINAL: u64 = 1 << 3;
    /// Tray and nibble are there.
    pub const FLAG_GALAXY: u64 = 1 << 4;
    /// The DRAM capacity is there.
    pub const FLAG_DRAM_CAPACITY: u64 = 1 << 5;
    /// The L1 capacity is there.
    pub const FLAG_L1_CAPACITY: u64 = 1 << 6;
    /// The number of DRAM channels is there.
    pub const FLAG_DRAM_CHANNELS: u64 = 1 << 7;
    /// The number of worker cores is there.
    pub const FLAG_WORKER_CORES: u64 = 1 << 8;
    /// The chip is reached through another one.
    pub const FLAG_REMOTE: u64 = 1 << 9;
    /// The process also keeps a tt-metal region's totals for this device.
    pub const FLAG_MIRRORED_TOTALS: u64 = 1 << 10;
    /// The process also keeps its row in that region.
    pub const FLAG_MIRRORED_ROW: u64 = 1 << 11;
    /// The entry is of the machine's own memory, and names no chip.
    pub const FLAG_HOST: u64 = 1 << 12;
}

const _: () = {
    assert!(CELL_BYTES == 64 && size_of::<crate::cell::Cell>() == CELL_BYTES);
    assert!(CELLS_OFFSET.is_multiple_of(CELL_BYTES));
    assert!(DEVICES_OFFSET.is_multiple_of(PAGE_BYTES) && FILE_BYTES.is_multiple_of(PAGE_BYTES));
    assert!(CELLS_OFFSET + CELLS_CAPACITY * CELL_BYTES <= DEVICES_OFFSET);
    assert!(header::RUNTIME + header::TEXT_BYTES <= header::CELLS_USED);
    assert!(header::DEVICES_USED + 8 <= SHORTEST_HEADER_BYTES);
    assert!(header::UNRECORDED_EVENTS + 8 <= HEADER_BYTES);
    assert!(device::WORKER_CORES + 4 <= DEVICE_BYTES);
    assert!(CELLS_CAPACITY <= MOST_CELLS_READ && DEVICES_CAPACITY <= MOST_DEVICES_READ);
    assert!(KINDS_CAPACITY.is_power_of_two());
    assert!(telltale_schema::memory::MemoryKind::ALL.len() <= KINDS_CAPACITY);
    // Counters are stored with the machine's byte order, and the format is little-endian.
    assert!(cfg!(target_endian = "little"));
};

#[cfg(test)]
mod tests;
