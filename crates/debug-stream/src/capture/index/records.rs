//! Goes through a file's events without their data.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{EventPlace, IndexError};
use crate::capture::event_file::{self, FIXED_BYTES, Parsed, START_BYTES};
use crate::capture::lines::{self, MAX_LINE_BYTES};
use crate::capture::sequential::{CHUNK_BYTES, CaptureForm, HASHED_TWICE_BYTES};
use crate::capture::{Item, Unreadable};

/// How much of a line is searched first for its end.
const USUAL_LINE_BYTES: usize = 1 << 10;
/// The most that one system call reads. The caller is asked between two of them.
const MAX_READ_BYTES: usize = 1 << 20;

/// Takes an item and where it is, unless there are too many.
type Take<'call> = &'call mut dyn FnMut(Item, EventPlace) -> Result<(), IndexError>;

/// Whether to go on, asked before each read of the file.
type GoesOn<'call> = &'call mut dyn FnMut() -> bool;

/// Gives each item of a file to `take`. A file that is cut meanwhile ends where it is cut.
pub(super) fn read(file: &File, goes_on: GoesOn<'_>, take: Take<'_>) -> Result<(), IndexError> {
    let mut window = Window { file, goes_on, at: 0, bytes: Vec::new() };
    let length = file.metadata().map_err(crate::capture::CaptureReadError::from)?.len();
    let start = window.get(0, CHUNK_BYTES)?;
    match CaptureForm::of(start)? {
        Some(CaptureForm::EventFile) => Records { window, length, hashed: 0 }.read(take),
        // What is too short to be something else is a line.
        Some(CaptureForm::Lines) | None => read_lines(&mut window, length, take),
    }
}

