//! One connection: HTTP/1.1 or HTTP/2, as its first bytes say, or from one to the other by upgrade.
//!
//! It ends when its client goes away, stands still, or it is time to stop.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use telltale_server::log;
use telltale_server::stalling::{Movement, Noting};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_rustls::TlsAcceptor;

use super::upgrade;

/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
const MAX_HEADERS: usize = 64;
/// Requests of one HTTP/2 connection at once.
const MAX_STREAMS: u32 = 64;
/// Bytes that an HTTP/2 client may send before they are read, in all and for one request.
const WINDOW_BYTES: u32 = 256 << 10;
/// How long a TLS handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a request's head may take to come, the wait for its first byte included.
const HEAD_PATIENCE: Duration = Duration::from_secs(300);
/// How long a client may take nothing of an answer.
const STALL_PATIENCE: Duration = Duration::from_secs(30);
/// How often an HTTP/2 client is asked whether it is there, and how long it may take to answer.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));

/// A connection that has just come.
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) peer: Peer,
}

/// What it is made of.
pub(super) enum Stream {
    Tcp(TcpStream),
    /// One whose handshake is still to come.
    Tls(TcpStream, TlsAcceptor),
    Unix(UnixStream),
}

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// A process of this machine, of the user whose socket the kernel says it is, where it does.
    Loopback(Option<u32>),
    /// Anybody.
    Remote,
    /// Whoever has a certificate of the client authority.
    Known,
    /// A process of this machine of the user with this number.
    User(u32),
}

/// Serves one connection until it ends or must. It holds its place also after an upgrade.
pub(super) async fn drive(
    accepted: Accepted,
    router: Router,
    place: OwnedSemaphorePermit,
    stop: watch::Receiver<bool>,
) {
    let (peer, place) = (accepted.peer, Arc::new(place));
    match accepted.stream {
        Stream::Tcp(stream) => serve(stream, peer, router, place, stop).await,
        Stream::Tls(stream, acceptor) => {
            let shaken = tokio::time::timeout(HANDSHAKE_PATIENCE, acceptor.accept(stream)).await;
            match shaken {
                Ok(Ok(stream)) => serve(stream, peer, router, place, stop).await,
                Ok(Err(error)) => log::debug(|| format!("a TLS handshake failed: {error}")),
                Err(_) => log::debug(|| String::from("a TLS handshake took too long")),
            }
        }
        Stream::Unix(stream) => serve(stream, peer, router, place, stop).await,
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    router: Router,
    place: Arc<OwnedSemaphorePermit>,
    mut stop: watch::Receiver<bool>,
) {
    let movement = Arc::new(Movement::default());
    let app = TowerToHyperService::new(router);
    let upgraded_stop = stop.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let wish = upgrade::wish(&mut request);
        let again = app.clone();
        let (answer, place, stop) = (app.call(request), Arc::clone(&place), upgraded_stop.clone());
        async move {
            let answer = answer.await?;
            let Some(wish) = wish.filter(|_| answer.status().is_success()) else {
                return Ok(answer);
            };
            tokio::spawn(async move {
                upgrade::go_on(wish, answer, again, peer, stop).await;
                drop(place);
            });
            Ok::<Response<axum::body::Body>, Infallible>(upgrade::switching())
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        // Who sends no more (`nc -N`) still waits for the answer.
        .half_close(true);
    limit_http2(&mut builder);
    let stream = TokioIo::new(Noting::new(stream, Arc::clone(&movement)));
    let connection = builder.serve_connection_with_upgrades(stream, service);
    let mut connection = std::pin::pin!(connection);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // Its client went away, or spoke no HTTP, or all is well.
            _ = connection.as_mut() => return,
            () = movement.stalls(STALL_PATIENCE) => return,
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Sets the limits of HTTP/2 connections.
pub(super) fn limit_http2(builder: &mut auto::Builder<TokioExecutor>) {
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).expect("16 KiB fits in a u32"))
        .keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1);
}
