//! Which events are wanted, decided before a tensor is copied.

mod text;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::Fields;

pub use text::FilterError;

/// The most logical cores of a process: more than three trays of 32 chips have.
pub const MAX_CORES: u32 = 16_384;

/// What an event must be to be queued; by default anything is wanted.
#[derive(Debug, Default)]
pub struct Filter {
    cores: Vec<u32>,
    prefix: Option<Pattern>,
    dtypes: Vec<String>,
    max_bytes: Option<usize>,
    every: Option<NonZeroU64>,
    /// Events that all else let through.
    passed: AtomicU64,
}

/// A pattern for prefixes: `*` stands for any characters, `?` for any one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<char>);

// === impl Filter ===

impl Filter {
    /// Lets everything through.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only events of these logical cores; all if there are none.
    #[must_use]
    pub fn cores(mut self, cores: impl IntoIterator<Item = u32>) -> Self {
        self.cores = cores.into_iter().collect();
        self
    }

    /// Only events whose whole prefix matches.
    #[must_use]
    pub fn prefix(mut self, pattern: &str) -> Self {
        self.prefix = Some(Pattern::new(pattern));
        self
    }

    /// Only events with one of these data types; all if there are none.
    #[must_use]
    pub fn dtypes<'name>(mut self, names: impl IntoIterator<Item = &'name str>) -> Self {
        self.dtypes = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// Only events with at most so many bytes of data.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Of the events that all else lets through, the first and then every so many-th.
    #[must_use]
    pub fn every(mut self, nth: NonZeroU64) -> Self {
        self.every = Some(nth);
        self
    }

    /// Whether an event like this is wanted. Each call counts for [`Filter::every`].
    #[must_use]
    pub fn wants_event(&self, core: u32, prefix: &str, dtype: &str, bytes: usize) -> bool {
        self.wants_size(u64::try_from(bytes).unwrap_or(u64::MAX))
            && self.wants_form(Some(core), prefix, dtype)
            && self.every.is_none_or(|nth| {
                self.passed.fetch_add(1, Ordering::Relaxed).is_multiple_of(nth.get())
            })
    }

    pub(crate) fn wants(&self, event: &Fields<'_>) -> bool {
        self.wants_event(event.core, event.prefix, event.dtype, event.data.len())
    }

    /// Whether so much data is wanted.
    pub(crate) fn wants_size(&self, bytes: u64) -> bool {
        self.max_bytes.is_none_or(|most| u64::try_from(most).is_ok_and(|most| bytes <= most))
    }

    /// Whether events of this core, prefix and type are wanted, whatever their size and number.
    pub(crate) fn wants_form(&self, core: Option<u32>, prefix: &str, dtype: &str) -> bool {
        (self.cores.is_empty() || core.is_some_and(|core| self.cores.contains(&core)))
            && (self.dtypes.is_empty() || self.dtypes.iter().any(|name| name == dtype))
            && self.prefix.as_ref().is_none_or(|pattern| pattern.matches(prefix))
    }

    /// Which of the events that all else lets through are wanted; all, if there is none.
    pub(crate) fn nth(&self) -> Option<NonZeroU64> {
        self.every
    }
}

// === impl Pattern ===

impl Pattern {
    /// A pattern from its text; every text is one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// Whether the whole of `text` matches. Takes at most the product of both lengths in steps.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.as_slice(), text.chars());
        // After the last star: the pattern behind it, and the text it may start at.
        let mut retry: Option<(&[char], std::str::Chars<'_>)> = None;
        loop {
            let at = rest.clone();
            match (pattern.split_first(), rest.next()) {
                (Some(('*', behind)), _) => {
                    retry = Some((behind, at.clone()));
                    (pattern, rest) = (behind, at);
                }
                (Some((wanted, behind)), Some(found)) if *wanted == '?' || *wanted == found => {
                    pattern = behind;
                }
                (None, None) => return true,
                (_, found) => {
                    let Some((behind, from)) = &mut retry else { return false };
                    if found.is_none() || from.next().is_none() {
                        return false;
                    }
                    (pattern, rest) = (*behind, from.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_prefixes() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("layer?", "layer1", true),
            ("layer?", "layer", false),
            ("layer?", "layer12", false),
            ("l*r*", "layer12", true),
            ("*12", "layer1212", true),
            ("*1?", "layer121x", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("**x", "x", true),
            ("é?", "éß", true),
            ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("Layer", "layer", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern:?} on {text:?}");
        }
    }

    #[test]
    fn each_condition_must_hold_and_the_nth_counts_what_the_others_pass() {
        let event =
            |core, prefix, dtype, data| Fields { core, pipe: 0, prefix, dtype, shape: &[], data };
        let third = NonZeroU64::new(3).unwrap();
        let filter = Filter::new()
            .cores([1, 2])
            .prefix("act*")
            .dtypes(["float32", "bfloat16"])
            .max_bytes(4)
            .every(third);
        let good = event(2, "act.3", "bfloat16", &b"1234"[..]);
        let seven = [(); 7].map(|()| {
            for bad in [
                Fields { core: 0, ..good },
                Fields { prefix: "grad", ..good },
                Fields { dtype: "int8", ..good },
                Fields { data: b"12345", ..good },
            ] {
                assert!(!filter.wants(&bad), "{bad:?}");
            }
            filter.wants(&good)
        });
        assert_eq!(seven, [true, false, false, true, false, false, true]);
        assert!(Filter::new().wants(&good));
    }
}
