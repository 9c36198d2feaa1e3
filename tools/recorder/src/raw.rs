//! Layout of the raw recording, shared by the library that writes it and the converter.
//!
//! One header page, then records of 32 bytes, all numbers little-endian. The file is written
//! through a shared mapping, so it is complete up to the last instruction of a killed process.
//! It holds addresses and stays on the machine where it was made; only the converted trace is
//! passed on.

/// First bytes of the file; the digit is the layout's version.
pub(crate) const MAGIC: [u8; 8] = *b"ttlraw1\n";

/// Bytes before the first record.
pub(crate) const HEADER_BYTES: usize = 4096;

/// Offset of the page size (u64).
pub(crate) const PAGE_BYTES: usize = 8;
/// Offset of the smallest recorded size (u64).
pub(crate) const THRESHOLD_BYTES: usize = 16;
/// Offset of the number of records there is room for (u64).
pub(crate) const CAPACITY: usize = 24;
/// Offset of the number of records begun (u64); it may pass the capacity.
pub(crate) const NEXT: usize = 32;
/// Offset of the number of events that found no room (u64).
pub(crate) const DROPPED: usize = 40;
/// Offset of the number of allocations left out because the address table was full (u64).
pub(crate) const OVERFLOWED: usize = 48;
/// Offset of the length of the command line (u64).
pub(crate) const COMMAND_LENGTH: usize = 56;
/// Offset of the command line: arguments, each ended by a zero byte.
pub(crate) const COMMAND: usize = 64;
/// The most bytes of the command line that are kept.
pub(crate) const MAX_COMMAND_BYTES: usize = 2048;

/// Bytes of one record.
pub(crate) const RECORD_BYTES: usize = 32;
/// Offset in a record of its kind (u32), written last: 0 means that it was never finished.
pub(crate) const KIND: usize = 0;
/// Offset in a record of the kernel's thread id (u32).
pub(crate) const THREAD: usize = 4;
/// Offset in a record of the monotonic clock in nanoseconds (u64).
pub(crate) const TIME_NS: usize = 8;
/// Offset in a record of the block's address (u64).
pub(crate) const ADDRESS: usize = 16;
/// Offset in a record of the bytes asked for (u64); 0 for a free.
pub(crate) const SIZE_BYTES: usize = 24;

/// Kind of a record that allocates.
pub(crate) const KIND_ALLOCATE: u32 = 1;
/// Kind of a record that frees.
pub(crate) const KIND_FREE: u32 = 2;

/// The most records a recording holds: as many as a trace may.
pub(crate) const MAX_RECORDS: usize = 1 << 22;
