//! One step of a trace.

/// What happened, when, and on which thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since the record before; 0 for the first.
    pub since_previous_ns: u64,
    /// Thread that did it, numbered from 0 in the order in which threads first appear.
    pub thread: u16,
    /// What it did.
    pub event: TraceEvent,
}

/// An allocation taken or given back. A reallocation is a free and an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent {
    /// A block was taken.
    Allocate {
        /// The lowest number that no live allocation has. Ids are dense and reused: an array of
        /// the greatest number of live allocations can be indexed by them.
        id: u32,
        /// Bytes asked for; at least 1, at most [`crate::limits::MAX_ALLOCATION_BYTES`].
        size_bytes: u64,
    },
    /// A live block was given back.
    Free {
        /// The id its allocation had.
        id: u32,
    },
}