/// A piece of the file in memory, moved to where it is needed.
struct Window<'file> {
    file: &'file File,
    goes_on: GoesOn<'file>,
    at: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// So many bytes from `at`, or as many as there are.
    fn get(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError> {
        let inside = at.checked_sub(self.at).and_then(|inside| usize::try_from(inside).ok());
        let is_here = |inside: &usize| inside.saturating_add(bytes) <= self.bytes.len();
        let from = match inside.filter(is_here) {
            Some(inside) => inside,
            None => {
                self.fill(at, bytes.max(CHUNK_BYTES))?;
                0
            }
        };
        Ok(&self.bytes[from..from.saturating_add(bytes).min(self.bytes.len())])
    }

    fn fill(&mut self, at: u64, bytes: usize) -> Result<(), IndexError> {
        self.at = at;
        self.bytes.resize(bytes, 0);
        let mut filled = 0;
        while filled < bytes {
            if !(self.goes_on)() {
                return Err(IndexError::Interrupted);
            }
            let next = at.saturating_add(wide(filled));
            let end = bytes.min(filled.saturating_add(MAX_READ_BYTES));
            match self.file.read_at(&mut self.bytes[filled..end], next) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(crate::capture::CaptureReadError::from(error).into()),
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}

fn read_lines(window: &mut Window<'_>, length: u64, take: Take<'_>) -> Result<(), IndexError> {
    let (mut at, mut number) = (0, 0_u64);
    while at < length {
        let (bytes, is_too_long) = line_length(window, at)?;
        if bytes == 0 {
            // The file was cut meanwhile.
            return Ok(());
        }
        number += 1;
        let parsed = if is_too_long {
            Err(format!("it has more than {} MiB", MAX_LINE_BYTES >> 20))
        } else {
            let whole = window.get(at, usize::try_from(bytes).unwrap_or(usize::MAX))?;
            let line = whole.strip_suffix(b"\n").unwrap_or(whole);
            if line.trim_ascii().is_empty() {
                at += bytes;
                continue;
            }
            lines::parse_facts(line)
        };
        let item = parsed.unwrap_or_else(|reason| {
            Item::Unreadable(Unreadable { place: format!("line {number}"), reason })
        });
        let place = EventPlace::Line { at, bytes: usize::try_from(bytes).unwrap_or(usize::MAX) };
        take(item, place)?;
        at += bytes;
    }
    Ok(())
}

/// How many bytes a line has with its end, and whether those are too many to be read.
fn line_length(window: &mut Window<'_>, at: u64) -> Result<(u64, bool), IndexError> {
    let (mut before, mut searched) = (0_u64, USUAL_LINE_BYTES);
    loop {
        let piece = window.get(at + before, searched)?;
        let (end, there) = (piece.iter().position(|byte| *byte == b'\n'), piece.len());
        let bytes = before + u64::try_from(end.map_or(there, |end| end + 1)).unwrap_or(u64::MAX);
        if end.is_some() || there < searched {
            return Ok((bytes, usize::try_from(bytes).is_ok_and(|it| it > MAX_LINE_BYTES + 1)));
        }
        (before, searched) = (bytes, CHUNK_BYTES);
    }
}

/// The records of an event file.
struct Records<'file> {
    window: Window<'file>,
    length: u64,
    /// Bytes of records whose hash was not that of their bytes.
    hashed: u64,
}

impl Records<'_> {
    fn read(&mut self, take: Take<'_>) -> Result<(), IndexError> {
        let mut at = wide(START_BYTES);
        let mut left_out: Option<(u64, &'static str)> = None;
        loop {
            if self.window.get(at, FIXED_BYTES)?.is_empty() {
                // The file was cut meanwhile.
                self.length = self.length.min(at);
            }
            let found = if at < self.length { Some(self.record(at)?) } else { None };
            if let (Some(Ok(_)) | None, Some((from, reason))) = (&found, left_out) {
                let place = format!("{} bytes from byte {from}", at - from);
                let reported = Unreadable { place, reason: reason.to_owned() };
                left_out = None;
                take(Item::Unreadable(reported), EventPlace::Facts(None))?;
            }
            match found {
                None => return Ok(()),
                Some(Ok((item, bytes))) => {
                    take(item, EventPlace::Record { at, bytes })?;
                    at += wide(bytes);
                }
                Some(Err((reason, bytes))) => {
                    left_out.get_or_insert((at, reason));
                    at += match bytes {
                        Some(bytes) => wide(bytes),
                        None => self.distance_to_mark(at)?,
                    };
                }
            }
        }
    }

    /// The record at a place and its length; else why there is none, and how much to leave out if that
    /// is not up to the next mark.
    #[expect(clippy::type_complexity, reason = "one caller takes it apart at once")]
    fn record(
        &mut self,
        at: u64,
    ) -> Result<Result<(Item, usize), (&'static str, Option<usize>)>, IndexError> {
        let start = self.window.get(at, FIXED_BYTES)?;
        if !event_file::begins_with_mark(start) {
            return Ok(Err((event_file::NO_MARK, None)));
        }
        let Some(fixed) = start.first_chunk::<FIXED_BYTES>() else {
            return Ok(Err((event_file::CUT_SHORT, None)));
        };
        let (head_bytes, data_bytes) = match event_file::lengths(fixed) {
            Ok(lengths) => lengths,
            Err(reason) => return Ok(Err((reason, None))),
        };
        let bytes = FIXED_BYTES + head_bytes + data_bytes;
        let end = at + wide(bytes);
        if end > self.length {
            return Ok(Err((event_file::CUT_SHORT, None)));
        }
        let head = self.window.get(at + wide(FIXED_BYTES), head_bytes)?;
        let parsed = lines::parse_facts(head);
        // Behind a whole record, there is another one, or the end that the file had at first.
        let next = self.window.get(end, FIXED_BYTES)?;
        let is_whole = match next.is_empty() {
            true => end == self.length,
            false => event_file::begins_with_mark(next),
        };
        match parsed {
            Ok(item) if is_whole => Ok(Ok((item, bytes))),
            _ => self.checked_record(at, bytes),
        }
    }

    /// A record that is suspicious, read with its data.
    #[expect(clippy::type_complexity, reason = "one caller takes it apart at once")]
    fn checked_record(
        &mut self,
        at: u64,
        bytes: usize,
    ) -> Result<Result<(Item, usize), (&'static str, Option<usize>)>, IndexError> {
        Ok(match event_file::parse(self.window.get(at, bytes)?) {
            Parsed::Record(item, bytes) => Ok((item, bytes)),
            Parsed::Broken(reason) => Err((reason, None)),
            Parsed::Short(_) => Err((event_file::CUT_SHORT, None)),
            Parsed::Damaged(bytes) => {
                self.hashed = self.hashed.saturating_add(wide(bytes));
                // Damage costs each byte once; only marks made to lie within each other cost more.
                let is_cheap = self.hashed <= at.saturating_add(HASHED_TWICE_BYTES);
                Err((event_file::DAMAGED, (!is_cheap).then_some(bytes)))
            }
        })
    }

    fn distance_to_mark(&mut self, at: u64) -> Result<u64, IndexError> {
        let piece = self.window.get(at, CHUNK_BYTES)?;
        Ok(wide(event_file::distance_to_mark(piece)).max(1))
    }
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).expect("no machine has more bytes than 64 bits count")
}
