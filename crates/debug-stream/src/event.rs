//! What an event says, and what the queue carries of it: facts, the prefix as its name, the data.
//!
//! The meaning of the facts is private to the process. Nothing here knows the C structures.

use crate::queue::{Draft, Facts, QueuedEvent};

/// The longest prefix that the published structure holds, without its final zero.
pub const MAX_PREFIX_BYTES: usize = 511;
/// The longest name of a data type that it holds, likewise.
pub const MAX_DTYPE_BYTES: usize = 15;
/// The most dimensions that it holds.
pub const MAX_DIMENSIONS: usize = 8;
/// The smallest event type that is free for a runtime's own use.
pub const FIRST_USER_TYPE: u32 = 256;

const TENSOR: u32 = 1;
const TEXT: u32 = 2;
const BREAKPOINT: u32 = 3;

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// A tensor that a core printed; type 1 of the published interface.
    Tensor,
    /// A line of text.
    Text,
    /// A core reached a breakpoint.
    Breakpoint,
    /// A type of the runtime's own.
    User(u32),
    /// An undefined type.
    Unknown(u32),
}

/// An event as it lies in the queue, borrowed from there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventView<'queue> {
    /// What it is.
    pub kind: EventKind,
    /// Counts what was published while the stream was connected, lost events included, from 0.
    pub sequence: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`, as of the kernel's last tick (1 to 10 ms back).
    pub time_ns: u64,
    /// The logical core that it comes from.
    pub core: u32,
    /// Where it wants to be printed: 0 for standard output, anything else for standard error.
    pub pipe: u32,
    /// What the kernel's author called it; UTF-8 if a Rust publisher wrote it.
    pub prefix: &'queue [u8],
    /// The name of its data type; empty where there is none.
    pub dtype: &'queue [u8],
    /// Its dimensions, the first [`EventView::rank`] of which count; the others are 0.
    pub shape: [u64; MAX_DIMENSIONS],
    /// How many dimensions it has.
    pub rank: usize,
    /// The tensor, the text, or the bytes of a user type. Aligned to 64 bytes.
    pub data: &'queue [u8],
}

/// An event of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What it is.
    pub kind: EventKind,
    /// See [`EventView::sequence`].
    pub sequence: u64,
    /// See [`EventView::time_ns`].
    pub time_ns: u64,
    /// How many events of this core and prefix the consumer got before; none when it has seen more
    /// prefixes than it counts.
    pub iteration: Option<u64>,
    /// See [`EventView::core`].
    pub core: u32,
    /// See [`EventView::pipe`].
    pub pipe: u32,
    /// What the kernel's author called it.
    pub prefix: String,
    /// The name of its data type; empty where there is none.
    pub dtype: String,
    /// Its dimensions; none for a scalar.
    pub shape: Vec<u64>,
    /// See [`EventView::data`].
    pub data: Vec<u8>,
}

/// The fields of an event before they are encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'event> {
    pub(crate) core: u32,
    pub(crate) pipe: u32,
    pub(crate) prefix: &'event str,
    pub(crate) dtype: &'event str,
    pub(crate) shape: &'event [u64],
    pub(crate) data: &'event [u8],
}

// === impl EventKind ===

impl EventKind {
    /// The number that stands for it.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Self::Tensor => TENSOR,
            Self::Text => TEXT,
            Self::Breakpoint => BREAKPOINT,
            Self::User(code) | Self::Unknown(code) => code,
        }
    }

    /// What a number stands for.
    #[must_use]
    pub fn from_code(code: u32) -> Self {
        match code {
            TENSOR => Self::Tensor,
            TEXT => Self::Text,
            BREAKPOINT => Self::Breakpoint,
            FIRST_USER_TYPE.. => Self::User(code),
            _ => Self::Unknown(code),
        }
    }

    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Text => "text",
            Self::Breakpoint => "breakpoint",
            Self::User(_) => "user",
            Self::Unknown(_) => "unknown",
        }
    }
}

// === impl Fields ===

impl Fields<'_> {
    /// The event as it is queued; none when it has more dimensions than can be recorded. A prefix or
    /// name that is too long is cut.
    #[inline(always)]
    pub(crate) fn draft(&self, kind: EventKind) -> Option<Draft<'_>> {
        if self.shape.len() > MAX_DIMENSIONS {
            return None;
        }
        Some(Draft {
            facts: Facts {
                numbers: [kind.code(), self.core, self.pipe],
                text: short_text(cut(self.dtype, MAX_DTYPE_BYTES).as_bytes()),
            },
            dimensions: self.shape,
            name: cut(self.prefix, MAX_PREFIX_BYTES).as_bytes(),
            data: self.data,
        })
    }
}

/// Up to 15 bytes, with zeros behind them; put together in registers, because what is stored in
/// small pieces can be loaded as a whole only after all earlier stores have left the processor.
#[inline(always)]
fn short_text(text: &[u8]) -> [u8; MAX_DTYPE_BYTES + 1] {
    let joined = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let shift = 8 * (text.len() - 8);
        u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << shift
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let shift = 8 * (text.len() - 4);
        u128::from(u32::from_le_bytes(*first)) | u128::from(u32::from_le_bytes(*last)) << shift
    } else {
        text.iter().rev().fold(0, |joined, &byte| joined << 8 | u128::from(byte))
    };
    joined.to_le_bytes()
}

/// The first bytes of a text, at most so many, without half a character at the end.
#[inline(always)]
fn cut(text: &str, most_bytes: usize) -> &str {
    if text.len() <= most_bytes { text } else { shorten(text, most_bytes) }
}

#[cold]
fn shorten(text: &str, most_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(most_bytes)]
}

// === impl EventView ===

impl<'queue> EventView<'queue> {
    /// Reads what [`Fields::draft`] wrote; none if that is not what it is.
    #[inline]
    pub(crate) fn read(record: &QueuedEvent<'queue>) -> Option<Self> {
        let body = record.body;
        let [code, core, pipe] = body.facts.numbers;
        let mut shape = [0; MAX_DIMENSIONS];
        let rank = body.dimensions.len();
        shape.get_mut(..rank)?.copy_from_slice(body.dimensions);
        Some(Self {
            kind: EventKind::from_code(code),
            sequence: record.sequence,
            time_ns: record.time_ns,
            core,
            pipe,
            prefix: body.name,
            dtype: body.facts.text.split(|&byte| byte == 0).next()?,
            shape,
            rank,
            data: body.data,
        })
    }

    /// A copy of one's own. Bytes of the prefix and the name that are not UTF-8 are replaced.
    #[must_use]
    pub fn to_event(&self, iteration: Option<u64>) -> Event {
        Event {
            kind: self.kind,
            sequence: self.sequence,
            time_ns: self.time_ns,
            iteration,
            core: self.core,
            pipe: self.pipe,
            prefix: String::from_utf8_lossy(self.prefix).into_owned(),
            dtype: String::from_utf8_lossy(self.dtype).into_owned(),
            shape: self.shape[..self.rank].to_vec(),
            data: self.data.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Body;

    #[test]
    fn what_is_encoded_is_read_back() {
        let long = "é".repeat(400);
        for (prefix, dtype, shape, data) in [
            ("", "", &[][..], &b""[..]),
            ("loss", "float32", &[2, 0, 7], b"twelve bytes"),
            ("sixteen bytes ..", "float4e2m1fn_x4", &[1, 2, 3, 4, 5, 6, 7, 8], b"x"),
            (&long, "float8e4m3fn_x4", &[u64::MAX], b""),
        ] {
            let fields = Fields { core: 3, pipe: 1, prefix, dtype, shape, data };
            let draft = fields.draft(EventKind::Tensor).unwrap();
            let Draft { facts, dimensions, name, data: queued } = draft;
            let body = Body { time_ns: 0, facts: &facts, dimensions, name, data: queued };
            let record = QueuedEvent { sequence: 9, time_ns: 8, body };
            let damaged = QueuedEvent { body: Body { dimensions: &[1; 9], ..body }, ..record };
            assert_eq!(EventView::read(&damaged), None);
            let view = EventView::read(&record).unwrap();
            assert_eq!((view.kind, view.sequence, view.time_ns), (EventKind::Tensor, 9, 8));
            let event = view.to_event(None);
            assert_eq!((event.core, event.pipe, event.dtype.as_str()), (3, 1, dtype));
            assert!(prefix.starts_with(&event.prefix) && event.prefix.len() <= MAX_PREFIX_BYTES);
            assert!(event.prefix.len() + 1 >= prefix.len().min(MAX_PREFIX_BYTES));
            assert_eq!((event.shape.as_slice(), event.data.as_slice()), (shape, data));
        }
    }

    #[test]
    fn a_name_of_any_length_is_kept_whole() {
        let text = b"abcdefghijklmno";
        for length in 0..=MAX_DTYPE_BYTES {
            let expected: [u8; 16] =
                std::array::from_fn(|at| if at < length { text[at] } else { 0 });
            assert_eq!(short_text(&text[..length]), expected, "{length}");
        }
    }

    #[test]
    fn nine_dimensions_cannot_be_reported() {
        let fields =
            Fields { core: 0, pipe: 0, prefix: "", dtype: "int8", shape: &[1; 9], data: b"" };
        assert!(fields.draft(EventKind::Tensor).is_none());
    }

    #[test]
    fn kinds_and_codes_agree() {
        for code in [0, 1, 2, 3, 4, 255, 256, u32::MAX] {
            assert_eq!(EventKind::from_code(code).code(), code);
        }
    }
}
