//! What an event says, and how it lies in the queue: a fixed part, the prefix, and the data.
//!
//! The layout is private to the process. Nothing here knows the queue or the C structures.

use crate::queue::{Body, DATA_ALIGNMENT, FIXED_BYTES};

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
    /// A type that nobody has defined.
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
    /// The tensor, the text, or the bytes of a user type. Aligned to 16 bytes.
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

/// What a publisher puts into the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoded<'event> {
    pub(crate) fixed: [u8; FIXED_BYTES],
    pub(crate) prefix: &'event [u8],
    pub(crate) data: &'event [u8],
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

// === impl Encoded ===

impl<'event> Encoded<'event> {
    /// Lays an event out; none when it has more dimensions than can be told. A prefix or name that
    /// is too long is cut.
    #[inline(always)]
    pub(crate) fn new(fields: &Fields<'event>) -> Option<Self> {
        let prefix = cut(fields.prefix, MAX_PREFIX_BYTES).as_bytes();
        let dtype = cut(fields.dtype, MAX_DTYPE_BYTES).as_bytes();
        let rank = u32::try_from(fields.shape.len()).ok()?;
        if fields.shape.len() > MAX_DIMENSIONS {
            return None;
        }
        let mut fixed = [0; FIXED_BYTES];
        fixed[0..4].copy_from_slice(&fields.core.to_ne_bytes());
        fixed[4..8].copy_from_slice(&fields.pipe.to_ne_bytes());
        fixed[8..8 + dtype.len()].copy_from_slice(dtype);
        for (to, dimension) in fixed[24..88].chunks_exact_mut(8).zip(fields.shape) {
            to.copy_from_slice(&dimension.to_ne_bytes());
        }
        let prefix_bytes = u32::try_from(prefix.len()).ok()?;
        fixed[88..92].copy_from_slice(&prefix_bytes.to_ne_bytes());
        fixed[92..96].copy_from_slice(&rank.to_ne_bytes());
        Some(Self { fixed, prefix, data: fields.data })
    }

    /// What goes into the queue.
    #[inline(always)]
    pub(crate) fn body(&self) -> Body<'_> {
        Body { fixed: &self.fixed, name: self.prefix, data: self.data }
    }
}

/// The first bytes of a text, at most so many, without half a character at the end.
#[inline(always)]
fn cut(text: &str, most_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(most_bytes)]
}

// === impl EventView ===

impl<'queue> EventView<'queue> {
    /// Reads what [`Encoded`] laid out; none if that is not what it is.
    #[inline]
    pub(crate) fn read(code: u32, sequence: u64, time_ns: u64, body: &'queue [u8]) -> Option<Self> {
        let (fixed, rest) = body.split_first_chunk::<FIXED_BYTES>()?;
        let dtype = fixed.get(8..24)?;
        let dtype = dtype.split(|&byte| byte == 0).next()?;
        let mut shape = [0; MAX_DIMENSIONS];
        for (dimension, bytes) in shape.iter_mut().zip(fixed.get(24..88)?.as_chunks::<8>().0) {
            *dimension = u64::from_ne_bytes(*bytes);
        }
        let number = |at: usize| {
            let bytes = fixed.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        let prefix_bytes = usize::try_from(number(88)?).ok()?;
        let prefix = rest.get(..prefix_bytes)?;
        Some(Self {
            kind: EventKind::from_code(code),
            sequence,
            time_ns,
            core: number(0)?,
            pipe: number(4)?,
            prefix,
            dtype,
            shape,
            rank: usize::try_from(number(92)?).ok()?.min(MAX_DIMENSIONS),
            data: rest.get(prefix_bytes.next_multiple_of(DATA_ALIGNMENT)..)?,
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

    fn body(fields: &Fields<'_>) -> Option<Vec<u8>> {
        let encoded = Encoded::new(fields)?;
        let Body { fixed, name, data } = encoded.body();
        let mut body = [fixed, name].concat();
        body.resize(body.len().next_multiple_of(DATA_ALIGNMENT), 0);
        Some([&body, data].concat())
    }

    #[test]
    fn what_is_laid_out_is_read_back() {
        let long = "é".repeat(400);
        for (prefix, dtype, shape, data) in [
            ("", "", &[][..], &b""[..]),
            ("loss", "float32", &[2, 0, 7], b"twelve bytes"),
            ("sixteen bytes ..", "float4e2m1fn_x4", &[1, 2, 3, 4, 5, 6, 7, 8], b"x"),
            (&long, "float8e4m3fn_x4", &[u64::MAX], b""),
        ] {
            let fields = Fields { core: 3, pipe: 1, prefix, dtype, shape, data };
            let body = body(&fields).unwrap();
            let view = EventView::read(1, 9, 8, &body).unwrap();
            assert_eq!((view.kind, view.sequence, view.time_ns), (EventKind::Tensor, 9, 8));
            let event = view.to_event(None);
            assert_eq!((event.core, event.pipe, event.dtype.as_str()), (3, 1, dtype));
            assert!(prefix.starts_with(&event.prefix) && event.prefix.len() <= MAX_PREFIX_BYTES);
            assert!(event.prefix.len() + 1 >= prefix.len().min(MAX_PREFIX_BYTES));
            assert_eq!((event.shape.as_slice(), event.data.as_slice()), (shape, data));
            for length in 0..FIXED_BYTES + view.prefix.len() {
                assert_eq!(EventView::read(1, 9, 8, &body[..length]), None, "{length}");
            }
        }
    }

    #[test]
    fn nine_dimensions_cannot_be_told() {
        let fields =
            Fields { core: 0, pipe: 0, prefix: "", dtype: "int8", shape: &[1; 9], data: b"" };
        assert!(body(&fields).is_none());
    }

    #[test]
    fn kinds_and_codes_agree() {
        for code in [0, 1, 2, 3, 4, 255, 256, u32::MAX] {
            assert_eq!(EventKind::from_code(code).code(), code);
        }
    }
}
