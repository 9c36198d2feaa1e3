//! The door of every server: accepts connections on a socket, asks its keeper whom it lets in, shakes
//! hands where there are certificates, and answers HTTP/1.1, HTTP/2 and gRPC within limits. What is
//! answered is a router; who may come in, and what is counted, is the keeper's.

mod connection;
mod frames;
mod movement;
mod stream;
mod tls;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Extensions;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use crate::log;
pub use movement::Movement;
pub use stream::{Certificate, Socket, Stream};
pub use tls::{Tls, TlsError, TlsFiles, read_pem};

/// How long nobody is accepted after accepting failed, as it does while descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long connections may take to end once it is time to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// What is spoken on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 from the first byte, as gRPC is.
    Http2,
    /// Either, as the first bytes say.
    Either,
}

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// What is spoken.
    pub protocol: Protocol,
    /// How long the head of an HTTP/1.1 request may take to come, the wait for it included.
    pub head: Duration,
    /// How long a client may take nothing of what is there for it.
    pub stall: Duration,
    /// Requests of one HTTP/2 connection at once.
    pub streams: u32,
    /// Bytes of one HTTP/2 request that wait to be read.
    pub stream_window: u32,
    /// Bytes of all requests of an HTTP/2 connection that wait to be read.
    pub connection_window: u32,
    /// How often a silent HTTP/2 client is asked whether it lives, and how long it may take to answer.
    pub keep_alive: (Duration, Duration),
}

/// How a connection ended, as far as a server counts that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All is well, or its client went away.
    Fine,
    /// The TLS handshake failed, or took too long.
    Handshake,
    /// Its client sent or took nothing for too long.
    Slow,
    /// What came is not what is spoken here.
    Malformed,
    /// The head of a request has too many bytes.
    TooLarge,
    /// It sent frames that ask for nothing, and no end of them.
    Flood,
    /// It did nothing, and another one needed its place.
    MadeRoom,
}

/// Who is let in.
pub trait Keeper: Send + Sync {
    /// What is to be known of a connection that has just come; none where it is refused, which the
    /// keeper counts. It is asked for one connection after the other.
    fn admit<'a>(&'a self, stream: &'a Stream) -> Admission<'a>;

    /// Takes note of how a connection that was let in has ended.
    fn ended(&self, end: End);
}

/// A keeper's answer, once it is there.
pub type Admission<'a> = Pin<Box<dyn Future<Output = Option<Guest>> + Send + 'a>>;

/// A connection that is let in.
pub struct Guest {
    /// What each of its requests carries; beside it the [`Certificate`] of its client, if it has shown one.
    pub extensions: Extensions,
    /// When its bytes moved last.
    pub movement: Arc<Movement>,
    /// Notified when it has to leave.
    pub leave: Arc<Notify>,
    /// Dropped when it has ended.
    pub seat: Box<dyn Any + Send>,
}

impl Guest {
    /// One that holds this seat.
    pub fn new(seat: impl Any + Send) -> Self {
        Self {
            extensions: Extensions::new(),
            movement: Arc::new(Movement::default()),
            leave: Arc::new(Notify::new()),
            seat: Box::new(seat),
        }
    }

    /// The same, whose requests carry this.
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.extensions.insert(extension);
        self
    }
}

/// A door, for one or several sockets.
#[derive(Clone)]
pub struct Door {
    /// What connections may take.
    pub limits: Limits,
    /// Certificates for TCP; a Unix socket goes without.
    pub tls: Arc<Tls>,
    /// Who is let in.
    pub keeper: Arc<dyn Keeper>,
    /// What is answered.
    pub router: Router,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Door").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Door {
    /// Accepts on a socket until it is time to stop, then waits a little until connections have ended;
    /// what still goes on is cut off.
    pub async fn serve(mut self, socket: Socket, mut stop: watch::Receiver<bool>) {
        if self.limits.protocol != Protocol::Http2 {
            // gRPC has a compression of its own. The level is the one that costs least.
            let gzip = CompressionLayer::new().quality(CompressionLevel::Fastest);
            self.router = self.router.layer(gzip);
        }
        let mut running = JoinSet::new();
        let stopped = stop.clone();
        loop {
            let accepted = tokio::select! {
                // An error means that nobody can call to stop any more, which is as good as the call.
                _ = stop.wait_for(|stop| *stop) => break,
                accepted = socket.accept() => accepted,
                Some(_) = running.join_next() => continue,
            };
            match accepted {
                // Asked at once, while the client is most likely there.
                Ok(stream) => {
                    let Some(guest) = self.keeper.admit(&stream).await else { continue };
                    running.spawn(connection::serve(self.clone(), stream, guest, stopped.clone()));
                }
                Err(error) => {
                    log::debug(|| format!("a connection could not be accepted: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let ended = async { while running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_PATIENCE, ended).await;
    }
}
