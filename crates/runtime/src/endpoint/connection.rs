//! One connection: queries in, answers out, never waiting, until its deadline.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use telltale_wire::limits::MAX_QUERY_BYTES;
use telltale_wire::{FrameError, FrameReader, FrameWriter};

/// How long one query may take from its first wait to the last byte of its answer.
const QUERY_DEADLINE: Duration = Duration::from_secs(2);
/// Bytes read at a time; a query has a few dozen.
const READ_BYTES: usize = 512;

/// A message to be sent, and perhaps a descriptor with it.
pub(super) struct Outgoing {
    pub(super) message: Vec<u8>,
    pub(super) descriptor: Option<OwnedFd>,
    /// Whether the connection ends with it.
    pub(super) is_last: bool,
}

/// Why a connection is given up.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("the peer sends no messages")]
    Frame(#[from] FrameError),
    #[error("the connection broke")]
    System(#[from] Errno),
}

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionStep {
    Wait,
    Close,
}

/// An answer on its way.
struct Answering {
    writer: FrameWriter,
    descriptor: Option<OwnedFd>,
    is_last: bool,
}

/// An admitted peer.
pub(super) struct Connection {
    socket: OwnedFd,
    reader: FrameReader,
    /// What came with a query beyond its end; at most [`READ_BYTES`].
    rest: Vec<u8>,
    writer: Option<Answering>,
    deadline: Instant,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, now: Instant) -> Self {
        let reader = FrameReader::with_limit(MAX_QUERY_BYTES);
        Self { socket, reader, rest: Vec::new(), writer: None, deadline: now + QUERY_DEADLINE }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> PollFlags {
        if self.writer.is_some() { PollFlags::OUT } else { PollFlags::IN }
    }

    /// Whether the next query has been read already, so that waiting for the socket would be wrong.
    pub(super) fn has_query(&self) -> bool {
        self.writer.is_none() && self.reader.is_complete()
    }

    /// Goes as far as possible without waiting, but answers at most one query, so that no
    /// connection keeps the others waiting.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        answer: impl FnOnce(&[u8]) -> Outgoing,
    ) -> Result<ConnectionStep, ConnectionError> {
        if self.writer.is_none() {
            match self.receive()? {
                Received::Query(query) => {
                    let outgoing = answer(&query);
                    let writer = FrameWriter::new(&outgoing.message)?;
                    let Outgoing { descriptor, is_last, .. } = outgoing;
                    self.writer = Some(Answering { writer, descriptor, is_last });
                }
                Received::Part => return Ok(ConnectionStep::Wait),
                Received::End => return Ok(ConnectionStep::Close),
            }
        }
        if !self.send()? {
            return Ok(ConnectionStep::Wait);
        }
        if self.writer.take().is_some_and(|answered| answered.is_last) {
            return Ok(ConnectionStep::Close);
        }
        self.deadline = now + QUERY_DEADLINE;
        self.take_from_rest()?;
        Ok(ConnectionStep::Wait)
    }

    fn receive(&mut self) -> Result<Received, ConnectionError> {
        let mut buffer = [0u8; READ_BYTES];
        while !self.reader.is_complete() {
            // More than the query wants: its length and the rest of it in one call.
            let count = match rustix::io::read(&self.socket, &mut buffer) {
                Ok(0) => return Ok(Received::End),
                Ok(count) => count,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Part),
                Err(error) => return Err(error.into()),
            };
            self.rest.extend_from_slice(&buffer[..count]);
            self.take_from_rest()?;
            if count < READ_BYTES && !self.reader.is_complete() {
                return Ok(Received::Part);
            }
        }
        Ok(self.reader.take().map_or(Received::Part, Received::Query))
    }

    /// Gives the current query what was read of it before.
    fn take_from_rest(&mut self) -> Result<(), FrameError> {
        let used = self.reader.push(&self.rest)?;
        self.rest.drain(..used);
        Ok(())
    }

    /// Whether the whole answer is sent.
    fn send(&mut self) -> Result<bool, ConnectionError> {
        let Some(Answering { writer, descriptor, .. }) = &mut self.writer else { return Ok(true) };
        while !writer.is_done() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let passed = descriptor.as_ref().map(|descriptor| [descriptor.as_fd()]);
            if let Some(passed) = &passed {
                control.push(SendAncillaryMessage::ScmRights(passed));
            }
            let bytes = [IoSlice::new(writer.pending())];
            match sendmsg(&self.socket, &bytes, &mut control, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    writer.advance(count);
                    // The descriptor went with the first byte, and must not go again.
                    *descriptor = None;
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

enum Received {
    Query(Vec<u8>),
    Part,
    End,
}
