//! Places for connections, and who has to leave when there are none.
//!
//! Clients that see everything keep their slot, and a few are kept for such: a TCP port cannot tell one
//! from another before the token comes, so a connection that finds all other places busy is let in
//! on trial, and its first request has to show that it may stay.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Turn, Notify};

use super::counts::{CloseReason, HttpCounts};
use crate::access::{AccessPolicy, Caller, Visibility, visibility};
use telltale_server::door::{Admission, End, Guest, Keeper, Movement, Stream, Tls};

/// How long after its last byte a connection counts as one that does nothing.
const QUIET: Duration = Duration::from_secs(1);
/// The same for one on trial: who comes to ask, asks at once.
const TRIAL_QUIET: Duration = Duration::from_millis(100);
/// How long a connection waits for a place, and how often it searches for one.
const WAIT: Duration = Duration::from_millis(300);
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Connections of one user of this machine, as its socket file distinguishes them.
const MOST_EACH: usize = 16;
/// Connections that are kept for those who see everything, of all that there may be a fourth at
/// most.
const RESERVE: usize = 16;

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    policy: Arc<AccessPolicy>,
    counts: Arc<HttpCounts>,
    open: Mutex<Vec<Arc<ConnectionKind>>>,
    /// Held by the one whose turn it is to get a place: in the order in which they came, so that a crowd
    /// overtakes no other client.
    turn: Turn<()>,
}

/// What one of them is.
#[derive(Debug)]
pub(super) struct ConnectionKind {
    movement: Arc<Movement>,
    make_room: Arc<Notify>,
    uid: Option<u32>,
    standing: AtomicU8,
}

/// What a connection may do when others need its place. As numbers, for the atomic.
const USUAL: u8 = 0;
const ON_TRIAL: u8 = 1;
const TRUSTED: u8 = 2;

/// A connection's place among all; dropping it gives it back.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    connections: Arc<Connections>,
    place: Arc<ConnectionKind>,
}

// === impl ConnectionKind ===

impl ConnectionKind {
    fn stands(&self, standing: u8) -> bool {
        self.standing.load(Ordering::Relaxed) == standing
    }

    /// Takes note of what its client may see. False when it was on trial and has to go.
    pub(super) fn shows(&self, visibility: Visibility) -> bool {
        if visibility == Visibility::Everything {
            self.standing.store(TRUSTED, Ordering::Relaxed);
        }
        !self.stands(ON_TRIAL)
    }
}

// === impl Connections ===

impl Connections {
    pub(super) fn new(most: usize, policy: Arc<AccessPolicy>, counts: Arc<HttpCounts>) -> Self {
        Self { most, policy, counts, open: Mutex::default(), turn: Turn::default() }
    }

    /// A place for one more of `caller`. Where there is none, the connection that has been quiet
    /// for longest has to go; where none is quiet soon, the new one.
    async fn slot(self: &Arc<Self>, caller: &Caller) -> Option<ConnectionSlot> {
        let is_trusted = visibility(&self.policy, caller) == Visibility::Everything;
        let (wanted, uid) = match caller {
            Caller::Local { uid, .. } if !is_trusted => (USUAL, Some(*uid)),
            // A proxy that runs as root has strangers' requests: each shows first what it is.
            Caller::Loopback { .. } => (USUAL, None),
            _ => (if is_trusted { TRUSTED } else { USUAL }, None),
        };
        let may_try = is_trusted || self.policy.has_token();
        let mut slot;
        if uid.is_some() {
            // A user with too many connections waits for no other user, and no other user for that one.
            slot = self.take(wanted, uid, may_try);
        } else {
            let _turn = self.turn.lock().await;
            let until = Instant::now() + WAIT;
            slot = self.take(wanted, uid, may_try);
            while slot.is_none() && Instant::now() < until {
                tokio::time::sleep(CHECK_INTERVAL).await;
                slot = self.take(wanted, uid, may_try);
            }
        }
        if slot.is_none() {
            self.counts.refuse(CloseReason::TooMany);
        }
        slot
    }

