//! What a trace says about itself before its records.

use crate::error::WriteError;
use crate::limits::{MAX_TEXT_BYTES, MAX_UNIT_BYTES};
use crate::summary::TraceSummary;
use crate::varint;

/// First bytes of the decompressed trace.
pub(crate) const MAGIC: [u8; 8] = *b"ttltrace";

/// Format of everything after the version.
pub(crate) const VERSION: u64 = 1;

/// The recorder's description of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// How it was made, in words for people: program versions, model, steps, date.
    pub made_with: String,
    /// Command line of the recorded program, for people.
    pub command: String,
    /// Page size of the machine it was recorded on, in bytes.
    pub page_bytes: u64,
    /// Smallest allocation that was recorded, in bytes.
    pub threshold_bytes: u64,
}

/// A [`Description`] and the totals of the records that follow. The reader checks the totals
/// against the records: a lower peak or duration than the records have is refused on the way,
/// every other difference at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// What was recorded, and how.
    pub description: Description,
    /// Nanoseconds from the first record to the last.
    pub duration_ns: u64,
    /// Records in the trace.
    pub records: u64,
    /// Records that allocate.
    pub allocations: u64,
    /// The most bytes live at one moment.
    pub peak_live_bytes: u64,
}

impl Description {
    /// Refuses what no reader would accept.
    pub(crate) fn check(&self) -> Result<(), WriteError> {
        for (field, text) in [("made_with", &self.made_with), ("command", &self.command)] {
            if text.len() as u64 > MAX_TEXT_BYTES {
                return Err(WriteError::Text { field, bytes: text.len() });
            }
        }
        for (field, value) in
            [("page_bytes", self.page_bytes), ("threshold_bytes", self.threshold_bytes)]
        {
            if value > MAX_UNIT_BYTES {
                return Err(WriteError::Unit { field, value, limit: MAX_UNIT_BYTES });
            }
        }
        Ok(())
    }
}

impl Header {
    /// The header of a trace whose records add up to `totals`.
    pub(crate) fn new(description: Description, totals: &TraceSummary) -> Header {
        Header {
            description,
            duration_ns: totals.duration_ns,
            records: totals.records,
            allocations: totals.allocations,
            peak_live_bytes: totals.peak_live_bytes,
        }
    }

    /// Magic, version and every field, as `docs/traces.md` lists them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        varint::append(&mut bytes, VERSION);
        for text in [&self.description.made_with, &self.description.command] {
            varint::append(&mut bytes, text.len() as u64);
            bytes.extend_from_slice(text.as_bytes());
        }
        for value in [
            self.description.page_bytes,
            self.description.threshold_bytes,
            self.duration_ns,
            self.records,
            self.allocations,
            self.peak_live_bytes,
        ] {
            varint::append(&mut bytes, value);
        }
        bytes
    }
}
