//! Answers on standard output. What is not read is dropped: it must hold up neither faults that are due nor the end.

use std::io::{self, Stdout};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Bytes that a pipe which has room takes without waiting (POSIX's least `PIPE_BUF` is 512; Linux's is 4,096).
const PIECE: usize = 4096;
/// How long a reader that reads is waited for.
const LONGEST_WAIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Standard output.
pub(super) struct Answers {
    output: Stdout,
    /// Nothing was read of it for a while: it is not waited for until that changes.
    is_stalled: bool,
}

// === impl Answers ===

impl Answers {
    pub(super) fn new() -> Self {
        Self { output: io::stdout(), is_stalled: false }
    }

    /// Writes a line, as far as it is read.
    pub(super) fn write(&mut self, line: &str) {
        let line = format!("{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() && self.has_room() {
            match rustix::io::write(self.output.as_fd(), &rest[..rest.len().min(PIECE)]) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn has_room(&mut self) -> bool {
        let most = if self.is_stalled { Timespec::default() } else { LONGEST_WAIT };
        let mut descriptors = [PollFd::new(&self.output, PollFlags::OUT)];
        let ready = rustix::event::poll(&mut descriptors, Some(&most));
        self.is_stalled = !ready.is_ok_and(|ready| ready > 0);
        !self.is_stalled
    }
}
