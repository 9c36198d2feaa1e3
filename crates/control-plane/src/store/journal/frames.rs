//! A journal's bytes: a head, then records, each with its length and two checksums.
//!
//! The length has a checksum of its own, so that a damaged one is not taken for a record that was cut
//! short. What the records mean is not known here.

/// The version of this form.
pub(super) const VERSION: u8 = 1;
/// What a journal begins with; the last byte is the version of its form.
pub(super) const HEAD: &[u8; 8] = &[b'T', b'T', b'J', b'R', b'N', b'L', 0, VERSION];

/// Bytes before a record: its length, the length's checksum, the record's checksum.
const PREFIX_BYTES: usize = 12;

/// Why bytes are no journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// They do not begin like one.
    Foreign,
    /// They begin like one of a later version.
    Newer(u8),
    /// What begins here is no record, though whole ones follow.
    At(usize),
}

/// A record as it is written.
pub(super) fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a record is far smaller than 4 GiB");
    let length = length.to_le_bytes();
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + payload.len());
    bytes.extend(length);
    bytes.extend(crc32fast::hash(&length).to_le_bytes());
    bytes.extend(crc32fast::hash(payload).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// The whole records and where each begins. What a crash has cut short at the end is left out: it is
/// followed by no whole record.
pub(super) fn scan(bytes: &[u8]) -> Result<Vec<(usize, &[u8])>, Damage> {
    let (name, version) = (&HEAD[..HEAD.len() - 1], bytes.get(HEAD.len() - 1));
    match version {
        Some(&VERSION) if bytes.starts_with(name) => {}
        Some(&newer) if bytes.starts_with(name) && newer > VERSION => {
            return Err(Damage::Newer(newer));
        }
        _ => return Err(Damage::Foreign),
    }
    let mut records = Vec::new();
    let mut offset = HEAD.len();
    while offset < bytes.len() {
        let Some(payload) = record_at(bytes, offset) else {
            let followed = (offset + 1..bytes.len()).any(|next| record_at(bytes, next).is_some());
            return if followed { Err(Damage::At(offset)) } else { Ok(records) };
        };
        records.push((offset, payload));
        offset += PREFIX_BYTES + payload.len();
    }
    Ok(records)
}

/// The record that begins at `offset`, if one does. No record is empty.
fn record_at(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let rest = bytes.get(offset..)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (length_sum, rest) = rest.split_first_chunk::<4>()?;
    let (payload_sum, rest) = rest.split_first_chunk::<4>()?;
    if crc32fast::hash(length) != u32::from_le_bytes(*length_sum) {
        return None;
    }
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length > 0)?;
    let payload = rest.get(..length)?;
    (crc32fast::hash(payload) == u32::from_le_bytes(*payload_sum)).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(records: &[&[u8]]) -> Vec<u8> {
        let frames = records.iter().flat_map(|record| frame(record));
        HEAD.iter().copied().chain(frames).collect()
    }

    fn payloads(bytes: &[u8]) -> Result<Vec<&[u8]>, Damage> {
        Ok(scan(bytes)?.into_iter().map(|(_, payload)| payload).collect())
    }

    #[test]
    fn a_record_that_was_cut_short_is_left_out_wherever_it_was_cut() {
        let whole = file(&[b"first", b"second"]);
        let first = file(&[b"first"]).len();
        for length in first..whole.len() {
            assert_eq!(payloads(&whole[..length]), Ok(vec![&b"first"[..]]), "{length}");
            let mut zeros = whole[..length].to_vec();
            zeros.resize(whole.len() + 4096, 0);
            assert_eq!(payloads(&zeros), Ok(vec![&b"first"[..]]), "{length}, then zeros");
        }
        assert_eq!(payloads(&whole), Ok(vec![&b"first"[..], b"second"]));
    }

    #[test]
    fn damage_before_a_whole_record_is_reported() {
        let whole = file(&[b"first", b"second", b"third"]);
        let second = file(&[b"first"]).len();
        let third = file(&[b"first", b"second"]).len();
        for position in second..third {
            let mut damaged = whole.clone();
            damaged[position] ^= 0x10;
            assert_eq!(payloads(&damaged), Err(Damage::At(second)), "{position}");
        }
    }

    #[test]
    fn a_journal_of_a_newer_program_is_distinguished_from_a_foreign_file() {
        assert_eq!(payloads(b"TTJRNL\0\x02 and more"), Err(Damage::Newer(2)));
        for foreign in [&b"TTJRNL\0\x00"[..], b"TTJRNL\0", b"TTLEDGER", b""] {
            assert_eq!(payloads(foreign), Err(Damage::Foreign), "{foreign:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = payloads(&[&HEAD[..], &bytes].concat());
        }
    }
}
