//! Sockets that are listened on, and the byte streams that come from them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;

use crate::listen::Listener;

/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A socket that listens. To be made within a Tokio runtime.
#[derive(Debug)]
pub enum Socket {
    /// A port.
    Tcp(TcpListener),
    /// A socket file.
    Unix(UnixListener),
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// To a port.
    Tcp(TcpStream),
    /// To a port, with TLS.
    Tls(Box<TlsStream<TcpStream>>),
    /// To a socket file.
    Unix(UnixStream),
}

/// The certificate that a client has shown, and that was verified.
#[derive(Debug, Clone)]
pub struct Certificate(pub Arc<CertificateDer<'static>>);

// === impl Socket ===

impl Socket {
    /// A socket of what was bound.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    /// The next connection.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Answers are written at once; waiting for more would only delay them.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

// === impl Stream ===

impl Stream {
    /// The same stream after the handshake, where there is one.
    pub(super) async fn secured(self, acceptor: Option<TlsAcceptor>) -> io::Result<Self> {
        match (self, acceptor) {
            (Self::Tcp(stream), Some(acceptor)) => {
                let late = || io::Error::new(io::ErrorKind::TimedOut, "it took too long");
                let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
                Ok(Self::Tls(Box::new(shaken.await.map_err(|_| late())??)))
            }
            (stream, _) => Ok(stream),
        }
    }

    /// What its client has shown.
    pub(super) fn certificate(&self) -> Option<Certificate> {
        let Self::Tls(stream) = self else { return None };
        let first = stream.get_ref().1.peer_certificates()?.first()?;
        Some(Certificate(Arc::new(first.clone().into_owned())))
    }

    fn inner(&mut self) -> Pin<&mut dyn Duplex> {
        match self {
            Self::Tcp(stream) => Pin::new(stream),
            Self::Tls(stream) => Pin::new(stream.as_mut()),
            Self::Unix(stream) => Pin::new(stream),
        }
    }
}

/// Bytes both ways.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner().poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(context)
    }
}
