//! Every bound of the trace format, in one place. Reader and writer enforce the same ones.

/// Records in one trace: a [`crate::Trace`] held in memory stays below 128 MiB.
pub const MAX_RECORDS: u64 = 1 << 22;

/// Allocations live at one moment, so ids are below this. Bounds what a reader keeps to 20 MiB.
pub const MAX_LIVE_ALLOCATIONS: u32 = 1 << 20;

/// Bytes of one allocation: 1 TiB. With [`MAX_LIVE_ALLOCATIONS`] the sum of all live bytes stays
/// below 2^60, so no total can wrap.
pub const MAX_ALLOCATION_BYTES: u64 = 1 << 40;

/// Time from the first record to the last: 30 days, in nanoseconds.
pub const MAX_DURATION_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;

/// Bytes of each text in the header (`made_with`, `command`).
pub const MAX_TEXT_BYTES: u64 = 4096;

/// Page and threshold bytes in the header: 1 TiB.
pub const MAX_UNIT_BYTES: u64 = 1 << 40;
