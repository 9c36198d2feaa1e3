//! The records behind an aarch64 processor's registers in what a signal interrupted
//! (`arch/arm64/include/uapi/asm/sigcontext.h`): each has a magic number, its size, and a value. They
//! are plain bytes here, so that this is tested on any processor.

use std::ops::Range;

/// Magic and size of a record.
const HEAD_BYTES: usize = 8;
/// The record of the registers for floating point, which begins with FPSR and FPCR.
const FLOATING_POINT: u32 = 0x4650_8001;

/// Where the value of the first record with this magic number is.
pub(super) fn find(records: &[u8], magic: u32) -> Option<Range<usize>> {
    let mut start = 0;
    loop {
        let head = records.get(start..)?;
        let (found, rest) = head.split_first_chunk()?;
        let bytes = u32::from_le_bytes(*rest.first_chunk()?);
        let end = start.checked_add(usize::try_from(bytes).ok()?)?;
        // The last record is empty.
        if end < start + HEAD_BYTES || end > records.len() {
            return None;
        }
        if u32::from_le_bytes(*found) == magic {
            return Some(start + HEAD_BYTES..end);
        }
        start = end;
    }
}

/// Has the thread calculate as usual when it goes on.
pub(super) fn make_floating_point_usual(records: &mut [u8]) {
    let value = find(records, FLOATING_POINT).and_then(|place| records.get_mut(place));
    // What it noted, then how it calculates; as usual is zero.
    if let Some(control) = value.and_then(|value| value.first_chunk_mut::<8>()) {
        *control = [0; 8];
    }
}

#[cfg(test)]
mod tests {
    use super::{FLOATING_POINT, find, make_floating_point_usual};

    fn record(magic: u32, value: &[u8]) -> Vec<u8> {
        let bytes = u32::try_from(8 + value.len()).unwrap();
        [&magic.to_le_bytes(), &bytes.to_le_bytes(), value].concat()
    }

    #[test]
    fn a_record_is_found_wherever_it_is() {
        let mut records = record(1, &[7; 8]);
        records.extend(record(2, &[8; 16]));
        records.resize(4_096, 0);
        assert_eq!(find(&records, 1), Some(8..16));
        assert_eq!(find(&records, 2), Some(24..40));
        assert_eq!(find(&records, 3), None);
    }

    #[test]
    fn only_the_control_of_floating_point_is_changed() {
        let mut records = record(1, &[7; 8]);
        records.extend(record(FLOATING_POINT, &[9; 520]));
        records.resize(4_096, 0);
        let before = records.clone();
        make_floating_point_usual(&mut records);
        assert_eq!(records[24..32], [0; 8]);
        assert_eq!((&records[..24], &records[32..]), (&before[..24], &before[32..]));
        make_floating_point_usual(&mut Vec::new());
    }
}
