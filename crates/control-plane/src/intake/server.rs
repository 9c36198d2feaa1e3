//! The agent's HTTP: `/log_ccl` for the node's own workers, orders and metrics for authorized clients.
//!
//! Nothing here counts an entry or carries out an order. Each connection, body and wait has a limit.

mod answers;
mod exposition;
mod keeper;
mod routes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

use telltale_server::door::{Door, Http2, Limits, Protocol, Socket, Tls, TlsError, TlsFiles};
use telltale_server::hosts::Hosts;
use telltale_server::listen::{Address, Listener};
use telltale_server::token::Token;
use thiserror::Error;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::Intake;
use crate::intake::senders::Senders;
use keeper::{Reach, Slots};

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
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(10);
/// How much longer a client that ordered over HTTP waits, so as to hear what became of it.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);
/// What a connection may take. Clients keep theirs between posts.
const LIMITS: Limits = Limits {
    protocol: Protocol::Either(Http2 {
        streams: 64,
        stream_window: 256 << 10,
        connection_window: 256 << 10,
        keep_alive: (Duration::from_secs(60), Duration::from_secs(20)),
    }),
    head: Duration::from_secs(300),
    stall: Duration::from_secs(30),
};

/// What a node may be asked for over HTTP. The receiver forwards it to the coordinator.
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
    /// Receives the outcome. It is closed when no client waits for that any more; what has not
    /// been given by then must not be given.
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
    /// It was given, and no answer came: it may be carried out.
    PerhapsGiven,
}

/// Who may give orders. Users of this machine logged in as the agent's own user or as root may, by
/// the Unix socket; others by the token, or by a certificate of the client authority.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// The token that orders and off-loopback metrics need; with neither it nor a client authority,
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
pub enum IntakeServeError {
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
    Trust(#[from] TlsError),
    /// The socket cannot be waited for.
    #[error("cannot use the listening socket of the agent's HTTP")]
    Socket(#[source] std::io::Error),
}

/// The agent's HTTP, ready to be served.
#[derive(Debug)]
pub struct IntakeServer {
    sockets: Vec<(Socket, Reach)>,
    app: Arc<App>,
}

/// What requests need.
#[derive(Debug)]
struct App {
    intake: Intake,
    wishes: mpsc::Sender<Wish>,
    token: Option<Token>,
    hosts: Hosts,
    /// Whose certificate's names are ours too.
    tls: Arc<Tls>,
    /// Bytes of bodies, in KiB.
    bodies: Arc<Semaphore>,
    /// The same of senders who are not verified, who must not keep workers waiting.
    unverified_bodies: Arc<Semaphore>,
    senders: Senders,
}

// === impl IntakeServer ===

impl IntakeServer {
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
    ) -> Result<Self, IntakeServeError> {
        let tls = Arc::new(Tls::new(options.tls)?);
        let proves = options.token.is_some() || tls.asks_for_certificates();
        let mut sockets = Vec::new();
        for listener in listeners {
            let reach = reach(&listener, proves, &tls)?;
            sockets.push((Socket::new(listener).map_err(IntakeServeError::Socket)?, reach));
        }
        let app = App {
            intake,
            wishes,
            token: options.token,
            hosts: Hosts::new(&options.hosts),
            tls,
            bodies: Arc::new(Semaphore::new(MAX_BODIES_KIB)),
            unverified_bodies: Arc::new(Semaphore::new(MAX_UNVERIFIED_BODIES_KIB)),
            senders: Senders::new("posts", "where one should post, have it send the agent's token"),
        };
        Ok(Self { sockets, app: Arc::new(app) })
    }

    /// Serves, and counts what comes, until it is time to stop.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let intake = self.app.intake.clone();
        let router = routes::router(Arc::clone(&self.app));
        let slots = Slots::new(Arc::clone(&self.app));
        let (without, tls) = (Arc::new(Tls::default()), Arc::clone(&self.app.tls));
        let mut serving = JoinSet::new();
        for (socket, reach) in self.sockets {
            let tls = if reach == Reach::Open { &tls } else { &without };
            let door = Door {
                limits: LIMITS,
                tls: Arc::clone(tls),
                keeper: Arc::new(slots.keeper(reach)),
                router: router.clone(),
            };
            serving.spawn(door.serve(socket, stop.clone()));
        }
        // Both end with this.
        let mut beside = JoinSet::new();
        beside.spawn(async move { intake.count().await });
        beside.spawn(async move { tls.renew(stop).await });
        while serving.join_next().await.is_some() {}
    }
}

/// Who reaches a socket; `proves` says whether callers have to prove who they are.
fn reach(listener: &Listener, proves: bool, tls: &Tls) -> Result<Reach, IntakeServeError> {
    let Some(Address::Tcp(address)) = listener.address() else { return Ok(Reach::Machine) };
    if address.ip().to_canonical().is_loopback() {
        return Ok(Reach::Machine);
    }
    if !proves {
        return Err(IntakeServeError::Open { address });
    }
    if !tls.is_there() {
        warn!(address = %address, "{address} has no TLS: the token can be read on the network");
    }
    Ok(Reach::Open)
}

#[cfg(test)]
mod tests;
