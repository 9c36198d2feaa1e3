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
pub(super) enum Next {
    Wait,
    Close,
}

/// An admitted peer.
pub(super) struct Connection {
    socket: OwnedFd,
    reader: FrameReader,
    writer: Option<(FrameWriter, Option<OwnedFd>)>,
    deadline: Instant,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, now: Instant) -> Self {
        let reader = FrameReader::with_limit(MAX_QUERY_BYTES);
        Self { socket, reader, writer: None, deadline: now + QUERY_DEADLINE }
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

    /// Goes as far as possible without waiting, but answers at most one query, so that no
    /// connection keeps the others waiting.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        answer: impl FnOnce(&[u8]) -> Outgoing,
    ) -> Result<Next, ConnectionError> {
        if self.writer.is_none() {
            match self.receive()? {
                Received::Query(query) => {
                    let outgoing = answer(&query);
                    let writer = FrameWriter::new(&outgoing.message)?;
                    self.writer = Some((writer, outgoing.descriptor));
                }
                Received::Part => return Ok(Next::Wait),
                Received::End => return Ok(Next::Close),
            }
        }
        if self.send()? {
            self.writer = None;
            self.deadline = now + QUERY_DEADLINE;
        }
        Ok(Next::Wait)
    }

    fn receive(&mut self) -> Result<Received, ConnectionError> {
        let mut buffer = [0u8; READ_BYTES];
        while !self.reader.is_complete() {
            let wanted = self.reader.wanted_bytes().min(READ_BYTES);
            match rustix::io::read(&self.socket, &mut buffer[..wanted]) {
                Ok(0) => return Ok(Received::End),
                Ok(count) => {
                    self.reader.push(&buffer[..count])?;
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Part),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.reader.take().map_or(Received::Part, Received::Query))
    }

    /// Whether the whole answer is sent.
    fn send(&mut self) -> Result<bool, ConnectionError> {
        let Some((writer, descriptor)) = &mut self.writer else { return Ok(true) };
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
