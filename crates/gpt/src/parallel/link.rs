//! Bytes between neighbours: as many as both ends expect, in both directions at once, so that a ring
//! in which everybody sends does not stand still. It can be stopped while it waits.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often a waiting thread checks whether to stop.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A connection to a neighbour, which never blocks.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    peer: u32,
}

/// Why bytes did not get to a neighbour, or from it.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The connection is broken.
    #[error("rank {peer} is gone")]
    Gone {
        /// Which neighbour.
        peer: u32,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Nothing moved for too long.
    #[error("rank {peer} did nothing for {waited:?}, although it is connected")]
    Still {
        /// Which neighbour.
        peer: u32,
        /// How long.
        waited: Duration,
    },
    /// This process was asked to end.
    #[error("this rank was asked to end")]
    Stopped,
}

/// When the bytes of an exchange had gone out, and when those from the other side had come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchanged {
    pub(super) sent: Instant,
    pub(super) received: Instant,
}

/// How long something may take, and what ends it before.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkDeadline<'a> {
    pub(super) stop: &'a AtomicBool,
    /// How long nothing may move.
    pub(super) still: Duration,
}

// === impl Link ===

impl Link {
    /// A connection that is there.
    pub(super) fn new(stream: TcpStream, peer: u32) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // Steps are short: none should wait for more to send.
        stream.set_nodelay(true)?;
        Ok(Self { stream, peer })
    }

    pub(super) fn peer(&self) -> u32 {
        self.peer
    }

    /// Sends all of it.
    pub(super) fn send(&self, bytes: &[u8], limits: LinkDeadline<'_>) -> Result<(), LinkError> {
        exchange(Outgoing { link: self, bytes }, Incoming { link: self, bytes: &mut [] }, limits)
            .map(|_| ())
    }

    /// Receives until the buffer is full.
    pub(super) fn receive(
        &self,
        bytes: &mut [u8],
        limits: LinkDeadline<'_>,
    ) -> Result<(), LinkError> {
        exchange(Outgoing { link: self, bytes: &[] }, Incoming { link: self, bytes }, limits)
            .map(|_| ())
    }

    fn gone(&self, source: io::Error) -> LinkError {
        LinkError::Gone { peer: self.peer, source }
    }
}

/// What to send, and where.
pub(super) struct Outgoing<'a> {
    pub(super) link: &'a Link,
    pub(super) bytes: &'a [u8],
}

/// Where what is received goes, and from where it comes.
pub(super) struct Incoming<'a> {
    pub(super) link: &'a Link,
    pub(super) bytes: &'a mut [u8],
}

impl Outgoing<'_> {
    /// Sends what can be sent now; whether that was anything.
    fn go_on(&mut self) -> Result<bool, LinkError> {
        if self.bytes.is_empty() {
            return Ok(false);
        }
        match (&self.link.stream).write(self.bytes) {
            Ok(count) => {
                self.bytes = &self.bytes[count..];
                Ok(count > 0)
            }
            Err(error) if is_not_yet(&error) => Ok(false),
            Err(error) => Err(self.link.gone(error)),
        }
    }
}

impl Incoming<'_> {
    /// Receives what is there now from place `done` on; how many bytes that was.
    fn go_on(&mut self, done: usize) -> Result<usize, LinkError> {
        let room = &mut self.bytes[done..];
        if room.is_empty() {
            return Ok(0);
        }
        match (&self.link.stream).read(room) {
            Ok(0) => Err(self.link.gone(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => Ok(count),
            Err(error) if is_not_yet(&error) => Ok(0),
            Err(error) => Err(self.link.gone(error)),
        }
    }
}

/// Sends and receives at once, and returns when both are done.
pub(super) fn exchange(
    mut outgoing: Outgoing<'_>,
    mut incoming: Incoming<'_>,
    limits: LinkDeadline<'_>,
) -> Result<Exchanged, LinkError> {
    let mut moved = Instant::now();
    let mut ends = Exchanged { sent: moved, received: moved };
    let mut received = 0;
    loop {
        if outgoing.go_on()? {
            moved = Instant::now();
            ends.sent = moved;
        }
        let count = incoming.go_on(received)?;
        if count > 0 {
            received += count;
            moved = Instant::now();
            ends.received = moved;
        }
        let waits = (!outgoing.bytes.is_empty(), received < incoming.bytes.len());
        if waits == (false, false) {
            return Ok(ends);
        }
        if limits.stop.load(Ordering::Relaxed) {
            return Err(LinkError::Stopped);
        }
        if moved.elapsed() > limits.still {
            let peer = if waits.1 { incoming.link.peer } else { outgoing.link.peer };
            return Err(LinkError::Still { peer, waited: limits.still });
        }
        let mut descriptors = Vec::with_capacity(2);
        if waits.0 {
            descriptors.push(PollFd::new(&outgoing.link.stream, PollFlags::OUT));
        }
        if waits.1 {
            descriptors.push(PollFd::new(&incoming.link.stream, PollFlags::IN));
        }
        wait(&mut descriptors);
    }
}

/// Waits until one of them is ready, or for a moment.
pub(super) fn wait(descriptors: &mut [PollFd<'_>]) {
    let timeout = Timespec::try_from(POLL_INTERVAL).ok();
    // EINTR and everything else: the caller checks again, and its limits bound that.
    let _ = poll(descriptors, timeout.as_ref());
}

pub(super) fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::{Incoming, Link, LinkDeadline, LinkError, Outgoing, exchange};

    fn pair() -> [Link; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        [Link::new(one, 1).unwrap(), Link::new(other, 0).unwrap()]
    }

    fn limits(stop: &AtomicBool) -> LinkDeadline<'_> {
        LinkDeadline { stop, still: Duration::from_millis(200) }
    }

    #[test]
    fn both_ends_may_send_more_than_fits_at_once() {
        let bytes: Vec<u8> = (0..16_u32 << 20).map(|place| place.to_le_bytes()[1]).collect();
        let sent = &bytes;
        std::thread::scope(|scope| {
            for link in pair() {
                scope.spawn(move || {
                    let stop = AtomicBool::new(false);
                    let still = Duration::from_secs(60);
                    let mut received = vec![0; sent.len()];
                    let outgoing = Outgoing { link: &link, bytes: sent };
                    let incoming = Incoming { link: &link, bytes: &mut received };
                    exchange(outgoing, incoming, LinkDeadline { stop: &stop, still }).unwrap();
                    assert!(received == *sent);
                });
            }
        });
    }

    #[test]
    fn who_waits_is_reported_an_end_a_standstill_and_a_stop() {
        let (go, stop) = (AtomicBool::new(false), AtomicBool::new(true));
        let [here, there] = pair();
        let still = here.receive(&mut [0; 4], limits(&go));
        assert!(matches!(still, Err(LinkError::Still { peer: 1, .. })), "{still:?}");
        let stopped = here.receive(&mut [0; 4], limits(&stop));
        assert!(matches!(stopped, Err(LinkError::Stopped)), "{stopped:?}");
        there.send(&[1, 2], limits(&go)).unwrap();
        drop(there);
        let gone = here.receive(&mut [0; 4], limits(&go));
        assert!(matches!(gone, Err(LinkError::Gone { peer: 1, .. })), "{gone:?}");
    }
}
