//! Events one behind the other from a file, a pipe or standard input: lines of JSON or an event
//! file, distinguished by how they begin. The end may be one for now: a file that grows is read on,
//! and half an event waits for its other half.

use std::io::{self, Read};

use super::event_file::{self, MAGIC, Parsed, START_BYTES};
use super::lines::{self, MAX_LINE_BYTES};
use super::{CaptureReadError, EVENT_FILE_VERSION, Item, Unreadable};

/// How much is read at once.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// So many bytes more than the file has are hashed for records that then are damaged.
pub(super) const HASHED_TWICE_BYTES: u64 = 16 << 20;

/// Reads events from where they are one behind the other.
#[derive(Debug)]
pub struct Sequential<R> {
    input: R,
    buffer: Vec<u8>,
    /// Where in the buffer the next item begins.
    start: usize,
    /// Up to where a line's end was searched for.
    looked: usize,
    /// Where the buffer begins in the file.
    offset: u64,
    /// Lines before the next.
    lines: u64,
    form: Option<CaptureForm>,
    /// Bytes left out since the last item, and why the first of them was.
    left_out: Option<(u64, u64, &'static str)>,
    /// Bytes of records whose hash was not that of their bytes.
    hashed_in_vain: u64,
    /// Whether the rest of a line is left out for its length.
    is_line_too_long: bool,
}

/// How a file tells its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureForm {
    Lines,
    EventFile,
}

/// What one check of the buffer gave.
enum BufferRead {
    Item(Item),
    /// There is something to leave out, or an empty line; check again.
    Again,
    /// More bytes are needed.
    Short,
}

impl CaptureForm {
    /// The form of what begins with these bytes; none while too little is there to tell.
    pub(super) fn of(bytes: &[u8]) -> Result<Option<Self>, CaptureReadError> {
        let compared = bytes.len().min(MAGIC.len());
        if compared == 0 {
            return Ok(None);
        }
        if bytes[..compared] == MAGIC[..compared] {
            let Some(start) = bytes.first_chunk::<START_BYTES>() else { return Ok(None) };
            return match event_file::version(start) {
                Some(EVENT_FILE_VERSION) => Ok(Some(Self::EventFile)),
                Some(other) => Err(CaptureReadError::Version(other)),
                None => Err(CaptureReadError::NoCapture),
            };
        }
        // What begins as an object may be damaged behind that. Other lines may come before the
        // first object, but not bytes that are no text.
        let is_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
        if bytes.trim_ascii_start().starts_with(b"{")
            || bytes.iter().take(CHUNK_BYTES).all(|byte| is_text(byte) || *byte == 0x1b)
        {
            Ok(Some(Self::Lines))
        } else {
            Err(CaptureReadError::NoCapture)
        }
    }
}

