//! A pattern that is searched for in texts, and how long that can take at most: both may be of
//! a client that means to keep us busy.

use regex_lite::{Error, Regex, RegexBuilder};

/// Bytes of a compiled pattern at most.
const MAX_BYTES: usize = 8 << 10;

/// How deep groups of a pattern may stand within each other.
const MAX_DEPTH: u32 = 16;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Box<Regex>,
    /// A power of two that the compiled pattern has at most.
    most_bytes: usize,
}

impl Pattern {
    /// Compiles a pattern, whatever the case of what it is searched for in.
    pub(crate) fn new(text: &str) -> Result<Self, Error> {
        let (mut regex, mut most_bytes) = (compiled(text, MAX_BYTES)?, MAX_BYTES);
        // Its size is unknown, but whether a limit is kept.
        while let Ok(smaller) = compiled(text, most_bytes / 2) {
            (regex, most_bytes) = (smaller, most_bytes / 2);
        }
        Ok(Self { regex: Box::new(regex), most_bytes })
    }

    /// The most steps that a search in `text` can take: at each of its bytes, and at its end, each
    /// part of the pattern is checked once at most.
    pub(crate) fn most_steps(&self, text: &str) -> u64 {
        let places = u64::try_from(text.len()).unwrap_or(u64::MAX).saturating_add(1);
        places.saturating_mul(u64::try_from(self.most_bytes).unwrap_or(u64::MAX))
    }

    /// Whether it is in `text`.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

fn compiled(text: &str, most_bytes: usize) -> Result<Regex, Error> {
    RegexBuilder::new(text)
        .case_insensitive(true)
        .size_limit(most_bytes)
        .nest_limit(MAX_DEPTH)
        .build()
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, Pattern};

    #[test]
    fn steps_grow_with_the_pattern_and_with_the_text() {
        let steps = |pattern: &str, text: &str| Pattern::new(pattern).unwrap().most_steps(text);
        let long = "a".repeat(4096);
        assert_eq!(steps("(a?){40}b", &long), 4097 * 8192, "no pattern has more");
        assert_eq!(steps("(a?){40}b", ""), 8192);
        assert!(steps("train", &long) <= 4097 * 512);
        assert!(steps("(a?){20}b", &long) * 2 <= steps("(a?){40}b", &long));
        assert!(Pattern::new("(a?){80}b").is_err(), "more than {MAX_BYTES}");
    }
}
