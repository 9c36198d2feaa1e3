//! Connections as they come in: as many as there is room for, with TLS where that is asked for, and
//! ended when they say nothing at all.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use telltale_server::listen::Listener;
use telltale_server::{log, peer_user};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::access::{Access, is_ours};
use super::counters::{Counters, Refused};
use super::peer::Peer;
use crate::trust::Spoken;

/// How long a caller may take for the handshake, and then to say its first word.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody is accepted after accepting failed, as it does while descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What a caller's first words are where HTTP/2 is spoken (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Connections that wait to be served.
const MAX_WAITING: usize = 64;

/// What is spoken on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Grpc,
    Http,
}

/// What a port needs to let callers in.
#[derive(Debug, Clone)]
pub(super) struct Entrance {
    pub(super) speech: Speech,
    pub(super) access: Arc<Access>,
    pub(super) counters: Arc<Counters>,
    /// One permit for each connection.
    pub(super) room: Arc<Semaphore>,
}

/// A connection that was let in.
#[derive(Debug)]
pub(super) struct Connection {
    bytes: Bytes,
    /// Until the caller has said its first word.
    greeting: Option<Pin<Box<Sleep>>>,
    /// What is still to come of its preface. Whoever serves gRPC ends a connection without one, and tells
    /// nobody.
    preface: &'static [u8],
    counters: Arc<Counters>,
    is_stranger: bool,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Bytes {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Accepts on a socket, in a task of its own, until nobody takes the connections any more.
pub(super) fn accept(
    listener: Listener,
    entrance: Entrance,
) -> io::Result<mpsc::Receiver<io::Result<Connection>>> {
    let socket = match listener {
        Listener::Tcp(listener) => Socket::Tcp(TcpListener::from_std(listener)?),
        Listener::Unix(listener) => Socket::Unix(UnixListener::from_std(listener)?),
    };
    let (to_server, connections) = mpsc::channel(MAX_WAITING);
    tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                () = to_server.closed() => return,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok(bytes) => admit(bytes, &entrance, &to_server),
                Err(error) => {
                    log::debug(|| format!("a connection could not be accepted: {error}"));
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    });
    Ok(connections)
}

/// Lets a connection in if there is room, after its handshake where there is one.
fn admit(bytes: Bytes, entrance: &Entrance, to_server: &mpsc::Sender<io::Result<Connection>>) {
    if let Bytes::Unix(stream) = &bytes
        && !stream.peer_cred().is_ok_and(|peer| entrance.access.lets_in(peer.uid()))
    {
        entrance.counters.refuse(Refused::Stranger);
        return;
    }
    let Ok(permit) = Arc::clone(&entrance.room).try_acquire_owned() else {
        entrance.counters.refuse(Refused::Crowded);
        return;
    };
    let to_server = to_server.clone();
    let counters = Arc::clone(&entrance.counters);
    let (spoken, preface) = match entrance.speech {
        Speech::Grpc => (Spoken::Grpc, PREFACE),
        Speech::Http => (Spoken::Http1, &[][..]),
    };
    let tls = entrance.access.tls.as_ref().map(|tls| tls.acceptor(spoken));
    let asks_nothing = entrance.access.asks_nothing();
    tokio::spawn(async move {
        let is_stranger = asks_nothing && is_of_another_user(&bytes).await;
        let bytes = match (bytes, tls) {
            (Bytes::Tcp(stream), Some(acceptor)) => match shake_hands(stream, &acceptor).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    counters.refuse(Refused::Handshake);
                    log::debug(|| format!("a TLS handshake failed: {error}"));
                    return;
                }
            },
            (bytes, _) => bytes,
        };
        counters.connections.add(1);
        let greeting = Some(Box::pin(sleep(GREETING_PATIENCE)));
        let connection =
            Connection { bytes, greeting, preface, counters, is_stranger, _permit: permit };
        // Nobody takes it when the program ends.
        let _ = to_server.send(Ok(connection)).await;
    });
}

/// Whether a connection comes from another user of this machine than root and our own, or cannot be
/// told to come from one of them.
async fn is_of_another_user(bytes: &Bytes) -> bool {
    let Bytes::Tcp(stream) = bytes else { return false };
    match peer_user::user_of(stream).await {
        Ok(user) => user.is_none_or(|user| !is_ours(user)),
        Err(error) => {
            log::debug(|| format!("cannot tell which user connects: {error}"));
            true
        }
    }
}

async fn shake_hands(stream: TcpStream, acceptor: &TlsAcceptor) -> io::Result<Bytes> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "the caller took too long");
    let shaken = timeout(GREETING_PATIENCE, acceptor.accept(stream)).await;
    Ok(Bytes::Tls(Box::new(shaken.map_err(|_| late())??)))
}

impl Socket {
    async fn accept(&self) -> io::Result<Bytes> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Bytes::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Bytes::Unix(listener.accept().await?.0)),
        }
    }
}

// === impl Connection ===

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        let shown = match &self.bytes {
            Bytes::Tls(stream) => stream.get_ref().1.peer_certificates().and_then(<[_]>::first),
            Bytes::Tcp(_) | Bytes::Unix(_) => None,
        };
        let certificate = shown.map(|certificate| Arc::new(certificate.clone().into_owned()));
        Peer { certificate, is_stranger: self.is_stranger }
    }
}

/// Bytes both ways.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Connection {
    fn stream(&mut self) -> Pin<&mut dyn Duplex> {
        match &mut self.bytes {
            Bytes::Tcp(stream) => Pin::new(stream),
            Bytes::Tls(stream) => Pin::new(stream.as_mut()),
            Bytes::Unix(stream) => Pin::new(stream),
        }
    }

    /// Compares what came with what is to come first, and counts a connection on which it is not that.
    fn hear(&mut self, said: &[u8]) {
        let (expected, later) = self.preface.split_at(self.preface.len().min(said.len()));
        self.preface = if said.starts_with(expected) {
            later
        } else {
            self.counters.refuse(Refused::Garbage);
            log::debug(|| String::from("a connection for gRPC was of another protocol"));
            &[]
        };
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = self.stream().poll_read(context, buffer);
        self.hear(&buffer.filled()[before..]);
        match (&outcome, &mut self.greeting) {
            (Poll::Ready(_), _) => self.greeting = None,
            (Poll::Pending, Some(greeting)) => {
                ready!(greeting.as_mut().poll(context));
                let silent = "the caller said nothing";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, silent)));
            }
            (Poll::Pending, None) => {}
        }
        outcome
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}
