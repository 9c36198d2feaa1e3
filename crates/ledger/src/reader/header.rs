//! The header of a ledger that someone else wrote: checked once, then trusted for bounds only.

use telltale_schema::clock::Timestamp;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::RecordingFaults;
use telltale_schema::text::steers;

use super::{LedgerReading, OpenError, ReadError};
use crate::device::{half_word, word};
use crate::layout::{
    LAYOUT_VERSION, LONGEST_ENTRY_BYTES, LONGEST_HEADER_BYTES, MAGIC, MOST_CELLS_READ,
    MOST_DEVICES_READ, OLDEST_READABLE, READY, SHORTEST_CELL_BYTES, SHORTEST_DEVICE_BYTES,
    SHORTEST_HEADER_BYTES, header as at,
};

/// The part of a header that never changes once it is ready.
const FIXED_BYTES: usize = at::CELLS_USED;

/// Where things are in one ledger. All of it was checked against the limits of `layout`.
#[derive(Debug, Clone)]
pub(crate) struct LedgerHeader {
    fixed: [u8; FIXED_BYTES],
    header_bytes: usize,
    cells_offset: usize,
    cell_bytes: usize,
    cells_capacity: usize,
    devices_offset: u64,
    device_bytes: usize,
    devices_capacity: usize,
}

impl LedgerHeader {
    /// Checks the beginning of a file of `size` bytes.
    pub(crate) fn check(start: &[u8], size: u64) -> Result<Self, OpenError> {
        if start.len() < SHORTEST_HEADER_BYTES {
            return Err(OpenError::Size(size));
        }
        if start[at::MAGIC..at::MAGIC + 8] != MAGIC {
            return Err(OpenError::Magic);
        }
        // The ready word is stored last: without it, no other field means anything.
        if word(start, at::READY) != READY {
            return Err(OpenError::NotReady);
        }
        let written = half_word(start, at::LAYOUT_VERSION);
        let since = half_word(start, at::READABLE_SINCE);
        if written < OLDEST_READABLE || since > LAYOUT_VERSION || since > written {
            return Err(OpenError::Version { written, since });
        }
        let field = |offset| {
            // 32 bits always fit in the usize of the 64-bit machines this runs on.
            usize::try_from(half_word(start, offset)).expect("32 bits fit in a usize")
        };
        let header = Self {
            fixed: start[..FIXED_BYTES].try_into().expect("the slice has that many bytes"),
            header_bytes: field(at::HEADER_BYTES),
            cells_offset: field(at::CELLS_OFFSET),
            cell_bytes: field(at::CELL_BYTES),
            cells_capacity: field(at::CELLS_CAPACITY),
            devices_offset: u64::from(half_word(start, at::DEVICES_OFFSET)),
            device_bytes: field(at::DEVICE_BYTES),
            devices_capacity: field(at::DEVICES_CAPACITY),
        };
        header.check_bounds(size)?;
        Ok(header)
    }

    fn check_bounds(&self, size: u64) -> Result<(), OpenError> {
        let within =
            |low, value: usize, high| (low..=high).contains(&value) && value.is_multiple_of(8);
        if !within(SHORTEST_HEADER_BYTES, self.header_bytes, LONGEST_HEADER_BYTES) {
            return Err(OpenError::Header("the header's size is out of bounds"));
        }
        if !within(SHORTEST_CELL_BYTES, self.cell_bytes, LONGEST_ENTRY_BYTES)
            || !within(SHORTEST_DEVICE_BYTES, self.device_bytes, LONGEST_ENTRY_BYTES)
        {
            return Err(OpenError::Header("the size of a cell or device entry is out of bounds"));
        }
        if self.cells_capacity > MOST_CELLS_READ || self.devices_capacity > MOST_DEVICES_READ {
            return Err(OpenError::Header("it has room for more than any version writes"));
        }
        if !within(self.header_bytes, self.cells_offset, LONGEST_HEADER_BYTES) {
            return Err(OpenError::Header("the cells do not follow the header"));
        }
        let cells_end = self.cells_end(self.cells_capacity);
        let devices_end = self.device_offset(self.devices_capacity);
        if u64::try_from(cells_end).map_or(true, |end| end > size) || devices_end > size {
            return Err(OpenError::Header("cells or device entries lie beyond the file's end"));
        }
        Ok(())
    }

