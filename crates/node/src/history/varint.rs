//! Numbers in as few bytes as they need: seven bits a byte, the lowest first, as in LEB128.

/// Appends `number`.
pub(super) fn put(mut number: u128, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    to.push(low_bits(number));
}

/// Appends a number that may be below zero, small ones of either sign in few bytes.
pub(super) fn put_signed(number: i128, to: &mut Vec<u8>) {
    put(((number << 1) ^ (number >> 127)).cast_unsigned(), to);
}

/// Takes a number from the front; none when there is no whole one that fits.
pub(super) fn take(from: &mut &[u8]) -> Option<u128> {
    let mut number = 0u128;
    let mut shift = 0;
    loop {
        let (byte, rest) = from.split_first()?;
        let bits = u128::from(byte & 0x7f);
        if shift > 126 || (shift == 126 && bits > 3) {
            return None;
        }
        *from = rest;
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Takes what [`put_signed`] appended.
pub(super) fn take_signed(from: &mut &[u8]) -> Option<i128> {
    let number = take(from)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

/// Takes a number that fits into 64 bits.
pub(super) fn take_u64(from: &mut &[u8]) -> Option<u64> {
    u64::try_from(take(from)?).ok()
}

fn low_bits(number: u128) -> u8 {
    u8::try_from(number & 0x7f).expect("seven bits fit into a byte")
}

#[cfg(test)]
mod tests {
    use super::{put, put_signed, take, take_signed, take_u64};

    #[test]
    fn numbers_of_every_size_survive() {
        let mut bytes = Vec::new();
        let mut numbers = vec![0, 1, 127, 128, u128::from(u64::MAX), u128::MAX - 1, u128::MAX];
        numbers.extend((0..128).map(|shift| 1u128 << shift));
        numbers.iter().for_each(|number| put(*number, &mut bytes));
        let mut rest = bytes.as_slice();
        for number in numbers {
            assert_eq!(take(&mut rest), Some(number));
        }
        assert!(rest.is_empty());
        for number in [0, -1, 1, i128::MAX, i128::MIN, i128::from(i64::MIN)] {
            let mut bytes = Vec::new();
            put_signed(number, &mut bytes);
            assert_eq!(take_signed(&mut bytes.as_slice()), Some(number));
        }
    }

    #[test]
    fn what_is_cut_off_or_too_large_is_no_number() {
        let mut too_large = vec![0xff; 18];
        too_large.push(0x04);
        for bytes in [&[][..], &[0x80], &[0xff; 40], &too_large] {
            assert_eq!(take(&mut { bytes }), None, "{bytes:?}");
        }
        let mut bytes = Vec::new();
        put(u128::from(u64::MAX) + 1, &mut bytes);
        assert_eq!(take_u64(&mut bytes.as_slice()), None);
    }
}
