//! Connections as they come in: who they are, whether there is room, and whether they say anything.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

use super::gate::{Gate, Permit};
use crate::access::{AccessPolicy, Caller, sight};

/// Bytes of the HTTP/2 preface (RFC 9113 §3.4), which a client sends first.
const PREFACE_BYTES: usize = 24;
/// How long a client may take over the preface.
pub(super) const GREETING_PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may be silent. A living client answers the server's pings well before.
pub(super) const SILENCE_PATIENCE: Duration = Duration::from_secs(75);
/// How long nobody is accepted after accepting failed, as it does while descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What connections come from.
#[derive(Debug)]
pub(super) enum Source {
    /// The Unix socket.
    Unix(UnixListener),
    /// A TCP port, and who its callers are before they show a token.
    Tcp(TcpListener, Caller),
}

/// A connection's byte stream.
#[derive(Debug)]
enum Transport {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Finds out who has connected.
type Knowing = Pin<Box<dyn Future<Output = (Transport, Caller)> + Send + Sync>>;

/// The connections that are let in.
pub(super) struct Incoming {
    source: Source,
    gate: Arc<Gate>,
    policy: Arc<AccessPolicy>,
    /// The connection that came last, while its caller is not known.
    knowing: Option<Knowing>,
    pause: Option<Pin<Box<Sleep>>>,
}

/// A connection that was let in.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    caller: Arc<Caller>,
    greeting_left: usize,
    silence: Pin<Box<Sleep>>,
    _permit: Permit,
}

// === impl Incoming ===

impl Incoming {
    pub(super) fn new(source: Source, gate: Arc<Gate>, policy: Arc<AccessPolicy>) -> Self {
        Self { source, gate, policy, knowing: None, pause: None }
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Transport, Caller)>> {
        if self.knowing.is_none() {
            match &self.source {
                Source::Unix(listener) => {
                    let (stream, _) = ready!(listener.poll_accept(context))?;
                    let caller = Caller::of_socket(&stream)?;
                    return Poll::Ready(Ok((Transport::Unix(stream), caller)));
                }
                Source::Tcp(listener, caller) => {
                    let (stream, _) = ready!(listener.poll_accept(context))?;
                    stream.set_nodelay(true)?;
                    if *caller != Caller::Anonymous {
                        return Poll::Ready(Ok((Transport::Tcp(stream), caller.clone())));
                    }
                    let policy = Arc::clone(&self.policy);
                    self.knowing = Some(Box::pin(async move {
                        let caller = policy.tcp_caller(&stream).await;
                        (Transport::Tcp(stream), caller)
                    }));
                }
            }
        }
        match &mut self.knowing {
            Some(knowing) => {
                let known = ready!(knowing.as_mut().poll(context));
                self.knowing = None;
                Poll::Ready(Ok(known))
            }
            None => Poll::Pending,
        }
    }

    /// A connection, if there is room for its caller; otherwise it is closed at once.
    fn admit(&self, transport: Transport, caller: Caller) -> Option<Connection> {
        let permit = self.gate.enter(&caller, sight(&self.policy, &caller))?;
        Some(Connection {
            transport,
            caller: Arc::new(caller),
            greeting_left: PREFACE_BYTES,
            silence: Box::pin(tokio::time::sleep(GREETING_PATIENCE)),
            _permit: permit,
        })
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Connection>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match ready!(self.poll_accept(context)) {
                Ok((transport, caller)) => {
                    if let Some(connection) = self.admit(transport, caller) {
                        return Poll::Ready(Some(Ok(connection)));
                    }
                }
                // Descriptors or memory are short, or the client is gone already.
                Err(_) => self.pause = Some(Box::pin(tokio::time::sleep(ACCEPT_PAUSE))),
            }
        }
    }
}

// === impl Connection ===

impl Connection {
    fn stream(&mut self) -> Pin<&mut dyn Duplex> {
        match &mut self.transport {
            Transport::Unix(stream) => Pin::new(stream),
            Transport::Tcp(stream) => Pin::new(stream),
        }
    }
}

/// Bytes both ways.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Connected for Connection {
    type ConnectInfo = Arc<Caller>;

    fn connect_info(&self) -> Arc<Caller> {
        Arc::clone(&self.caller)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Poll::Ready(result) = self.stream().poll_read(context, buffer) else {
            ready!(self.silence.as_mut().poll(context));
            let silent = "the client was silent for too long";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, silent)));
        };
        let read = buffer.filled().len() - before;
        self.greeting_left = self.greeting_left.saturating_sub(read);
        if self.greeting_left == 0 && read > 0 {
            self.silence.as_mut().reset(Instant::now() + SILENCE_PATIENCE);
        }
        Poll::Ready(result)
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
