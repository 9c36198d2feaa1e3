//! The agent's HTTP: `/log_ccl` for the node's own workers, orders and figures for whoever may.
//!
//! Nothing here counts an entry or carries out an order. Each connection, body and wait has a limit.

mod answers;
mod connection;
mod exposition;
mod routes;
mod upgrade;

use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use telltale_server::hosts::Hosts;
use telltale_server::listen::Listener;
use telltale_server::token::Token;
use telltale_server::{log, peer_user};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::Intake;
use crate::intake::senders::Senders;
use crate::trust::{Spoken, TlsFiles, TlsPlan, TrustError};
use connection::{Accepted, Peer, Stream};

/// Connections at once: each of a node's workers may have one, and then some.
pub const MAX_CONNECTIONS: usize = 2048;
/// Bytes of the body of one post.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Bytes of all bodies that are being read, in KiB as permits.
const MAX_BODIES_KIB: usize = 16 << 10;
/// The same of senders who are not verified: a body, and room for short ones.
const MAX_UNVERIFIED_BODIES_KIB: usize = 5 << 10;
/// Connections of such senders at once.
const MAX_UNVERIFIED_CONNECTIONS: usize = 128;
/// Orders that may wait to be forwarded.
pub const MAX_WAITING_WISHES: usize = 16;
/// How long an order may take until a coordinator has answered it.
pub const ORDER_PATIENCE: Duration = Duration::from_secs(10);
/// How much longer whoever ordered over HTTP waits, so as to hear what became of it.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);
/// How long to wait when the system gives no descriptor for another connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// How long connections may take to end once it is time to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// What a node may be asked for over HTTP. Whoever takes it forwards it to the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeOrder {
    /// Let this node take slots again.
    Activate,
    /// Take this node out of the job now.
    Remove,
    /// Restart the job.
    Restart,
}

/// An order on its way to the coordinator.
#[derive(Debug)]
pub struct Wish {
    /// What is ordered.
    pub order: NodeOrder,
    /// To be told what became of it. It is closed when nobody waits for that any more; what has not
    /// been given by then is not to be given.
    pub answer: oneshot::Sender<Result<(), Unmet>>,
}

/// What became of an order that is not known to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// The coordinator refuses it, and why.
    Refused(String),
    /// No coordinator was reached that leads, and why.
    Unreached(String),
    /// None has answered, and it was given to none.
    NotGiven,
    /// It was given, and nobody has answered: it may be carried out.
    PerhapsGiven,
}

/// Who may give orders. Whoever logs in to this machine as the agent's own user or as root may, by
/// the Unix socket; others by the token, or by a certificate of the client authority.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// The token that orders and off-loopback figures need; with neither it nor a client authority,
    /// orders are refused on TCP.
    pub token: Option<Token>,
    /// Certificates for ports that other machines reach. Ports of the loopback go without: what
    /// workers post does not leave the machine.
    pub tls: Option<TlsFiles>,
    /// More names under which a TCP port answers.
    pub hosts: Vec<String>,
}

/// Why the agent cannot listen.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Anybody could reach what starts and stops processes.
    #[error(
        "{address} can be reached from other machines, and there is neither a token nor an authority \
         of callers' certificates; name one of them, or listen on 127.0.0.1 or a Unix socket"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The certificates' files.
    #[error("the certificates of the agent's HTTP cannot be used")]
    Trust(#[from] TrustError),
    /// The socket cannot be waited for.
    #[error("cannot use the listening socket of the agent's HTTP")]
    Socket(#[source] std::io::Error),
}

/// The agent's HTTP, ready to be served.
#[derive(Debug)]
pub struct Server {
    sockets: Vec<Socket>,
    app: Arc<App>,
    tls: Option<Arc<TlsPlan>>,
}

/// What requests need.
#[derive(Debug)]
struct App {
    intake: Intake,
    wishes: mpsc::Sender<Wish>,
    token: Option<Token>,
    hosts: Hosts,
    /// Whose certificate's names are ours too.
    tls: Option<Arc<TlsPlan>>,
    /// Bytes of bodies, in KiB.
    bodies: Arc<Semaphore>,
    /// The same of senders who are not verified, who must not keep workers waiting.
    unverified_bodies: Arc<Semaphore>,
    senders: Senders,
}

/// Slots of connections: senders who are not verified have their own, so that they keep no worker out.
#[derive(Debug, Clone)]
struct Slots {
    all: Arc<Semaphore>,
    unverified: Arc<Semaphore>,
    app: Arc<App>,
}

#[derive(Debug)]
enum Socket {
    /// A port that only this machine reaches.
    Loopback(TcpListener),
    /// A port that other machines reach, with TLS where there are certificates.
    Open {
        listener: TcpListener,
        tls: Option<Arc<TlsPlan>>,
    },
    Unix(UnixListener),
}

// === impl Server ===

impl Server {
    /// A server on these sockets, whose posts go to `intake` and whose orders go to `wishes`. To be
    /// called within a tokio runtime.
    ///
    /// # Errors
    /// When a socket can be reached from other machines without a token or a client authority, when
    /// certificates cannot be used, or a socket not.
    pub fn new(
        listeners: Vec<Listener>,
        intake: Intake,
        wishes: mpsc::Sender<Wish>,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        let tls = options.tls.map(TlsPlan::new).transpose()?.map(Arc::new);
        let proves =
            options.token.is_some() || tls.as_ref().is_some_and(|tls| tls.asks_for_certificates());
        let sockets = listeners.into_iter().map(|listener| match listener {
            Listener::Tcp(listener) => Socket::tcp(listener, proves, tls.as_ref()),
            Listener::Unix(listener) => Socket::unix(listener),
        });
        let sockets = sockets.collect::<Result<_, _>>()?;
        let app = App {
            intake,
            wishes,
            token: options.token,
            hosts: Hosts::new(&options.hosts),
            tls: tls.clone(),
            bodies: Arc::new(Semaphore::new(MAX_BODIES_KIB)),
            unverified_bodies: Arc::new(Semaphore::new(MAX_UNVERIFIED_BODIES_KIB)),
            senders: Senders::new("posts", "where one should post, have it send the agent's token"),
        };
        Ok(Self { sockets, app: Arc::new(app), tls })
    }

    /// Serves, and counts what comes, until it is time to stop.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let intake = self.app.intake.clone();
        let router = routes::router(Arc::clone(&self.app));
        let slots = Slots {
            all: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            unverified: Arc::new(Semaphore::new(MAX_UNVERIFIED_CONNECTIONS)),
            app: Arc::clone(&self.app),
        };
        let mut accepting = JoinSet::new();
        for socket in self.sockets {
            let (router, slots, stop) = (router.clone(), slots.clone(), stop.clone());
            accepting.spawn(accept(socket, router, slots, stop));
        }
        // Both end with this.
        let mut beside = JoinSet::new();
        beside.spawn(async move { intake.count().await });
        if let Some(tls) = self.tls {
            beside.spawn(async move { tls.renew(stop).await });
        }
        while accepting.join_next().await.is_some() {}
    }
}

