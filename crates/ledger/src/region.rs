//! Foreign tt-metal memory regions: `/dev/shm/tt_device_<decimal id>_memory`.
//!
//! A region is a table that several processes of other software keep about one chip: totals, a row
//! for each chip behind it and a row for each process. [`scan`] and [`read()`] copy such files out and
//! say what is wrong with them as [`RegionFinding`]s; a [`writer::RegionWriter`] keeps one up to date for
//! a process that was asked to. The offsets are in [`Layout`], the rules in `docs/regions.md`.
//!
//! Reading maps nothing, writes nothing, reads no clock and trusts no byte. Nothing here removes a
//! file or changes the size of one that exists.

mod decode;
mod findings;
mod holders;
mod layout;
mod name;
mod read;
pub mod writer;

pub use decode::{
    ChipRow, Counters, DecodeError, LastUpdate, Now, ProcessRow, Region, UpdateClock, decode,
};
pub use findings::{CounterPlace, MAX_COUNTER_BYTES, RegionFinding};
pub use holders::{Liveness, SumOverFiles, distinct_files, holder_findings, sum_over_files};
pub use layout::{
    CHIP_ROWS, INIT_STATE_READY, LAYOUTS, Layout, LayoutVariant, MAX_REGION_BYTES,
    PROCESS_NAME_BYTES, PROCESS_ROWS, RegionKind, UNUSED_CHIP,
};
pub use name::{FileName, file_name, parse_file_name};
pub use read::{
    FileIdentity, MAX_DIRECTORY_ENTRIES, MAX_READS, MAX_REGIONS, RegionReadError, RegionReading,
    Scan, ScanError, read, scan,
};
