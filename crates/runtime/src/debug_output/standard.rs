//! Standard output and standard error, written to without a lock and without being stopped by
//! a client that does not read them.
//!
//! The application's own buffers and locks are left alone: a thread of it that crashed may hold
//! them.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Bytes that a pipe takes without waiting when it is writable (`PIPE_BUF` of Linux).
const PIECE_BYTES: usize = 4096;
/// How long a line waits for room, until one was given up.
const TIMEOUT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const NO_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// One of the two, as this thread writes to it.
pub(super) struct Standard {
    descriptor: BorrowedFd<'static>,
    /// Whether the last line found no room; the next one does not wait.
    is_stuck: bool,
}

/// Tells a person what went wrong.
pub(super) fn tell(problem: &str) {
    // Without stderr it cannot be reported.
    let _ = Standard::error().write_all(format!("telltale: {problem}\n").as_bytes());
}

impl Standard {
    pub(super) fn output() -> Self {
        Self::of(rustix::stdio::stdout())
    }

    pub(super) fn error() -> Self {
        Self::of(rustix::stdio::stderr())
    }

    fn of(descriptor: BorrowedFd<'static>) -> Self {
        Self { descriptor, is_stuck: false }
    }
}

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let timeout = if self.is_stuck { NO_TIMEOUT } else { TIMEOUT };
            let mut writable = [PollFd::from_borrowed_fd(self.descriptor.as_fd(), PollFlags::OUT)];
            match poll(&mut writable, Some(&timeout)) {
                Ok(0) => {
                    self.is_stuck = true;
                    return Err(ErrorKind::TimedOut.into());
                }
                Ok(_) => self.is_stuck = false,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            match rustix::io::write(self.descriptor, piece) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_costs_a_line_and_not_the_thread() {
        let (mut reader, writer) = io::pipe().unwrap();
        let writer: &'static io::PipeWriter = Box::leak(Box::new(writer));
        let mut standard = Standard::of(writer.as_fd());
        standard.write_all(&[b'a'; 10_000]).unwrap();
        let refused = standard.write_all(&[b'b'; 1 << 20]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        assert!(standard.is_stuck);
        let mut some = [0; 32 << 10];
        io::Read::read_exact(&mut reader, &mut some).unwrap();
        standard.write_all(b"c").unwrap();
        drop(reader);
        assert_eq!(standard.write_all(b"d").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
