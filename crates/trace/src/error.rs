//! What can be wrong with a trace, when reading and when writing one.

use std::io;

use crate::limits::{
    MAX_ALLOCATION_BYTES, MAX_DURATION_NS, MAX_LIVE_ALLOCATIONS, MAX_RECORDS, MAX_TEXT_BYTES,
};

/// A record that cannot follow the records before it, whatever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The record limit is reached.
    #[error("a trace holds at most {MAX_RECORDS} records; record with a higher threshold")]
    TooManyRecords,
    /// Too many allocations are live.
    #[error(
        "at most {MAX_LIVE_ALLOCATIONS} allocations may be live; record with a higher threshold"
    )]
    TooManyLive,
    /// An allocation of no byte or of too many.
    #[error("an allocation of {size_bytes} bytes is outside 1 to {MAX_ALLOCATION_BYTES}")]
    Size {
        /// The size given.
        size_bytes: u64,
    },
    /// A free of something that is not live.
    #[error("id {id} is freed but not live")]
    NotLive {
        /// The id given.
        id: u32,
    },
    /// A thread number that leaves a gap.
    #[error("thread {thread} appears although only {known} threads came before")]
    ThreadSkipped {
        /// The number given.
        thread: u16,
        /// Threads seen so far; the next new one must have this number.
        known: u32,
    },
    /// The first record is not at time 0.
    #[error("the first record is {since_previous_ns} ns after the start instead of 0")]
    LateStart {
        /// The time given.
        since_previous_ns: u64,
    },
    /// The trace lasts longer than allowed.
    #[error("the trace lasts longer than {MAX_DURATION_NS} ns")]
    TooLong,
}

/// Why reading a trace failed. `byte` counts decompressed bytes from the start of the trace;
/// `record` counts records from 0.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The source failed, ended early, or is not gzip.
    #[error("cannot read the trace after {byte} bytes and {record} records; is the file complete?")]
    Input {
        /// Decompressed bytes read before.
        byte: u64,
        /// Records read before.
        record: u64,
        /// The source's own error, or the decompressor's.
        #[source]
        source: io::Error,
    },
    /// The gzip content does not begin like a trace.
    #[error("this is gzip, but not a Telltale trace: the first 8 bytes differ")]
    Magic,
    /// A format this reader does not know.
    #[error("trace format {found} is unknown, this program reads format 1; use a newer one")]
    Version {
        /// The version in the file.
        found: u64,
    },
    /// A number is longer than 64 bits or written in more bytes than it needs.
    #[error("bad number at byte {byte} (record {record})")]
    Number {
        /// Where the number begins.
        byte: u64,
        /// Records read before.
        record: u64,
    },
    /// A header field beyond its limit.
    #[error("header field {field} is {value}, its limit is {limit}")]
    HeaderLimit {
        /// Name of the field.
        field: &'static str,
        /// What the file says.
        value: u64,
        /// The most it may be.
        limit: u64,
    },
    /// A text of the header is not UTF-8.
    #[error("header field {field} is not UTF-8")]
    HeaderText {
        /// Name of the field.
        field: &'static str,
    },
    /// A record begins with bits that mean nothing in this format.
    #[error("record {record} at byte {byte} has the unknown tag {tag}")]
    Tag {
        /// Index of the record.
        record: u64,
        /// Where it begins.
        byte: u64,
        /// The tag found.
        tag: u64,
    },
    /// A record contradicts the records before it.
    #[error("record {record} at byte {byte} is impossible")]
    Record {
        /// Index of the record.
        record: u64,
        /// Where it begins.
        byte: u64,
        /// What is wrong with it.
        #[source]
        source: Violation,
    },
    /// A total of the header is not what the records add up to.
    #[error("the header says {field} is {header}, the {record} records read so far say {counted}")]
    Total {
        /// Name of the header field.
        field: &'static str,
        /// Its value in the header.
        header: u64,
        /// What the records add up to.
        counted: u64,
        /// Records read when this was noticed.
        record: u64,
    },
    /// Something follows the last record.
    #[error("bytes follow the last record, at byte {byte}")]
    Trailing {
        /// Decompressed bytes that belong to the trace.
        byte: u64,
    },
}

/// Why writing a trace failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A text for the header is too long.
    #[error("{field} has {bytes} bytes, at most {MAX_TEXT_BYTES} fit; shorten it")]
    Text {
        /// Name of the field.
        field: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// A page or threshold size beyond its limit.
    #[error("{field} is {value}, its limit is {limit}")]
    Unit {
        /// Name of the field.
        field: &'static str,
        /// The value given.
        value: u64,
        /// The most it may be.
        limit: u64,
    },
    /// A record that no reader would accept. The writer is unchanged by it.
    #[error("record {record} cannot be written")]
    Record {
        /// Index it would have had.
        record: u64,
        /// What is wrong with it.
        #[source]
        source: Violation,
    },
    /// The destination failed.
    #[error("cannot write the compressed trace; is there space left?")]
    Output {
        /// The destination's own error.
        #[source]
        source: io::Error,
    },
}
