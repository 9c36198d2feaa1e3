//! Where others knock: a listener that takes the first words of many at once, so that a peer that
//! connects and says nothing delays no other.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::link::{is_not_yet, wait};
use super::rendezvous::JoinError;
use super::words::HELLO_BYTES;

/// Connections whose first words are awaited; when there are more, the oldest is closed.
const MAX_WAITING: usize = 256;

/// A listener.
#[derive(Debug)]
pub(super) struct Door {
    listener: TcpListener,
    waiting: Vec<PendingPeer>,
}

/// A peer whose first words are incomplete.
#[derive(Debug)]
struct PendingPeer {
    stream: TcpStream,
    from: IpAddr,
    said: Vec<u8>,
}

/// A peer whose first words are complete.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    pub(super) words: [u8; HELLO_BYTES],
}

// === impl Door ===

impl Door {
    /// Listens at an address.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, waiting: Vec::new() })
    }

    /// Where that is.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next who has said his first words. `waits_for` says what is waited for.
    pub(super) fn next(
        &mut self,
        stop: &AtomicBool,
        until: Instant,
        waits_for: impl Fn() -> String,
    ) -> Result<Visitor, JoinError> {
        loop {
            self.let_in();
            if let Some(visitor) = self.who_has_spoken() {
                return Ok(visitor);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(JoinError::Stopped);
            }
            if Instant::now() > until {
                return Err(JoinError::Late { waits_for: waits_for() });
            }
            let mut descriptors = vec![PollFd::new(&self.listener, PollFlags::IN)];
            let waiting = self.waiting.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN));
            descriptors.extend(waiting);
            wait(&mut descriptors);
        }
    }

    fn let_in(&mut self) {
        // What cannot be accepted now is tried again at the next check.
        while let Ok((stream, from)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.waiting.len() == MAX_WAITING {
                self.waiting.remove(0);
            }
            self.waiting.push(PendingPeer { stream, from: from.ip(), said: Vec::new() });
        }
    }

    fn who_has_spoken(&mut self) -> Option<Visitor> {
        let mut place = 0;
        while let Some(one) = self.waiting.get_mut(place) {
            match one.listen() {
                Ok(None) => place += 1,
                Ok(Some(words)) => {
                    let PendingPeer { stream, from, .. } = self.waiting.remove(place);
                    return Some(Visitor { stream, from, words });
                }
                // A peer that hangs up has nothing to say.
                Err(_) => drop(self.waiting.remove(place)),
            }
        }
        None
    }
}

impl PendingPeer {
    /// His first words, once all are there.
    fn listen(&mut self) -> io::Result<Option<[u8; HELLO_BYTES]>> {
        let mut buffer = [0; HELLO_BYTES];
        let room = &mut buffer[self.said.len()..];
        match (&self.stream).read(room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.said.extend_from_slice(&room[..count]),
            Err(error) if is_not_yet(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(self.said.first_chunk().copied())
    }
}
