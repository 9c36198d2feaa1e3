//! What is learned: a text that is built in. No file is read.

use rapidhash::v3::rapidhash_v3;

use crate::alphabet;
use crate::random::{self, RandomStream};

/// The documentation of November 2026. It stays as it is, so that weights and checkpoints do not change with a page.
const TEXT: &str = include_str!("text.txt");

/// A text as tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    tokens: Vec<u32>,
    digest: u64,
}

impl Text {
    /// The text that is built in.
    #[must_use]
    pub fn documentation() -> Self {
        Self::new(TEXT)
    }

    /// Any text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let tokens = alphabet::tokens(text);
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        Self { tokens, digest: rapidhash_v3(&bytes) }
    }

    /// How many tokens it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Tells this text from others.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Window `number` of a seed: so many tokens from a random place on; none if the text is
    /// shorter.
    #[must_use]
    pub fn window(&self, seed: u64, number: u64, tokens: usize) -> Option<&[u32]> {
        let places = (self.tokens.len() + 1).checked_sub(tokens).filter(|places| *places > 0)?;
        let start = random::below(seed, RandomStream::Windows, number, places as u64);
        let start = usize::try_from(start).expect("a place in a text in memory");
        self.tokens.get(start..start + tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn the_documentation_is_worth_reading() {
        let text = Text::documentation();
        assert!(text.len() > 50_000, "{}", text.len());
    }

    #[test]
    fn windows_are_of_the_text_and_follow_from_seed_and_number() {
        let text = Text::new("abcdefgh");
        let windows: Vec<_> = (0..40).map(|number| text.window(3, number, 3).unwrap()).collect();
        assert!(windows.iter().all(|window| window.windows(2).all(|w| w[1] == w[0] + 1)));
        let firsts: std::collections::BTreeSet<u32> = windows.iter().map(|w| w[0]).collect();
        assert_eq!(firsts.len(), 6, "every place comes");
        assert_eq!(text.window(3, 5, 3), Some(windows[5]));
        assert_eq!(text.window(3, 0, 8).map(<[u32]>::len), Some(8));
        assert_eq!(text.window(3, 0, 9), None);
    }

    #[test]
    fn texts_are_distinguished() {
        assert_ne!(Text::new("ab").digest(), Text::new("ba").digest());
        assert_eq!(Text::new("ab").digest(), Text::new("a\u{e9}b").digest());
    }
}
