//! A line on standard error that a handler of a signal can write: nothing is allocated, and no lock
//! is waited for.

use std::fmt;

/// Longer lines are cut off.
const MAX_BYTES: usize = 512;

/// See the module.
pub(super) struct FaultLine {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl FaultLine {
    /// Writes this text as a line.
    pub(super) fn write(text: fmt::Arguments<'_>) {
        let mut line = Self { bytes: [0; MAX_BYTES], length: 0 };
        // Only a text that is too long is refused, and its beginning is kept.
        let _ = fmt::Write::write_fmt(&mut line, text);
        line.bytes[line.length] = b'\n';
        // SAFETY: so many bytes are there. What cannot be written cannot be said.
        unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length + 1) };
    }
}

impl fmt::Write for FaultLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte is for the end of the line.
        let room = &mut self.bytes[self.length..MAX_BYTES - 1];
        let kept = text.len().min(room.len());
        room[..kept].copy_from_slice(&text.as_bytes()[..kept]);
        self.length += kept;
        if kept == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{FaultLine, MAX_BYTES};

    #[test]
    fn a_long_line_is_cut_off() {
        let mut line = FaultLine { bytes: [0; MAX_BYTES], length: 0 };
        write!(line, "kernel {}", 7).unwrap();
        assert_eq!(&line.bytes[..line.length], b"kernel 7");
        write!(line, "{}", "x".repeat(2 * MAX_BYTES)).unwrap_err();
        assert_eq!(line.length, MAX_BYTES - 1);
    }
}
