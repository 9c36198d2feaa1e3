//! Who is let in to the coordinator's sockets.

use std::sync::Arc;
use tracing::debug;

use telltale_server::door::{Admission, End, Guest, Keeper, Stream};
use telltale_server::peer_user;
use tokio::sync::Semaphore;

use super::access::{Access, is_ours};
use super::counters::{Counters, RefusalReason};
use super::peer::Stranger;

/// The keeper of all sockets.
#[derive(Debug)]
pub(super) struct CoordinatorKeeper {
    pub(super) access: Arc<Access>,
    pub(super) counters: Arc<Counters>,
    /// One permit for each connection.
    pub(super) room: Arc<Semaphore>,
}

impl CoordinatorKeeper {
    fn refuse(&self, why: RefusalReason) -> Option<Guest> {
        self.counters.refuse(why);
        None
    }

    /// Whether a connection comes from another user of this machine than root and our own, or cannot be
    /// configured to come from one of them, where that matters.
    async fn is_stranger(&self, stream: &Stream) -> bool {
        let Stream::Tcp(stream) = stream else { return false };
        if !self.access.asks_nothing() {
            return false;
        }
        match peer_user::user_of(stream).await {
            Ok(user) => user.is_none_or(|user| !is_ours(user)),
            Err(error) => {
                debug!("cannot tell which user connects: {error}");
                true
            }
        }
    }
}

impl Keeper for CoordinatorKeeper {
    fn admit<'a>(&'a self, stream: &'a Stream) -> Admission<'a> {
        Box::pin(async move {
            if let Stream::Unix(stream) = stream
                && !stream.peer_cred().is_ok_and(|peer| self.access.lets_in(peer.uid()))
            {
                return self.refuse(RefusalReason::Stranger);
            }
            let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
                return self.refuse(RefusalReason::Crowded);
            };
            self.counters.connections.add(1);
            Some(Guest::new(permit).with(Stranger(self.is_stranger(stream).await)))
        })
    }

    fn ended(&self, end: End) {
        match end {
            End::Handshake => self.counters.refuse(RefusalReason::Handshake),
            End::Malformed => self.counters.refuse(RefusalReason::Garbage),
            End::TooLarge => self.counters.refuse(RefusalReason::TooLarge),
            End::Flood => self.counters.refuse(RefusalReason::Flood),
            End::Fine | End::Slow | End::MadeRoom => {}
        }
    }
}
