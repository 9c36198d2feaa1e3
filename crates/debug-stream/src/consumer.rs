//! The consumer's side: takes events as copies of its own or in place, with or without waiting.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::event::{Event, EventView};
use crate::queue::{Losses, NextRecord, Reader};
use crate::shared::ConnectionEnd;

/// For how many prefixes a consumer counts iterations.
pub const MAX_COUNTED_PREFIXES: usize = 65_536;

/// The consumer of one stream, with losses reported in their place. Dropping it ends the connection.
pub struct Consumer {
    reader: Reader,
    iterations: HashMap<Vec<u8>, u64>,
    malformed: u64,
    /// Dropped after the reader.
    _ending: ConnectionEnd,
}

/// A consumer of events only, in place, for callers that build other structures. Dropping it
/// ends the connection.
pub struct EventReader {
    reader: Reader,
    /// Dropped after the reader.
    _ending: ConnectionEnd,
}

/// What a consumer gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextEvent {
    /// An event.
    Event(Event),
    /// So many events were lost here.
    Lost(Losses),
}

/// Why nothing can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// This process is a child of the one that connected.
    #[error("a debug stream cannot be read in a child of the process that connected to it")]
    Forked,
    /// Waiting failed.
    #[error("cannot wait for events")]
    Wait(#[source] io::Error),
}

// === impl Consumer ===

impl Consumer {
    pub(crate) fn new(reader: Reader, ending: ConnectionEnd) -> Self {
        Self { reader, iterations: HashMap::new(), malformed: 0, _ending: ending }
    }

    /// Takes what is next, if anything waits.
    ///
    /// # Errors
    /// In a child of the process that connected.
    pub fn try_next(&mut self) -> Result<Option<NextEvent>, ReadError> {
        loop {
            let iterations = &mut self.iterations;
            let taken = self.reader.take(|record| {
                let view = EventView::read(record)?;
                Some(view.to_event(count(iterations, view.prefix)))
            });
            return Ok(Some(match taken {
                NextRecord::Event(Some(event)) => NextEvent::Event(event),
                NextRecord::Event(None) => {
                    self.malformed += 1;
                    continue;
                }
                NextRecord::Lost(losses) => NextEvent::Lost(losses),
                NextRecord::Nothing => return Ok(None),
                NextRecord::Foreign => return Err(ReadError::Forked),
            }));
        }
    }

    /// Takes what is next, and waits for it so long; none if nothing came.
    ///
    /// # Errors
    /// In a child of the process that connected, or when waiting fails.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<NextEvent>, ReadError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(next) = self.try_next()? {
                return Ok(Some(next));
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            wait(self.as_fd(), left)?;
        }
    }

    /// Takes everything that was published before this call, also what is still being copied.
    ///
    /// # Errors
    /// In a child of the process that connected, or when waiting fails.
    pub fn drain(&mut self, each: impl FnMut(NextEvent)) -> Result<(), ReadError> {
        self.drain_until(None, each).map(|_| ())
    }

    /// The same, but waits only so long, in all, for events that are still being copied; whether
    /// everything was taken. What waits is taken however long that takes.
    ///
    /// # Errors
    /// As for [`Consumer::drain`].
    pub fn drain_within(
        &mut self,
        timeout: Duration,
        each: impl FnMut(NextEvent),
    ) -> Result<bool, ReadError> {
        self.drain_until(Instant::now().checked_add(timeout), each)
    }

    fn drain_until(
        &mut self,
        deadline: Option<Instant>,
        mut each: impl FnMut(NextEvent),
    ) -> Result<bool, ReadError> {
        let until = self.reader.reserved();
        loop {
            match self.try_next()? {
                Some(next) => each(next),
                None if self.reader.taken() >= until => return Ok(true),
                None => {
                    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
                    if left.is_some_and(|left| left.is_zero()) {
                        return Ok(false);
                    }
                    wait(self.as_fd(), left)?;
                }
            }
            if self.reader.taken() > until {
                return Ok(true);
            }
        }
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Events that could not be read; always 0 unless memory was damaged.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

/// How often this prefix was seen before; none if it is one too many to count.
fn count(iterations: &mut HashMap<Vec<u8>, u64>, prefix: &[u8]) -> Option<u64> {
    if let Some(seen) = iterations.get_mut(prefix) {
        let iteration = *seen;
        *seen += 1;
        return Some(iteration);
    }
    (iterations.len() < MAX_COUNTED_PREFIXES).then(|| {
        iterations.insert(prefix.to_vec(), 1);
        0
    })
}

/// Waits until the descriptor is readable or the time is over.
fn wait(descriptor: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), ReadError> {
    // A time that does not fit is longer than anybody waits.
    let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(ReadError::Wait(error.into())),
    }
}

impl AsFd for Consumer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

// === impl EventReader ===

impl EventReader {
    pub(crate) fn new(reader: Reader, ending: ConnectionEnd) -> Self {
        Self { reader, _ending: ending }
    }

    /// Shows the next event to `read`, then gives it up; none if no event waits. If `read` panics,
    /// the event remains.
    ///
    /// # Errors
    /// In a child of the process that connected.
    #[inline]
    pub fn read<R>(
        &mut self,
        read: impl FnOnce(&EventView<'_>) -> R,
    ) -> Result<Option<R>, ReadError> {
        let mut read = Some(read);
        loop {
            let taken = self.reader.take(|record| {
                let view = EventView::read(record)?;
                read.take().map(|read| read(&view))
            });
            match taken {
                NextRecord::Event(Some(result)) => return Ok(Some(result)),
                // What cannot be read is passed over.
                NextRecord::Event(None) | NextRecord::Lost(_) => {}
                NextRecord::Nothing => return Ok(None),
                NextRecord::Foreign => return Err(ReadError::Forked),
            }
        }
    }
}

impl AsFd for EventReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