impl<R: Read> Sequential<R> {
    /// Reads from here.
    #[must_use]
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            looked: 0,
            offset: 0,
            lines: 0,
            form: None,
            left_out: None,
            hashed_in_vain: 0,
            is_line_too_long: false,
        }
    }

    /// Where the events come from.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// How many bytes were read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.offset + u64::try_from(self.buffer.len()).unwrap_or(u64::MAX)
    }

    /// What is next; none when there is nothing whole, for now.
    ///
    /// # Errors
    /// When reading fails, or this is no capture.
    pub fn next_item(&mut self) -> Result<Option<Item>, CaptureReadError> {
        loop {
            if self.form.is_none() {
                self.form = self.recognise()?;
            }
            let look = match self.form {
                None => BufferRead::Short,
                Some(CaptureForm::Lines) => self.look_for_line(),
                Some(CaptureForm::EventFile) => self.look_for_record(),
            };
            match look {
                BufferRead::Item(item) => return Ok(Some(item)),
                BufferRead::Again => {}
                BufferRead::Short => {
                    if !self.fill()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// What is left once nothing will be added: a last line without an end, or what half a record
    /// hides. To be called until there is none.
    pub fn next_left(&mut self) -> Option<Item> {
        loop {
            let rest = self.buffer.len() - self.start;
            if rest == 0 {
                return self.report_left_out();
            }
            match self.form {
                Some(CaptureForm::EventFile) => match self.look_for_record() {
                    BufferRead::Item(item) => return Some(item),
                    BufferRead::Again => {}
                    BufferRead::Short => {
                        self.leave_out_to_mark(event_file::CUT_SHORT);
                    }
                },
                Some(CaptureForm::Lines) | None => {
                    // The start of an event file that is cut has ends of lines in it.
                    if self.buffer.last() != Some(&b'\n') {
                        self.buffer.push(b'\n');
                    }
                    self.form = Some(CaptureForm::Lines);
                    if let BufferRead::Item(item) = self.look_for_line() {
                        return Some(item);
                    }
                }
            }
        }
    }

    /// Reads a piece; false at the end, which may be one for now.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.offset += u64::try_from(self.start).unwrap_or(0);
            self.looked -= self.start;
            self.start = 0;
        }
        let before = self.buffer.len();
        self.buffer.resize(before + CHUNK_BYTES, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(count) => Ok(count > 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Which form this is; none while too little is there to tell.
    fn recognise(&mut self) -> Result<Option<CaptureForm>, CaptureReadError> {
        let form = CaptureForm::of(&self.buffer)?;
        if form == Some(CaptureForm::EventFile) {
            (self.start, self.looked) = (START_BYTES, START_BYTES);
        }
        Ok(form)
    }

    fn look_for_line(&mut self) -> BufferRead {
        let end = self.buffer[self.looked..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|position| self.looked + position) else {
            self.looked = self.buffer.len();
            if self.looked - self.start > MAX_LINE_BYTES {
                self.is_line_too_long = true;
                self.start = self.looked;
            }
            return BufferRead::Short;
        };
        let line = &self.buffer[self.start..end];
        self.lines += 1;
        let parsed = if self.is_line_too_long || line.len() > MAX_LINE_BYTES {
            Some(Err(format!("it has more than {} MiB", MAX_LINE_BYTES >> 20)))
        } else if line.trim_ascii().is_empty() {
            None
        } else {
            Some(lines::parse(line))
        };
        (self.start, self.looked, self.is_line_too_long) = (end + 1, end + 1, false);
        match parsed {
            None => BufferRead::Again,
            Some(Ok(item)) => BufferRead::Item(item),
            Some(Err(reason)) => {
                let place = format!("line {}", self.lines);
                BufferRead::Item(Item::Unreadable(Unreadable { place, reason }))
            }
        }
    }

    fn look_for_record(&mut self) -> BufferRead {
        let rest = &self.buffer[self.start..];
        if rest.is_empty() {
            return BufferRead::Short;
        }
        match event_file::parse(rest) {
            Parsed::Short(needed) => {
                let missing = needed.saturating_sub(rest.len());
                // What a header promises is not taken as memory before it is there.
                self.buffer.reserve(missing.min(CHUNK_BYTES));
                BufferRead::Short
            }
            Parsed::Broken(reason) => {
                self.leave_out_to_mark(reason);
                BufferRead::Again
            }
            Parsed::Damaged(bytes) => {
                self.hashed_in_vain =
                    self.hashed_in_vain.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
                let reason = event_file::DAMAGED;
                // Damage costs each byte once; only marks made to lie within each other cost more.
                if self.hashed_in_vain <= self.position().saturating_add(HASHED_TWICE_BYTES) {
                    self.leave_out_to_mark(reason);
                } else {
                    self.leave_out(bytes, reason);
                }
                BufferRead::Again
            }
            Parsed::Record(item, bytes) => {
                if let Some(reported) = self.report_left_out() {
                    return BufferRead::Item(reported);
                }
                self.start += bytes;
                self.looked = self.start;
                BufferRead::Item(item)
            }
        }
    }

    fn leave_out_to_mark(&mut self, reason: &'static str) {
        let distance = event_file::distance_to_mark(&self.buffer[self.start..]);
        self.leave_out(distance, reason);
    }

    fn leave_out(&mut self, distance: usize, reason: &'static str) {
        let at = self.offset + u64::try_from(self.start).unwrap_or(0);
        let (_, bytes, _) = self.left_out.get_or_insert((at, 0, reason));
        *bytes += u64::try_from(distance).unwrap_or(0);
        self.start += distance;
        self.looked = self.start;
    }

    fn report_left_out(&mut self) -> Option<Item> {
        let (at, bytes, reason) = self.left_out.take()?;
        let place = format!("{bytes} bytes from byte {at}");
        Some(Item::Unreadable(Unreadable { place, reason: reason.to_owned() }))
    }
}
