//! How much of a compiled kernel is code: what a core's memory would have to hold of it.

/// Bytes of a 64-bit little-endian ELF header that are checked.
const HEADER_BYTES: usize = 64;
/// A program header's size.
const SEGMENT_BYTES: usize = 56;
/// The type of a segment that is loaded, and the flag of one that is run.
const LOADED: u32 = 1;
const EXECUTABLE: u32 = 1;

/// A library's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeSize {
    /// The size of the segments that are run; of the whole file if it is not such a file.
    pub(crate) bytes: u64,
    /// From where to where it is in memory, counted from the library's beginning; nowhere if it is
    /// not such a file.
    pub(crate) place: (usize, usize),
}

impl CodeSize {
    pub(super) fn of(file: &[u8]) -> Self {
        let whole = Self { bytes: file.len() as u64, place: (0, 0) };
        segments(file).filter(|found| found.bytes > 0).unwrap_or(whole)
    }
}

fn segments(file: &[u8]) -> Option<CodeSize> {
    let header = file.get(..HEADER_BYTES)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let start = usize::try_from(u64::from_le_bytes(*header.get(32..)?.first_chunk()?)).ok()?;
    let count = u16::from_le_bytes(*header.get(56..)?.first_chunk()?);
    let (mut sum, mut place) = (0u64, None::<(usize, usize)>);
    for segment in file.get(start..)?.chunks_exact(SEGMENT_BYTES).take(count.into()) {
        let kind = u32::from_le_bytes(*segment.first_chunk()?);
        let flags = u32::from_le_bytes(*segment.get(4..)?.first_chunk()?);
        let address = u64::from_le_bytes(*segment.get(16..)?.first_chunk()?);
        let bytes = u64::from_le_bytes(*segment.get(32..)?.first_chunk()?);
        if kind == LOADED && flags & EXECUTABLE != 0 {
            sum = sum.checked_add(bytes)?;
            let first = usize::try_from(address).ok()?;
            let end = usize::try_from(address.checked_add(bytes)?).ok()?;
            let (lowest, highest) = place.unwrap_or((first, end));
            place = Some((lowest.min(first), highest.max(end)));
        }
    }
    let found = CodeSize { bytes: sum, place: place.unwrap_or_default() };
    (sum <= file.len() as u64).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::CodeSize;

    proptest! {
        #[test]
        fn any_file_has_a_size(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(CodeSize::of(&bytes).bytes <= bytes.len() as u64);
            if let Some(head) = bytes.get_mut(..6) {
                head.copy_from_slice(b"\x7fELF\x02\x01");
            }
            prop_assert!(CodeSize::of(&bytes).bytes <= bytes.len() as u64);
        }
    }
}
