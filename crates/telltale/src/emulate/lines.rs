//! Lines of standard input, as they arrive and without ever waiting for one. Its end ends nothing but
//! the lines.

use std::io::{self, Stdin};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::interrupt::Interrupt;

/// The longest line, in bytes: longer than any command.
const MAX_LINE: usize = 512;
/// Bytes that are read at a time.
const MAX_READ: usize = 4096;
/// How often a terminal is looked at that belongs to another program now.
const BACKGROUND_PERIOD: Duration = Duration::from_secs(1);

/// A line, or why it is none.
type Line = Result<String, LineError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum LineError {
    #[error("a line has at most {MAX_LINE} bytes")]
    TooLong,
    #[error("a line must be UTF-8")]
    NotText,
}

/// Standard input.
pub(super) struct InputLines {
    input: Stdin,
    is_open: bool,
    split: Splitter,
}

/// Makes lines of bytes.
#[derive(Default)]
struct Splitter {
    begun: Vec<u8>,
    is_too_long: bool,
}

// === impl InputLines ===

impl InputLines {
    pub(super) fn new() -> Self {
        Self { input: io::stdin(), is_open: true, split: Splitter::default() }
    }

    /// Waits for input, for `most` or until asked to end; true when asked.
    pub(super) fn wait(&self, interrupt: &Interrupt, most: Duration) -> bool {
        match (self.is_open, self.is_in_background()) {
            (false, _) => interrupt.sleep(most),
            // To read would stop this process, and to wait would not wait: another one's input is there.
            (true, true) => interrupt.sleep(most.min(BACKGROUND_PERIOD)),
            (true, false) => interrupt.wait_for(self.input.as_fd(), Some(most)),
        }
    }

    /// The lines that have arrived. The last one needs no end.
    pub(super) fn read(&mut self) -> Vec<Line> {
        if !self.is_open || self.is_in_background() || !self.is_readable() {
            return Vec::new();
        }
        let mut bytes = [0; MAX_READ];
        match rustix::io::read(self.input.as_fd(), &mut bytes) {
            Ok(count @ 1..) => self.split.add(&bytes[..count]),
            Err(Errno::INTR | Errno::AGAIN) => Vec::new(),
            // An error is an end too: a terminal that was closed, an input that cannot be read.
            Ok(0) | Err(_) => {
                self.is_open = false;
                self.split.end().into_iter().collect()
            }
        }
    }

    /// Whether it is a terminal whose input is another program's now.
    fn is_in_background(&self) -> bool {
        let foreground = rustix::termios::tcgetpgrp(&self.input);
        foreground.is_ok_and(|group| group != rustix::process::getpgrp())
    }

    fn is_readable(&self) -> bool {
        let mut descriptors = [PollFd::new(&self.input, PollFlags::IN)];
        rustix::event::poll(&mut descriptors, Some(&Timespec::default()))
            .is_ok_and(|ready| ready > 0)
    }
}

// === impl Splitter ===

impl Splitter {
    /// The lines that end in these bytes.
    fn add(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ended = part.strip_suffix(b"\n");
            let text = ended.unwrap_or(part);
            self.is_too_long |= self.begun.len() + text.len() > MAX_LINE;
            if !self.is_too_long {
                self.begun.extend_from_slice(text);
            }
            if ended.is_some() {
                lines.push(self.line());
            }
        }
        lines
    }

    /// The line that was begun and has no end.
    fn end(&mut self) -> Option<Line> {
        (self.is_too_long || !self.begun.is_empty()).then(|| self.line())
    }

    fn line(&mut self) -> Line {
        let bytes = std::mem::take(&mut self.begun);
        match std::mem::take(&mut self.is_too_long) {
            true => Err(LineError::TooLong),
            false => String::from_utf8(bytes).map_err(|_| LineError::NotText),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, LineError, MAX_LINE, Splitter};

    fn split(pieces: &[&[u8]]) -> Vec<Line> {
        let mut splitter = Splitter::default();
        let mut lines: Vec<Line> = pieces.iter().flat_map(|piece| splitter.add(piece)).collect();
        lines.extend(splitter.end());
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let longest = "x".repeat(MAX_LINE);
        let long = "x".repeat(3 * MAX_LINE);
        let text = format!("list\n\n{longest}\n{long}\nclear");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(b" \xff\nhelp");
        let expected = [
            Ok("list".to_owned()),
            Ok(String::new()),
            Ok(longest),
            Err(LineError::TooLong),
            Err(LineError::NotText),
            Ok("help".to_owned()),
        ];
        for size in [1, 2, 7, MAX_LINE, bytes.len()] {
            assert_eq!(split(&bytes.chunks(size).collect::<Vec<_>>()), expected, "{size}");
        }
        assert_eq!(split(&[b"list\n"]), [Ok("list".to_owned())], "no line after the last end");
    }
}
