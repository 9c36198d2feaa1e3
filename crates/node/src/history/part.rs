//! The series of one subject in one block: for each its metric's number, its length, its bytes.

use super::varint;

/// Appends a series.
pub(super) fn put(code: u16, series: &[u8], to: &mut Vec<u8>) {
    varint::put(u128::from(code), to);
    varint::put(series.len() as u128, to);
    to.extend_from_slice(series);
}

/// Takes the next series from the front: its metric's number and its bytes. None when there is no
/// whole one.
pub(super) fn take<'a>(from: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let code = u16::try_from(varint::take(from)?).ok()?;
    let length = usize::try_from(varint::take(from)?).ok()?;
    let (series, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some((code, series))
}

#[cfg(test)]
mod tests {
    use super::{put, take};

    #[test]
    fn series_are_found_again_and_cut_ones_are_not() {
        let mut bytes = Vec::new();
        put(300, b"abc", &mut bytes);
        put(7, b"", &mut bytes);
        let mut rest = bytes.as_slice();
        assert_eq!(take(&mut rest), Some((300, &b"abc"[..])));
        assert_eq!(take(&mut rest), Some((7, &b""[..])));
        assert_eq!(take(&mut rest), None);
        assert_eq!(take(&mut &bytes[..4]), None);
    }
}
