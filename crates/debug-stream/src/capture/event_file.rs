//! The event file: any number of events with their exact bytes, one behind the other.
//!
//! It begins with 16 bytes: the magic, the version, and 4 bytes of 0. Each record is a mark, the
//! length of its head (u32), 4 bytes of 0, the length of its data (u64), a hash (FNV-1a, 64 bits)
//! of what is between the mark and the data's end save for itself, the head, and the data; numbers
//! are little-endian. The head is the event's line of JSON without its numbers, so that a later
//! version can say more. A record that is cut short or broken is found by its hash, and the next
//! one by its mark.

use std::io::{self, Write};

use super::lines;
use super::{CapturedEvent, Item, MAX_DATA_BYTES, Payload};

/// The version that is written, and the only one that is read.
pub const EVENT_FILE_VERSION: u32 = 1;

pub(super) const MAGIC: &[u8; 8] = b"\x89TTevts\n";
/// Bytes before the first record.
pub(super) const START_BYTES: usize = 16;
/// No text has its first byte, and a transfer that changes line ends breaks it.
const MARK: &[u8; 8] = b"\xa5event\r\n";
/// Bytes of a record before its head.
pub(super) const FIXED_BYTES: usize = 32;
/// Why what is left out is.
pub(super) const CUT_SHORT: &str = "the last event was cut short";
pub(super) const DAMAGED: &str = "its bytes are not those that were written";
pub(super) const NO_MARK: &str = "the mark of an event is not there";
pub(super) const NO_HEAD: &str = "its head is no event";
/// The longest head that is read.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// What the bytes at the start of a record turned out to be.
pub(super) enum Parsed {
    /// Not enough of them to tell; so many are needed.
    Short(usize),
    /// A record of so many bytes.
    Record(Item, usize),
    /// No record.
    Broken(&'static str),
    /// A record of so many bytes, which are not those that were written.
    Damaged(usize),
}

/// Begins an event file.
///
/// # Errors
/// When writing fails.
pub fn write_event_file_start(out: &mut impl Write) -> io::Result<()> {
    let mut start = [0; START_BYTES];
    start[..8].copy_from_slice(MAGIC);
    start[8..12].copy_from_slice(&EVENT_FILE_VERSION.to_le_bytes());
    out.write_all(&start)
}

/// Appends one item. An event whose data is not here is written without any.
///
/// # Errors
/// When writing fails, or the event has more data than is ever read back.
pub fn write_event_record(out: &mut impl Write, item: &Item) -> io::Result<()> {
    let mut head = Vec::new();
    lines::write_head(&mut head, item)?;
    let data = match item {
        Item::Event(event) => event.data().unwrap_or_default(),
        _ => &[],
    };
    let data_bytes = u64::try_from(data.len()).map_err(io::Error::other)?;
    if data_bytes > MAX_DATA_BYTES || head.len() > MAX_HEAD_BYTES {
        return Err(io::Error::other("the event is too large for an event file"));
    }
    let head_bytes = u32::try_from(head.len()).map_err(io::Error::other)?;
    let mut fixed = [0; FIXED_BYTES];
    fixed[..8].copy_from_slice(MARK);
    fixed[8..12].copy_from_slice(&head_bytes.to_le_bytes());
    fixed[16..24].copy_from_slice(&data_bytes.to_le_bytes());
    let hash = hash(&fixed[8..24], &head, data);
    fixed[24..32].copy_from_slice(&hash.to_le_bytes());
    out.write_all(&fixed)?;
    out.write_all(&head)?;
    out.write_all(data)
}

/// The version that an event file begins with; none if it is no event file.
pub(super) fn version(start: &[u8; START_BYTES]) -> Option<u32> {
    let version = start.strip_prefix(MAGIC)?.first_chunk()?;
    Some(u32::from_le_bytes(*version))
}

/// Reads the record that `bytes` begin with.
pub(super) fn parse(bytes: &[u8]) -> Parsed {
    if !begins_with_mark(bytes) {
        return Parsed::Broken(NO_MARK);
    }
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_BYTES>() else {
        return Parsed::Short(FIXED_BYTES);
    };
    let (head_bytes, data_bytes) = match lengths(fixed) {
        Ok(lengths) => lengths,
        Err(reason) => return Parsed::Broken(reason),
    };
    let Some((head, data)) =
        rest.get(..head_bytes + data_bytes).and_then(|body| body.split_at_checked(head_bytes))
    else {
        return Parsed::Short(FIXED_BYTES + head_bytes + data_bytes);
    };
    if hash(&fixed[8..24], head, data) != number(fixed, 24, 8) {
        return Parsed::Damaged(FIXED_BYTES + head_bytes + data_bytes);
    }
    let item = match lines::parse(head) {
        Ok(Item::Event(event)) => Item::Event(Box::new(with_data(*event, data))),
        Ok(item) => item,
        Err(_) => return Parsed::Broken(NO_HEAD),
    };
    Parsed::Record(item, FIXED_BYTES + head_bytes + data_bytes)
}

/// Whether these may be the first bytes of a record.
pub(super) fn begins_with_mark(bytes: &[u8]) -> bool {
    let compared = bytes.len().min(MARK.len());
    bytes[..compared] == MARK[..compared]
}

/// How many bytes of head and data a record has.
pub(super) fn lengths(fixed: &[u8; FIXED_BYTES]) -> Result<(usize, usize), &'static str> {
    let data_bytes = number(fixed, 16, 8);
    match (usize::try_from(number(fixed, 8, 4)), usize::try_from(data_bytes)) {
        (Ok(head), Ok(data)) if head <= MAX_HEAD_BYTES && data_bytes <= MAX_DATA_BYTES => {
            Ok((head, data))
        }
        _ => Err("its length cannot be"),
    }
}

/// How many bytes to leave out to come to the next mark, or to what may be the start of one.
pub(super) fn distance_to_mark(bytes: &[u8]) -> usize {
    let next = bytes.windows(MARK.len()).skip(1).position(|window| window == MARK);
    let all_but_a_part = bytes.len().saturating_sub(MARK.len() - 1).max(1);
    next.map_or(all_but_a_part, |position| position + 1).min(bytes.len())
}

/// An event of whose data nothing was written keeps what its head reports.
fn with_data(event: CapturedEvent, data: &[u8]) -> CapturedEvent {
    if data.is_empty() && event.bytes > 0 {
        return event;
    }
    CapturedEvent { payload: Payload::Held(data.to_vec()), ..event }
}

fn number(fixed: &[u8; FIXED_BYTES], at: usize, bytes: usize) -> u64 {
    let mut number = [0; 8];
    number[..bytes].copy_from_slice(&fixed[at..at + bytes]);
    u64::from_le_bytes(number)
}

/// FNV-1a: not against malice, but against disks and transfers.
fn hash(lengths: &[u8], head: &[u8], data: &[u8]) -> u64 {
    lengths.iter().chain(head).chain(data).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
