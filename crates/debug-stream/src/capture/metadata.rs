//! `metadata.txt` beside an event's bytes: a line for each fact. Ours and Neuron's own are read;
//! what is not known is passed over.

use std::io::Read;
use std::path::Path;

use super::safe_file;
use crate::{EventKind, MAX_DIMENSIONS};

/// The file's name.
pub(super) const METADATA: &str = "metadata.txt";
/// The name of the file beside it with the data.
pub(super) const DATA: &str = "tensor_data.bin";
/// The longest file that is read; an escaped prefix takes at most a few kilobytes of it.
const MAX_BYTES: u64 = 64 << 10;

/// What such a file reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) kind: EventKind,
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    pub(super) data_bytes: Option<u64>,
    pub(super) prefix: Option<String>,
    pub(super) core: Option<u32>,
    pub(super) pipe: u32,
    pub(super) sequence: Option<u64>,
    pub(super) time_ns: Option<u64>,
    pub(super) iteration: Option<u64>,
}

/// Reads the file in a directory.
///
/// # Errors
/// A sentence that says what is wrong.
pub(super) fn read(directory: &Path) -> Result<Metadata, String> {
    let cannot = |error| format!("cannot read {METADATA}: {error}");
    let file = safe_file::open(&directory.join(METADATA)).map_err(cannot)?;
    let file = file.ok_or_else(|| format!("{METADATA} is no file"))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes > MAX_BYTES) {
        return Err(format!("{METADATA} has more than {} KiB", MAX_BYTES >> 10));
    }
    parse(&String::from_utf8_lossy(&bytes))
}

fn parse(text: &str) -> Result<Metadata, String> {
    let mut found = Metadata {
        kind: EventKind::Tensor,
        dtype: String::new(),
        shape: Vec::new(),
        data_bytes: None,
        prefix: None,
        core: None,
        pipe: 0,
        sequence: None,
        time_ns: None,
        iteration: None,
    };
    let mut has_dtype = false;
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        // One space belongs to the form, all others to the value.
        let value = value.strip_prefix(' ').unwrap_or(value);
        let wrong = || format!("{METADATA} says {} is {value:?}", key.trim());
        match key.trim() {
            "dtype" => {
                has_dtype = true;
                found.dtype = unescape(value.trim());
            }
            "shape" => found.shape = shape(value).ok_or_else(wrong)?,
            "data_size" => found.data_bytes = Some(number(value).ok_or_else(wrong)?),
            "type" => {
                let code = u32::try_from(number(value).ok_or_else(wrong)?).map_err(|_| wrong())?;
                found.kind = EventKind::from_code(code);
            }
            "prefix" => found.prefix = Some(unescape(value)),
            "core" => {
                let core = number(value).ok_or_else(wrong)?;
                found.core = Some(u32::try_from(core).map_err(|_| wrong())?);
            }
            "pipe" => {
                found.pipe =
                    u32::try_from(number(value).ok_or_else(wrong)?).map_err(|_| wrong())?;
            }
            "sequence" => found.sequence = Some(number(value).ok_or_else(wrong)?),
            "time_ns" => found.time_ns = Some(number(value).ok_or_else(wrong)?),
            "iteration" => found.iteration = Some(number(value).ok_or_else(wrong)?),
            _ => {}
        }
    }
    if has_dtype { Ok(found) } else { Err(format!("{METADATA} names no dtype")) }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// A shape such as `(2, 3)`, `(2,)` or `()`.
fn shape(text: &str) -> Option<Vec<u64>> {
    let inside = text.trim().strip_prefix(['(', '['])?.strip_suffix([')', ']'])?;
    let sizes: Vec<&str> = inside.split(',').map(str::trim).collect();
    let sizes = match sizes.split_last() {
        Some((&"", sizes)) => sizes,
        _ => &sizes,
    };
    if sizes.len() > MAX_DIMENSIONS {
        return None;
    }
    sizes.iter().map(|size| size.parse().ok()).collect()
}

/// A text as it was before `escape_default`; what is no such escape stays as it is.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match escaped(rest) {
            Some((character, bytes)) => {
                plain.push(character);
                rest = &rest[bytes..];
            }
            None => plain.push('\\'),
        }
    }
    plain.push_str(rest);
    plain
}

/// The character that what follows a backslash stands for, and how many bytes that is.
fn escaped(text: &str) -> Option<(char, usize)> {
    let character = match text.as_bytes().first()? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        quoted @ (b'\\' | b'\'' | b'"') => char::from(*quoted),
        b'u' => {
            let (digits, _) = text.strip_prefix("u{")?.split_once('}')?;
            let code = u32::from_str_radix(digits, 16).ok()?;
            return Some((char::from_u32(code)?, digits.len() + 3));
        }
        _ => return None,
    };
    Some((character, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use crate::sink::write_metadata;

    #[test]
    fn what_the_default_consumer_writes_is_read_back() {
        for prefix in ["loss", "a\\b\"c'", "tab\tline\nend", "é\u{202e}", " x = y ", "\\u{41}", ""]
        {
            let event = Event {
                kind: EventKind::User(300),
                sequence: 7,
                time_ns: 9,
                iteration: Some(3),
                core: 2,
                pipe: 1,
                prefix: prefix.to_owned(),
                dtype: "floa\n".to_owned(),
                shape: vec![2, 3],
                data: vec![1; 5],
            };
            let mut text = Vec::new();
            write_metadata(&mut text, &event).unwrap();
            let found = parse(&String::from_utf8(text).unwrap()).unwrap();
            let expected = Metadata {
                kind: EventKind::User(300),
                dtype: "floa\n".to_owned(),
                shape: vec![2, 3],
                data_bytes: Some(5),
                prefix: Some(prefix.to_owned()),
                core: Some(2),
                pipe: 1,
                sequence: Some(7),
                time_ns: Some(9),
                iteration: Some(3),
            };
            assert_eq!(found, expected, "{prefix:?}");
        }
    }

    #[test]
    fn neurons_own_is_read_and_nonsense_is_refused() {
        let found = parse("dtype = bfloat16\nshape = (4,)\ndata_size = 8\n").unwrap();
        assert_eq!(
            (found.dtype.as_str(), found.shape, found.data_bytes),
            ("bfloat16", vec![4], Some(8))
        );
        assert_eq!((found.kind, found.prefix, found.core), (EventKind::Tensor, None, None));
        for bad in [
            "",
            "shape = (1)\n",
            "dtype = x\nshape = 1, 2",
            "dtype = x\nshape = (a)",
            "dtype = x\nshape = (1,2,3,4,5,6,7,8,9)",
            "dtype = x\ndata_size = -1",
            "dtype = x\ncore = 4294967296",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(unescape(r"\u{110000} \x \"), r"\u{110000} \x \");
    }
}
