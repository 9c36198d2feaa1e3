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
use telltale_server::log;
use telltale_server::token::Token;
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::Intake;
use connection::{Accepted, Peer, Stream};

/// Connections at once: each of a node's workers may have one, and then some.
pub const MAX_CONNECTIONS: usize = 2048;
/// Bytes of the body of one post.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Bytes of all bodies that are being read, in KiB as permits.
const MAX_BODIES_KIB: usize = 16 << 10;
/// Orders that may wait to be forwarded.
pub const MAX_WAITING_WISHES: usize = 16;
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
    /// To be told what became of it: nothing, or why it was refused.
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// Who may give orders. Whoever logs in to this machine as the agent's own user or as root may, by
/// the Unix socket.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// The token that orders and off-loopback figures need; without one, orders are refused on TCP.
    pub token: Option<Token>,
    /// More names under which a TCP port answers.
    pub hosts: Vec<String>,
}

/// Why the agent cannot listen.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Anybody could reach what starts and stops processes.
    #[error(
        "{address} can be reached from other machines, and there is no token; name a token file, or \
         listen on 127.0.0.1 or a Unix socket"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The socket cannot be waited for.
    #[error("cannot use the listening socket of the agent's HTTP")]
    Socket(#[source] std::io::Error),
}

/// The agent's HTTP, ready to be served.
#[derive(Debug)]
pub struct Server {
    sockets: Vec<Socket>,
    app: Arc<App>,
}

/// What requests need.
#[derive(Debug)]
struct App {
    intake: Intake,
    wishes: mpsc::Sender<Wish>,
    token: Option<Token>,
    hosts: Hosts,
    /// Bytes of bodies, in KiB.
    bodies: Arc<Semaphore>,
    own_uid: u32,
}

#[derive(Debug)]
enum Socket {
    Tcp { listener: TcpListener, is_loopback: bool },
    Unix(UnixListener),
}

// === impl Server ===

impl Server {
    /// A server on these sockets, whose posts go to `intake` and whose orders go to `wishes`. To be
    /// called within a tokio runtime.
    ///
    /// # Errors
    /// When a socket can be reached from other machines without a token, or cannot be used.
    pub fn new(
        listeners: Vec<Listener>,
        intake: Intake,
        wishes: mpsc::Sender<Wish>,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        let has_token = options.token.is_some();
        let sockets = listeners.into_iter().map(|listener| match listener {
            Listener::Tcp(listener) => Socket::tcp(listener, has_token),
            Listener::Unix(listener) => Socket::unix(listener),
        });
        let sockets = sockets.collect::<Result<_, _>>()?;
        let app = App {
            intake,
            wishes,
            token: options.token,
            hosts: Hosts::new(&options.hosts),
            bodies: Arc::new(Semaphore::new(MAX_BODIES_KIB)),
            own_uid: rustix::process::geteuid().as_raw(),
        };
        Ok(Self { sockets, app: Arc::new(app) })
    }

    /// Serves, and counts what comes, until it is time to stop.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let intake = self.app.intake.clone();
        let router = routes::router(Arc::clone(&self.app));
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut accepting = JoinSet::new();
        for socket in self.sockets {
            let (router, places, stop) = (router.clone(), Arc::clone(&places), stop.clone());
            accepting.spawn(accept(socket, router, places, stop));
        }
        let mut counting = JoinSet::new();
        counting.spawn(async move { intake.count().await });
        while accepting.join_next().await.is_some() {}
    }
}

// === impl Socket ===

impl Socket {
    fn tcp(listener: StdTcpListener, has_token: bool) -> Result<Self, ServeError> {
        let address = listener.local_addr().map_err(ServeError::Socket)?;
        let is_loopback = address.ip().to_canonical().is_loopback();
        if !is_loopback && !has_token {
            return Err(ServeError::Open { address });
        }
        let listener = TcpListener::from_std(listener).map_err(ServeError::Socket)?;
        Ok(Self::Tcp { listener, is_loopback })
    }

    fn unix(listener: StdUnixListener) -> Result<Self, ServeError> {
        UnixListener::from_std(listener).map(Self::Unix).map_err(ServeError::Socket)
    }

    async fn accept(&self) -> std::io::Result<Accepted> {
        match self {
            Self::Tcp { listener, is_loopback } => {
                let (stream, _) = listener.accept().await?;
                // Answers are written at once; waiting for more would only delay them.
                stream.set_nodelay(true)?;
                let peer = if *is_loopback { Peer::Loopback } else { Peer::Remote };
                Ok(Accepted { stream: Stream::Tcp(stream), peer })
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let peer = Peer::User(stream.peer_cred()?.uid());
                Ok(Accepted { stream: Stream::Unix(stream), peer })
            }
        }
    }
}

/// Accepts connections until it is time to stop, and waits a little until they have ended.
async fn accept(
    socket: Socket,
    router: Router,
    places: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
) {
    let mut running = JoinSet::new();
    let mut stopping = stop.clone();
    loop {
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            accepted = socket.accept() => accepted,
            Some(_) = running.join_next() => continue,
        };
        match accepted {
            Ok(accepted) => {
                // Without a place it is closed, and its client may try again.
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                running.spawn(connection::drive(accepted, router.clone(), place, stop.clone()));
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
