//! Names that NCCL uses for operations, types and algorithms, kept as two words.
//!
//! A longer name is cut: NCCL's own have at most 14 bytes (`COLLNET_DIRECT`).

/// The longest name that is kept whole, in bytes.
pub(crate) const SHORT_TEXT_BYTES: usize = 16;

/// A name of at most [`SHORT_TEXT_BYTES`] bytes of printable ASCII, filled up with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ShortText(u128);

impl ShortText {
    /// The name with these bytes; what is not printable ASCII, or would have to be escaped in JSON,
    /// becomes `_`.
    pub(crate) fn new(bytes: impl Iterator<Item = u8>) -> Self {
        let mut kept = [0; SHORT_TEXT_BYTES];
        for (place, byte) in kept.iter_mut().zip(bytes) {
            let plain = byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            *place = if plain { byte } else { b'_' };
        }
        Self(u128::from_le_bytes(kept))
    }

    /// The name as two words.
    pub(crate) fn words(self) -> [u64; 2] {
        let bytes = self.0.to_le_bytes();
        let (low, high) = bytes.split_at(8);
        [low, high].map(|half| u64::from_le_bytes(half.try_into().expect("half of 16 bytes")))
    }

    /// The name with these words.
    pub(crate) fn from_words(words: [u64; 2]) -> Self {
        Self(u128::from(words[0]) | (u128::from(words[1]) << 64))
    }

    /// The name in small letters; an empty one as `unknown`.
    pub(crate) fn lower_case(self) -> String {
        let bytes = self.0.to_le_bytes();
        let text = bytes.iter().take_while(|byte| **byte != 0);
        let text: String = text.map(|byte| char::from(byte.to_ascii_lowercase())).collect();
        if text.is_empty() { "unknown".to_owned() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_and_what_is_no_name_is_made_harmless() {
        for (given, expected) in [
            ("AllReduce", "allreduce"),
            ("COLLNET_DIRECT", "collnet_direct"),
            ("", "unknown"),
            ("a\"b\\c\nd\u{e9}", "a_b_c_d__"),
            ("0123456789abcdefg", "0123456789abcdef"),
        ] {
            let text = ShortText::new(given.bytes());
            assert_eq!(ShortText::from_words(text.words()).lower_case(), expected, "{given:?}");
        }
    }
}
