//! What a trace adds up to.

/// Totals of a whole trace, counted from its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceSummary {
    /// Allocations and frees together.
    pub records: u64,
    /// Records that take a block.
    pub allocations: u64,
    /// Records that give one back.
    pub frees: u64,
    /// Bytes of all allocations together, whether freed or not.
    pub allocated_bytes: u64,
    /// The most bytes live at one moment.
    pub peak_live_bytes: u64,
    /// The most allocations live at one moment; every id is below it.
    pub peak_live_allocations: u32,
    /// Bytes never given back.
    pub live_bytes_at_end: u64,
    /// Allocations never given back.
    pub live_allocations_at_end: u32,
    /// Nanoseconds from the first record to the last.
    pub duration_ns: u64,
    /// Threads that appear.
    pub threads: u32,
}
