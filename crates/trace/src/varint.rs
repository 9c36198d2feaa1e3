//! Numbers in 1 to 10 bytes: 7 bits a byte, lowest first, the top bit set on all but the last.
//!
//! Each number has exactly one form: a longer one is refused, so that equal traces are equal bytes.

/// The most bytes one number takes.
pub(crate) const MAX_BYTES: usize = 10;

/// Appends `value` to `output`.
pub(crate) fn append(output: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        output.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    output.push(value as u8);
}

/// Takes bytes one after the other until they make a number.
#[derive(Default)]
pub(crate) struct Decoder {
    value: u64,
    bytes: usize,
}

/// What one more byte means.
pub(crate) enum VarintStep {
    /// The number is complete.
    Done(u64),
    /// Another byte belongs to it.
    More,
    /// No number looks like this.
    Malformed,
}

impl Decoder {
    /// Takes the next byte.
    pub(crate) fn step(&mut self, byte: u8) -> VarintStep {
        let last = byte & 0x80 == 0;
        // The tenth byte holds the 64th bit alone; a last byte of 0 after others adds nothing.
        let too_large = self.bytes == MAX_BYTES - 1 && byte > 1;
        let too_long = last && byte == 0 && self.bytes > 0;
        if too_large || too_long {
            return VarintStep::Malformed;
        }
        self.value |= u64::from(byte & 0x7f) << (7 * self.bytes);
        self.bytes += 1;
        if last { VarintStep::Done(self.value) } else { VarintStep::More }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoder, MAX_BYTES, VarintStep, append};

    fn decode(bytes: &[u8]) -> Option<u64> {
        let mut decoder = Decoder::default();
        let mut rest = bytes.iter();
        loop {
            match decoder.step(*rest.next()?) {
                VarintStep::Done(value) => return rest.next().is_none().then_some(value),
                VarintStep::More => {}
                VarintStep::Malformed => return None,
            }
        }
    }

    #[test]
    fn every_width_survives_the_round_trip() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                append(&mut bytes, value);
                assert!(bytes.len() <= MAX_BYTES);
                assert_eq!(decode(&bytes), Some(value));
            }
        }
    }

    #[test]
    fn a_number_has_one_form_and_at_most_64_bits() {
        let cases: [(&[u8], Option<u64>); 6] = [
            (&[0], Some(0)),
            (&[0x80, 0], None),
            (&[0x81, 0x80, 0], None),
            (&[0xff; 10], None),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Some(u64::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(bytes), expected, "{bytes:?}");
        }
    }
}
