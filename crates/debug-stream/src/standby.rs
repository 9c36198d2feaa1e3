//! The consumer of last resort: reads a stream while no other does, and makes room for a client that
//! comes.
//!
//! A stream has one place for a consumer. The standby takes it like any other, but a client that
//! finds it there asks it to leave by its eventfd, and waits for that no longer than
//! [`TIMEOUT`]. It is signalled again when the client has gone. Nothing here touches the queue.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::sync::wait_a_little;

/// How long a client waits for the standby to leave: many times what it takes unless the standby
/// hangs in a file system.
const TIMEOUT: Duration = Duration::from_secs(1);
const NO_PROCESS: u32 = 0;

/// A stream's standby, as clients see it.
pub(crate) struct Standby {
    /// The process whose standby has the consumer's place, or is about to take it.
    held_by: AtomicU32,
    /// Clients that wait for it to leave.
    wanted: AtomicU32,
    wake_up: RwLock<Option<Arc<OwnedFd>>>,
}

/// What a client learns about a place that is taken.
pub(crate) enum Occupancy {
    /// By the standby, which was asked to leave: try again.
    ByStandby,
    /// By another client, or by a standby that does not leave.
    ByAnother,
}

/// A client that waits for the standby to leave.
pub(crate) struct WaitingClient<'stream> {
    standby: &'stream Standby,
    deadline: Instant,
    attempts: u32,
    held: bool,
}

// === impl Standby ===

impl Standby {
    pub(crate) fn new() -> Self {
        Self {
            held_by: AtomicU32::new(NO_PROCESS),
            wanted: AtomicU32::new(0),
            wake_up: RwLock::new(None),
        }
    }

    /// Whether a client waits for the standby to leave.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    /// Claims the standby's role before it connects; whether it may.
    pub(crate) fn claim(&self, wake_up: &Arc<OwnedFd>) -> bool {
        *self.wake_up.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(wake_up));
        // SYNC: standby. Either this sees the client that waits, or the client sees the claim and
        // tries again.
        self.held_by.store(std::process::id(), Ordering::SeqCst);
        let may = !self.is_wanted();
        if !may {
            self.give_up();
        }
        may
    }

    /// Gives the role up, when it could not connect or after it has left.
    pub(crate) fn give_up(&self) {
        self.held_by.store(NO_PROCESS, Ordering::SeqCst);
    }

    /// Begins to wait for the standby to leave, if it is one that holds the place.
    pub(crate) fn wait(&self) -> WaitingClient<'_> {
        // SYNC: standby
        self.wanted.fetch_add(1, Ordering::SeqCst);
        let deadline = Instant::now() + TIMEOUT;
        WaitingClient { standby: self, deadline, attempts: 0, held: false }
    }

    pub(crate) fn ring(&self) {
        if let Some(wake_up) = &*self.wake_up.read().unwrap_or_else(PoisonError::into_inner) {
            // If its count is at its limit, it rings already.
            let _ = rustix::io::write(wake_up, &1_u64.to_ne_bytes());
        }
    }
}

// === impl WaitingClient ===

impl WaitingClient<'_> {
    /// To be called before each attempt to connect: who holds the place is checked first.
    pub(crate) fn check_holder(&mut self) {
        self.held = self.standby.held_by.load(Ordering::SeqCst) == std::process::id();
    }

    /// What an attempt that found the place taken means.
    pub(crate) fn found_taken(&mut self) -> Occupancy {
        if !self.held || Instant::now() >= self.deadline {
            return Occupancy::ByAnother;
        }
        if self.attempts == 0 {
            self.standby.ring();
        }
        wait_a_little(&mut self.attempts);
        Occupancy::ByStandby
    }
}

impl Drop for WaitingClient<'_> {
    fn drop(&mut self) {
        self.standby.wanted.fetch_sub(1, Ordering::SeqCst);
        // One that left and could not connect because of this client may do so now.
        if self.attempts > 0 {
            self.standby.ring();
        }
    }
}
