//! A stream's bounds, as a program or the environment sets them. Reads no variable by itself.

use crate::filter::Filter;

/// The variable with the number of events that may wait, as Neuron's documents name it.
pub const BUFFER_SIZE_VARIABLE: &str = "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE";
/// The variable with the bytes of events that may wait.
pub const BUFFER_BYTES_VARIABLE: &str = "TELLTALE_DEBUG_STREAM_BYTES";
/// The variable with the filter of the streams in [`crate::cores`], in the form that
/// [`Filter`] is read from.
pub const FILTER_VARIABLE: &str = "TELLTALE_DEBUG_FILTER";
/// How many events may wait by default, as Neuron documents it.
pub const DEFAULT_MAX_EVENTS: u64 = 65_536;
/// How many bytes of events may wait by default: small tensors reach the bound on
/// events first, and large ones cannot take a machine's memory.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// How a stream is set up.
#[derive(Debug)]
pub struct StreamOptions {
    /// How many events may wait to be read.
    pub max_events: u64,
    /// How many bytes they may have together. An event of n bytes of data counts for n + 64, its
    /// prefix and 8 for each dimension, rounded up to the next 64.
    pub max_bytes: u64,
    /// Which events are wanted; all, if there is none.
    pub filter: Option<Filter>,
}

/// A variable whose value could not be used, so that the default holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {value:?}, which is not a positive whole number; {default} is used instead")]
pub struct Misread {
    /// The variable's name.
    pub variable: &'static str,
    /// What it holds.
    pub value: String,
    /// What is used.
    pub default: u64,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { max_events: DEFAULT_MAX_EVENTS, max_bytes: DEFAULT_MAX_BYTES, filter: None }
    }
}

impl StreamOptions {
    /// Bounds from variables, looked up by `variable`; what cannot be used is reported, once each.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> (Self, Vec<Misread>) {
        let mut misread = Vec::new();
        let mut bound = |name, default| match variable(name) {
            None => default,
            Some(value) => positive(&value).unwrap_or_else(|| {
                misread.push(Misread { variable: name, value, default });
                default
            }),
        };
        let max_events = bound(BUFFER_SIZE_VARIABLE, DEFAULT_MAX_EVENTS);
        let max_bytes = bound(BUFFER_BYTES_VARIABLE, DEFAULT_MAX_BYTES);
        (Self { max_events, max_bytes, filter: None }, misread)
    }
}

fn positive(value: &str) -> Option<u64> {
    value.trim().parse().ok().filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_positive_count_is_taken_and_anything_else_reported() {
        for (value, expected) in [
            (None, Ok(65_536)),
            (Some("1"), Ok(1)),
            (Some(" 1000 "), Ok(1_000)),
            (Some("18446744073709551615"), Ok(u64::MAX)),
            (Some("0"), Err(())),
            (Some("-5"), Err(())),
            (Some("64K"), Err(())),
            (Some(""), Err(())),
        ] {
            let lookup = |name: &str| {
                (name == BUFFER_SIZE_VARIABLE).then(|| value.map(str::to_owned)).flatten()
            };
            let (options, misread) = StreamOptions::from_variables(lookup);
            assert_eq!(options.max_events, expected.unwrap_or(DEFAULT_MAX_EVENTS), "{value:?}");
            assert_eq!(misread.len(), usize::from(expected.is_err()), "{value:?}");
            assert_eq!(options.max_bytes, DEFAULT_MAX_BYTES);
        }
    }

    #[test]
    fn the_message_names_variable_value_and_default() {
        let (_, misread) = StreamOptions::from_variables(|_| Some("x".to_owned()));
        let text: Vec<String> = misread.iter().map(ToString::to_string).collect();
        assert_eq!(
            text[0],
            "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE is \"x\", which is not a positive whole number; \
             65536 is used instead"
        );
        assert!(text[1].starts_with("TELLTALE_DEBUG_STREAM_BYTES is \"x\""));
    }
}