    fn take(
        self: &Arc<Self>,
        wanted: u8,
        uid: Option<u32>,
        may_try: bool,
    ) -> Option<ConnectionSlot> {
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = self.standing(&mut all, wanted, uid, may_try)?;
        let place = Arc::new(ConnectionKind {
            movement: Arc::new(Movement::default()),
            make_room: Arc::new(Notify::new()),
            uid,
            standing: AtomicU8::new(standing),
        });
        all.push(Arc::clone(&place));
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionSlot { connections: Arc::clone(self), place })
    }

    /// As what a new connection is let in, after another made room where need be; none if it is
    /// not.
    fn standing(
        &self,
        all: &mut Vec<Arc<ConnectionKind>>,
        wanted: u8,
        uid: Option<u32>,
        may_try: bool,
    ) -> Option<u8> {
        if wanted == TRUSTED {
            let room =
                all.len() < self.most || send_away(all, Duration::ZERO, |one| !one.stands(TRUSTED));
            return (room || send_away(all, QUIET, |_| true)).then_some(TRUSTED);
        }
        let reserve = RESERVE.min(self.most / 4);
        let count =
            |which: &dyn Fn(&ConnectionKind) -> bool| all.iter().filter(|one| which(one)).count();
        if uid.is_some() {
            let is_its = |one: &ConnectionKind| one.uid == uid && one.stands(USUAL);
            if count(&is_its) >= MOST_EACH {
                return send_away(all, QUIET, is_its).then_some(USUAL);
            }
        }
        if count(&|one| one.stands(USUAL)) < self.most - reserve && all.len() < self.most {
            return Some(USUAL);
        }
        if send_away(all, QUIET, |one| one.stands(USUAL)) {
            return Some(USUAL);
        }
        let trial = uid.is_none() && may_try;
        (trial
            && (all.len() < self.most || send_away(all, TRIAL_QUIET, |one| one.stands(ON_TRIAL))))
        .then_some(ON_TRIAL)
    }
}

/// Sends away the one of these that has been quiet for longest. False where none has been for
/// `least`.
fn send_away(
    all: &mut Vec<Arc<ConnectionKind>>,
    least: Duration,
    which: impl Fn(&ConnectionKind) -> bool,
) -> bool {
    let now = Instant::now();
    let quiet = all.iter().enumerate().filter(|(_, one)| which(one));
    let quiet = quiet.map(|(index, one)| (one.movement.last(), index)).min();
    match quiet.filter(|(last, _)| now.saturating_duration_since(*last) >= least) {
        Some((_, index)) => {
            all.swap_remove(index).make_room.notify_one();
            true
        }
        None => false,
    }
}

/// The keeper of the sockets.
#[derive(Debug)]
pub(super) struct HttpKeeper {
    pub(super) connections: Arc<Connections>,
    pub(super) tls: Arc<Tls>,
}

impl HttpKeeper {
    /// Who has connected; none where a socket file's client is gone.
    async fn caller(&self, stream: &Stream) -> Option<Caller> {
        match stream {
            Stream::Unix(stream) => Caller::of_socket(stream).ok(),
            // Only those with a certificate get through the handshake.
            _ if self.tls.asks_for_certificates() => Some(Caller::Certificate),
            Stream::Tcp(stream) => Some(self.connections.policy.tcp_caller(stream).await),
            Stream::Tls(_) => None,
        }
    }
}

impl Keeper for HttpKeeper {
    fn admit<'a>(&'a self, stream: &'a Stream) -> Admission<'a> {
        Box::pin(async move {
            let caller = self.caller(stream).await?;
            let slot = self.connections.slot(&caller).await?;
            let place = Arc::clone(&slot.place);
            let (movement, leave) = (Arc::clone(&place.movement), Arc::clone(&place.make_room));
            let guest = Guest::new(slot).with(caller).with(place);
            Some(Guest { movement, leave, ..guest })
        })
    }

    fn ended(&self, end: End) {
        match end {
            End::Slow => self.connections.counts.refuse(CloseReason::Slow),
            End::Malformed | End::TooLarge | End::Flood | End::Handshake => {
                self.connections.counts.refuse(CloseReason::Malformed);
            }
            End::MadeRoom => self.connections.counts.refuse(CloseReason::MadeRoom),
            End::Fine => {}
        }
    }
}

// === impl ConnectionSlot ===

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut all = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| !Arc::ptr_eq(one, &self.place));
        self.connections.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
