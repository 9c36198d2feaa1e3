//! Who is let in to the agent's HTTP, and who it is.

use std::sync::Arc;
use tracing::debug;

use telltale_server::door::{Admission, End, Guest, Keeper, Stream};
use telltale_server::peer_user;
use tokio::sync::Semaphore;

use super::{App, MAX_CONNECTIONS, MAX_UNVERIFIED_CONNECTIONS};

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// A process of this machine, of the user whose socket the kernel says it is, where it does.
    Loopback(Option<u32>),
    /// Anybody.
    Remote,
    /// Clients with a certificate of the client authority.
    Known,
    /// A process of this machine of the user with this number.
    User(u32),
}

/// Who reaches a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// This machine alone: what workers post does not leave it, and goes without TLS.
    Machine,
    /// Other machines too, with TLS where there are certificates.
    Open,
}

/// Slots of connections: senders who are not verified have their own, so that they keep no worker out.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    all: Arc<Semaphore>,
    unverified: Arc<Semaphore>,
    app: Arc<App>,
}

/// The keeper of one socket.
#[derive(Debug)]
pub(super) struct SocketKeeper {
    slots: Slots,
    reach: Reach,
}

impl Slots {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            unverified: Arc::new(Semaphore::new(MAX_UNVERIFIED_CONNECTIONS)),
            app,
        }
    }

    pub(super) fn keeper(&self, reach: Reach) -> SocketKeeper {
        SocketKeeper { slots: self.clone(), reach }
    }

    /// Where there is none, the connection is closed, and its client may try again.
    fn of(&self, peer: Peer) -> Option<impl Send + use<>> {
        let is_stranger = match peer {
            Peer::Loopback(user) => !user.is_some_and(|user| self.app.senders.has(user)),
            Peer::User(user) => !self.app.senders.has(user),
            Peer::Remote | Peer::Known => false,
        };
        let slots = if is_stranger { &self.unverified } else { &self.all };
        Arc::clone(slots).try_acquire_owned().ok()
    }
}

impl SocketKeeper {
    async fn peer(&self, stream: &Stream) -> Option<Peer> {
        match (stream, self.reach) {
            (Stream::Unix(stream), _) => Some(Peer::User(stream.peer_cred().ok()?.uid())),
            (_, Reach::Open) if self.slots.app.tls.asks_for_certificates() => Some(Peer::Known),
            (_, Reach::Open) => Some(Peer::Remote),
            (Stream::Tcp(stream), Reach::Machine) => {
                let user = peer_user::user_of(stream).await.unwrap_or_else(|error| {
                    debug!("cannot tell which user connects: {error}");
                    None
                });
                Some(Peer::Loopback(user))
            }
            (Stream::Tls(_), Reach::Machine) => None,
        }
    }
}

impl Keeper for SocketKeeper {
    fn admit<'a>(&'a self, stream: &'a Stream) -> Admission<'a> {
        Box::pin(async move {
            let peer = self.peer(stream).await?;
            Some(Guest::new(self.slots.of(peer)?).with(peer))
        })
    }

    fn ended(&self, _: End) {}
}
