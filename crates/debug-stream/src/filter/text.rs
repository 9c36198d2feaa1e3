//! A filter as text, as `TELLTALE_DEBUG_FILTER` has it: terms between semicolons, each a key, an
//! equals sign and what is wanted. `core=0,2-3;prefix=act*;dtype=float32,bfloat16;every=10;max_bytes=4096`

use std::num::NonZeroU64;
use std::str::FromStr;

use super::Filter;
use super::MAX_CORES;
use crate::dtype::Dtype;

/// The longest text that is read.
const MAX_TEXT_BYTES: usize = 4096;

/// Why a text is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is longer than anybody needs.
    #[error("it has more than {MAX_TEXT_BYTES} bytes")]
    TooLong,
    /// A term has no equals sign.
    #[error("{0:?} is not of the form key=value")]
    NoValue(String),
    /// There is no such key, or it was there before.
    #[error("{0:?} is not one of core, prefix, dtype, every and max_bytes, each at most once")]
    Key(String),
    /// What stands behind the equals sign is not what the key wants.
    #[error("{key}={value:?} is not {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What could.
        wanted: &'static str,
    },
}

impl FromStr for Filter {
    type Err = FilterError;

    /// Reads a filter; an empty text lets everything through.
    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(FilterError::TooLong);
        }
        let mut filter = Self::new();
        let mut seen = Vec::new();
        for term in text.split(';').map(str::trim).filter(|term| !term.is_empty()) {
            let (key, value) =
                term.split_once('=').ok_or_else(|| FilterError::NoValue(term.to_owned()))?;
            let (key, value) = (key.trim_end(), value.trim_start());
            if seen.contains(&key) {
                return Err(FilterError::Key(key.to_owned()));
            }
            seen.push(key);
            filter = with(filter, key, value)?;
        }
        Ok(filter)
    }
}

/// The filter with one more term.
fn with(filter: Filter, key: &str, value: &str) -> Result<Filter, FilterError> {
    let wrong = |key, wanted| FilterError::Value { key, value: value.to_owned(), wanted };
    match key {
        "core" => {
            let cores = cores(value).ok_or_else(|| wrong("core", "a list as 0,2-3"))?;
            Ok(filter.cores(cores))
        }
        "prefix" => Ok(filter.prefix(value)),
        "dtype" => {
            let names: Vec<&str> = value.split(',').map(str::trim).collect();
            if names.iter().any(|name| Dtype::from_name(name).is_none()) {
                return Err(wrong("dtype", "a list of data types as float32,bfloat16"));
            }
            Ok(filter.dtypes(names))
        }
        "every" => {
            let nth = value.parse::<NonZeroU64>();
            Ok(filter.every(nth.map_err(|_| wrong("every", "a positive whole number"))?))
        }
        "max_bytes" => {
            let bytes = value.parse().map_err(|_| wrong("max_bytes", "a whole number"))?;
            Ok(filter.max_bytes(bytes))
        }
        _ => Err(FilterError::Key(key.to_owned())),
    }
}

/// The numbers of a list of numbers and ranges.
fn cores(value: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in value.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MAX_CORES {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Fields;

    #[test]
    fn every_term_narrows_and_none_lets_all_through() {
        let event = Fields {
            core: 3,
            pipe: 0,
            prefix: "act.7",
            dtype: "float32",
            shape: &[],
            data: &[0; 4],
        };
        for (text, expected) in [
            ("", true),
            (" ; ", true),
            ("core=0,2-3", true),
            ("core=0-2", false),
            ("prefix=act*", true),
            ("prefix=", false),
            ("dtype=int8, float32", true),
            ("dtype=int8", false),
            ("max_bytes=3", false),
            ("every=2", true),
            ("core = 3 ; prefix = *7 ; dtype=float32 ; every=1 ; max_bytes=4", true),
            ("prefix=act*;core=1", false),
        ] {
            let filter: Filter = text.parse().unwrap();
            assert_eq!(filter.wants(&event), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("core", "\"core\" is not of the form key=value"),
            ("core=x", "core=\"x\" is not a list as 0,2-3"),
            ("core=3-2", "core=\"3-2\" is not a list as 0,2-3"),
            ("core=0-4294967295", "core=\"0-4294967295\" is not a list as 0,2-3"),
            ("dtype=float33", "dtype=\"float33\" is not a list of data types as float32,bfloat16"),
            ("every=0", "every=\"0\" is not a positive whole number"),
            ("max_bytes=-1", "max_bytes=\"-1\" is not a whole number"),
            (
                "pipe=1",
                "\"pipe\" is not one of core, prefix, dtype, every and max_bytes, each at most once",
            ),
            (
                "every=1;every=2",
                "\"every\" is not one of core, prefix, dtype, every and max_bytes, each at most \
                 once",
            ),
            (&"x".repeat(5000), "it has more than 4096 bytes"),
        ] {
            assert_eq!(text.parse::<Filter>().unwrap_err().to_string(), expected);
        }
    }
}
