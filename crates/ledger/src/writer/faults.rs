//! Counters of what goes wrong in recording, kept in the ledger's header.

use crate::layout::header as at;
use crate::mapping::Mapping;
use crate::sync::Ordering;
use telltale_schema::snapshot::RecordingFaults;

/// The fault counters of one ledger. Any thread may count; each call is one atomic addition.
#[derive(Debug, Clone, Copy)]
pub struct Faults<'ledger> {
    mapping: &'ledger Mapping,
}

impl<'ledger> Faults<'ledger> {
    pub(crate) fn new(mapping: &'ledger Mapping) -> Self {
        Self { mapping }
    }

    /// Counts a free of an address that was freed before and not allocated again.
    pub fn double_free(self) {
        self.count(at::DOUBLE_FREES);
    }

    /// Counts a free of an address that was never recorded.
    pub fn unknown_free(self) {
        self.count(at::UNKNOWN_FREES);
    }

    /// Counts an allocation at an address that was still live.
    pub fn reused_live_address(self) {
        self.count(at::REUSED_LIVE_ADDRESSES);
    }

    /// Counts an event that could not be recorded.
    pub fn unrecorded(self) {
        self.count(at::UNRECORDED_EVENTS);
    }

    /// The counts so far.
    pub fn counts(self) -> RecordingFaults {
        let read = |offset| self.mapping.word(offset).load(Ordering::Relaxed);
        RecordingFaults {
            double_frees: read(at::DOUBLE_FREES),
            unknown_frees: read(at::UNKNOWN_FREES),
            reused_live_addresses: read(at::REUSED_LIVE_ADDRESSES),
            unrecorded_events: read(at::UNRECORDED_EVENTS),
        }
    }

    fn count(self, offset: usize) {
        self.mapping.word(offset).fetch_add(1, Ordering::Relaxed);
    }
}