    /// Checks a new copy of the beginning: it must be the same ledger still. Gives the number of
    /// cells in use.
    pub(crate) fn recheck(&self, copy: &[u8]) -> Result<usize, ReadError> {
        if copy.len() < SHORTEST_HEADER_BYTES {
            return Err(ReadError::Truncated);
        }
        if copy[..FIXED_BYTES] != self.fixed {
            return Err(ReadError::Changed);
        }
        let used = word(copy, at::CELLS_USED);
        Ok(usize::try_from(used).unwrap_or(usize::MAX).min(self.cells_capacity))
    }

    /// Whether the writer said that it holds its lock.
    pub(crate) fn is_held(&self) -> bool {
        half_word(&self.fixed, at::FLAGS) & at::FLAG_HELD != 0
    }

    /// Whether the counts in a copy exceed the room there is.
    pub(crate) fn counts_are_implausible(&self, copy: &[u8]) -> bool {
        let beyond = |count: u64, capacity: usize| {
            usize::try_from(count).map_or(true, |count| count > capacity)
        };
        beyond(word(copy, at::CELLS_USED), self.cells_capacity)
            || beyond(word(copy, at::DEVICES_USED), self.devices_capacity)
    }

    /// How many device entries are in use, at most as many as there is room for.
    pub(crate) fn devices_used(&self, copy: &[u8]) -> usize {
        let used = word(copy, at::DEVICES_USED);
        usize::try_from(used).unwrap_or(usize::MAX).min(self.devices_capacity)
    }

    /// Bytes of a cell.
    pub(crate) fn cell_bytes(&self) -> usize {
        self.cell_bytes
    }

    /// Bytes of a device entry.
    pub(crate) fn device_bytes(&self) -> usize {
        self.device_bytes
    }

    /// Where the first cell begins.
    pub(crate) fn cells_offset(&self) -> usize {
        self.cells_offset
    }

    /// Where `cells` cells end.
    pub(crate) fn cells_end(&self, cells: usize) -> usize {
        self.cells_offset + cells * self.cell_bytes
    }

    /// How many whole cells lie within the first `bytes`.
    pub(crate) fn cells_within(&self, bytes: usize) -> usize {
        (bytes.saturating_sub(self.cells_offset) / self.cell_bytes).min(self.cells_capacity)
    }

    /// Where device entry `index` begins.
    pub(crate) fn device_offset(&self, index: usize) -> u64 {
        let before = index * self.device_bytes;
        self.devices_offset + u64::try_from(before).expect("entries are bounded")
    }

    /// The fault counters in a copy; those of an older, shorter header are zero.
    pub(crate) fn faults(&self, copy: &[u8]) -> RecordingFaults {
        let end = self.header_bytes.min(copy.len());
        let counter = |offset| if offset + 8 <= end { word(copy, offset) } else { 0 };
        RecordingFaults {
            double_frees: counter(at::DOUBLE_FREES),
            unknown_frees: counter(at::UNKNOWN_FREES),
            reused_live_addresses: counter(at::REUSED_LIVE_ADDRESSES),
            unrecorded_events: counter(at::UNRECORDED_EVENTS),
        }
    }

    /// A reading with what never changes filled in.
    pub(crate) fn empty_reading(&self, uid: u32) -> LedgerReading {
        let start = &self.fixed;
        let boot_id = start[at::BOOT_ID..at::BOOT_ID + 16].try_into().expect("16 bytes");
        LedgerReading {
            owner: ProcessIdentity {
                boot_id,
                pid_namespace: word(start, at::PID_NAMESPACE),
                pid: half_word(start, at::PID),
                start_time_ticks: word(start, at::START_TIME_TICKS),
            },
            uid,
            name: text(&start[at::NAME..at::NAME + at::TEXT_BYTES]),
            runtime: text(&start[at::RUNTIME..at::RUNTIME + at::TEXT_BYTES]),
            started_at: Timestamp(word(start, at::STARTED_AT_NS)),
            devices: Vec::new(),
            usage: Vec::new(),
            unknown_cells: 0,
            faults: RecordingFaults::default(),
            shards: 0,
            torn: false,
            implausible: false,
        }
    }
}

/// A text field: up to the first zero, without characters that could steer a terminal.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end])
        .chars()
        .map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn no_text_of_a_stranger_steers_a_terminal() {
        assert_eq!(text(b"python3\0rest"), "python3");
        assert_eq!(text(b"a\x1b[2J\xff"), "a\u{fffd}[2J\u{fffd}");
        assert_eq!(text("x\u{202e}y".as_bytes()), "x\u{fffd}y");
    }
}