// === impl Slots ===

impl Slots {
    fn of(&self, peer: Peer) -> Option<OwnedSemaphorePermit> {
        let is_stranger = match peer {
            Peer::Loopback(user) => !user.is_some_and(|user| self.app.senders.has(user)),
            Peer::User(user) => !self.app.senders.has(user),
            Peer::Remote | Peer::Known => false,
        };
        let slots = if is_stranger { &self.unverified } else { &self.all };
        Arc::clone(slots).try_acquire_owned().ok()
    }
}

// === impl Socket ===

impl Socket {
    /// A port; `proves` says whether callers have to prove who they are.
    fn tcp(
        listener: StdTcpListener,
        proves: bool,
        tls: Option<&Arc<TlsPlan>>,
    ) -> Result<Self, ServeError> {
        let address = listener.local_addr().map_err(ServeError::Socket)?;
        let listener = TcpListener::from_std(listener).map_err(ServeError::Socket)?;
        if address.ip().to_canonical().is_loopback() {
            return Ok(Self::Loopback(listener));
        }
        if !proves {
            return Err(ServeError::Open { address });
        }
        if tls.is_none() {
            log::warn(&format!(
                "{address} is served without TLS: whoever listens in on the network reads the token"
            ));
        }
        Ok(Self::Open { listener, tls: tls.cloned() })
    }

    fn unix(listener: StdUnixListener) -> Result<Self, ServeError> {
        UnixListener::from_std(listener).map(Self::Unix).map_err(ServeError::Socket)
    }

    async fn accept(&self) -> std::io::Result<Accepted> {
        match self {
            Self::Loopback(listener) => {
                let stream = accept_on(listener).await?;
                Ok(Accepted { stream: Stream::Tcp(stream), peer: Peer::Loopback(None) })
            }
            Self::Open { listener, tls } => {
                let stream = accept_on(listener).await?;
                Ok(match tls {
                    Some(tls) => {
                        let peer =
                            if tls.asks_for_certificates() { Peer::Known } else { Peer::Remote };
                        let acceptor = tls.acceptor(Spoken::Http);
                        Accepted { stream: Stream::Tls(stream, acceptor), peer }
                    }
                    None => Accepted { stream: Stream::Tcp(stream), peer: Peer::Remote },
                })
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let peer = Peer::User(stream.peer_cred()?.uid());
                Ok(Accepted { stream: Stream::Unix(stream), peer })
            }
        }
    }
}

impl Accepted {
    /// Asks which user has connected by the loopback.
    async fn find_user(&mut self) {
        let (Stream::Tcp(stream), Peer::Loopback(user)) = (&self.stream, &mut self.peer) else {
            return;
        };
        *user = peer_user::user_of(stream).await.unwrap_or_else(|error| {
            log::debug(|| format!("cannot tell which user connects: {error}"));
            None
        });
    }
}

async fn accept_on(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    // Answers are written at once; waiting for more would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Accepts connections until it is time to stop, and waits a little until they have ended.
async fn accept(socket: Socket, router: Router, slots: Slots, stop: watch::Receiver<bool>) {
    let mut running = JoinSet::new();
    let mut stopping = stop.clone();
    loop {
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            accepted = socket.accept() => accepted,
            Some(_) = running.join_next() => continue,
        };
        match accepted {
            Ok(mut accepted) => {
                // Not before: whoever stops waiting for a connection has taken none.
                accepted.find_user().await;
                // Without a slot it is closed, and its client may try again.
                let Some(slot) = slots.of(accepted.peer) else { continue };
                running.spawn(connection::drive(accepted, router.clone(), slot, stop.clone()));
            }
            Err(error) => {
                log::debug(|| format!("a connection could not be accepted: {error}"));
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
    let all = async { while running.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(STOP_PATIENCE, all).await;
}

#[cfg(test)]
mod tests;
