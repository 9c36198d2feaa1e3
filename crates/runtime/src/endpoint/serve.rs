//! The thread's loop: wait for the listener, the connections and the call to stop; nothing else
//! ever wakes it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use telltale_ledger::directory::OVERFLOW_UID;

use super::answer::{Answering, answer};
use super::connection::{Connection, ConnectionStep};
use super::counts::EndpointCounts;
use crate::process_hooks::ClosedInChild;

/// Connections at one time; more wait in the listener's backlog.
const MAX_CONNECTIONS: usize = 16;
/// How long no client is accepted after accepting failed, as it does while descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// How long the thread rests when it cannot wait: closing the last device waits that long.
const WAIT_PAUSE: Duration = Duration::from_millis(50);

/// Who may ask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admission {
    pub(super) own_uid: u32,
    pub(super) directory_owner: u32,
}

impl Admission {
    /// Root, this process's user and the owner of the runtime directory. The overflow uid is what
    /// the kernel's id for users that this user namespace cannot name, so it is no user.
    fn admits(self, uid: u32) -> bool {
        uid != OVERFLOW_UID && [0, self.own_uid, self.directory_owner].contains(&uid)
    }
}

/// The state of the thread.
pub(super) struct EndpointServer {
    /// Before the listener, so that it is dropped first: once the listener is closed, its number
    /// may be any other descriptor's, which children need.
    _closed_in_child: ClosedInChild,
    listener: OwnedFd,
    wake: OwnedFd,
    admission: Admission,
    answering: Answering,
    connections: Vec<Connection>,
    accept_again_at: Option<Instant>,
    counts: EndpointCounts,
}

/// What woke the thread.
struct Woken {
    stop: bool,
    listener: bool,
    connections: Vec<bool>,
}

impl EndpointServer {
    pub(super) fn new(
        listener: OwnedFd,
        wake: OwnedFd,
        admission: Admission,
        answering: Answering,
    ) -> Self {
        let counts = EndpointCounts::default();
        let connections = Vec::new();
        let _closed_in_child = ClosedInChild::register(listener.as_fd());
        Self {
            _closed_in_child,
            listener,
            wake,
            admission,
            answering,
            connections,
            accept_again_at: None,
            counts,
        }
    }

    /// Serves until asked to stop.
    pub(super) fn run(&mut self) {
        loop {
            let woken = match self.wait() {
                Ok(woken) => woken,
                Err(Errno::INTR) => continue,
                // The kernel has no memory, or the application has lowered the limit on open
                // files below what is waited for. Connections still meet their deadlines, after
                // which there is less to wait for.
                Err(_) => {
                    std::thread::sleep(WAIT_PAUSE);
                    let stop = self.must_stop();
                    Woken { stop, listener: false, connections: Vec::new() }
                }
            };
            if woken.stop {
                return;
            }
            let now = Instant::now();
            self.advance(now, &woken.connections);
            if woken.listener {
                self.accept(now);
            }
        }
    }

    /// Whether the call to stop has come, asked without waiting.
    fn must_stop(&self) -> bool {
        rustix::io::read(&self.wake, &mut [0u8; 8]).is_ok()
    }

    fn wait(&self) -> Result<Woken, Errno> {
        let accepting = self.accept_again_at.is_none() && self.connections.len() < MAX_CONNECTIONS;
        let listener_interest = if accepting { PollFlags::IN } else { PollFlags::empty() };
        let mut waited_for = Vec::with_capacity(2 + self.connections.len());
        waited_for.push(PollFd::new(&self.wake, PollFlags::IN));
        waited_for.push(PollFd::new(&self.listener, listener_interest));
        for connection in &self.connections {
            waited_for.push(PollFd::from_borrowed_fd(connection.socket(), connection.interest()));
        }
        poll(&mut waited_for, self.timeout().as_ref())?;
        let mut ready = waited_for.iter().map(|descriptor| !descriptor.revents().is_empty());
        let stop = ready.next().unwrap_or(false);
        let listener = ready.next().unwrap_or(false) && accepting;
        let connections = self.connections.iter().zip(ready);
        let connections = connections.map(|(it, ready)| ready || it.has_query()).collect();
        Ok(Woken { stop, listener, connections })
    }

    /// Until the next deadline; none, and so no wake-up, without connections.
    fn timeout(&self) -> Option<Timespec> {
        if self.connections.iter().any(Connection::has_query) {
            return Some(Timespec::default());
        }
        let deadlines = self.connections.iter().map(Connection::deadline);
        let next = deadlines.chain(self.accept_again_at).min()?;
        // Rounded up, so that the deadline has passed when the wait ends.
        let wait = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        Timespec::try_from(wait).ok()
    }

    fn advance(&mut self, now: Instant, ready: &[bool]) {
        let mut kept = Vec::with_capacity(self.connections.len());
        let ready = ready.iter().copied().chain(std::iter::repeat(false));
        for (connection, ready) in std::mem::take(&mut self.connections).into_iter().zip(ready) {
            if ready {
                kept.extend(self.step(connection, now));
            } else if connection.deadline() <= now {
                self.counts.deadlines_missed += 1;
            } else {
                kept.push(connection);
            }
        }
        self.connections = kept;
        if self.accept_again_at.is_some_and(|time| time <= now) {
            self.accept_again_at = None;
        }
    }

    /// Lets a connection go on; none when it is over.
    fn step(&mut self, mut connection: Connection, now: Instant) -> Option<Connection> {
        let Self { answering, counts, .. } = self;
        let advanced = connection.advance(now, |query| answer(query, answering, counts));
        match advanced {
            Ok(ConnectionStep::Wait) if connection.deadline() > now => Some(connection),
            Ok(ConnectionStep::Wait) => {
                self.counts.deadlines_missed += 1;
                None
            }
            Ok(ConnectionStep::Close) => None,
            Err(_) => {
                self.counts.broken_connections += 1;
                None
            }
        }
    }

    /// Accepts one peer: if more are waiting, the next wait ends at once, and needs no check in vain
    /// here when there are none, as there usually are.
    fn accept(&mut self, now: Instant) {
        if self.connections.len() >= MAX_CONNECTIONS {
            return;
        }
        match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => {
                let peer = getsockopt(&socket, sockopt::PeerCredentials);
                if peer.is_ok_and(|peer| self.admission.admits(peer.uid())) {
                    // The query is usually there already.
                    let connection = self.step(Connection::new(socket, now), now);
                    self.connections.extend(connection);
                } else {
                    self.counts.refused_users += 1;
                }
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            Err(_) => {
                self.counts.failed_accepts += 1;
                self.accept_again_at = Some(now + ACCEPT_PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Admission;

    #[test]
    fn the_overflow_uid_is_nobody_even_as_owner() {
        let admission = Admission { own_uid: 1000, directory_owner: 990 };
        for (uid, admitted) in [(0, true), (1000, true), (990, true), (1001, false)] {
            assert_eq!(admission.admits(uid), admitted, "{uid}");
        }
        let nobody = Admission { own_uid: 65_534, directory_owner: 65_534 };
        assert!(!nobody.admits(65_534));
        assert!(nobody.admits(0));
    }
}
