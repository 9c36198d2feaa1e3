//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use tracing::debug;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::end::End;
use super::keeper::{Guest, Keeper};
use super::limits::{Limits, Protocol};
use super::movement::Noting;
use super::stream::Stream;
use super::tls::Tls;

/// Bytes of a request's head, of which a part of an answer may use the room.
const MAX_HEAD_BYTES: u32 = 16 << 10;
/// Headers of a request.
const MAX_HEADERS: usize = 64;
/// HTTP/2 requests that a client reset before they were answered; beyond, the connection is closed.
const MAX_RESETS: usize = 32;

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

/// Serves a connection, if it is let in, until it ends or must. It has `waiting` until that is known.
pub(super) async fn enter(
    door: Door,
    stream: Stream,
    waiting: OwnedSemaphorePermit,
    stop: watch::Receiver<bool>,
) {
    let Some(guest) = door.keeper.admit(&stream).await else { return };
    drop(waiting);
    serve(door, stream, guest, stop).await;
}

async fn serve(door: Door, stream: Stream, guest: Guest, stop: watch::Receiver<bool>) {
    // Before the handshake, so that no change of the certificates is missed.
    let changed = door.tls.changes();
    let keeper = Arc::clone(&door.keeper);
    keeper.ended(match stream.secured(door.tls.acceptor(door.limits.protocol)).await {
        Ok(stream) => drive(door, stream, guest, changed, stop).await,
        Err(error) => {
            debug!("a TLS handshake failed: {error}");
            End::Handshake
        }
    });
}

async fn drive(
    door: Door,
    stream: Stream,
    guest: Guest,
    mut changed: watch::Receiver<()>,
    mut stop: watch::Receiver<bool>,
) -> End {
    let Door { limits, router, .. } = door;
    let Guest { mut extensions, movement, leave, seat: _seat } = guest;
    if let Some(certificate) = stream.certificate() {
        extensions.insert(certificate);
    }
    let app = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().extend(extensions.clone());
        let answer = app.call(request);
        async move { answer.await as Result<Response, Infallible> }
    });
    let is_secured = matches!(stream, Stream::Tls(_));
    let stream = TokioIo::new(Noting::new(stream, limits.protocol, Arc::clone(&movement)));
    let builder = builder(&limits);
    let mut connection = pin!(builder.serve_connection(stream, service));
    let mut fails = pin!(movement.fails(&limits));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // The library says of another protocol only that the connection has ended.
            outcome = connection.as_mut() => return match outcome {
                _ if movement.is_foreign(&limits) => End::Malformed,
                Ok(()) => End::Fine,
                Err(error) => end_of(&*error),
            },
            end = &mut fails => return end,
            () = leave.notified() => return End::MadeRoom,
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            // Calls that go on are answered under the certificate that they began with.
            Ok(()) = changed.changed(), if is_secured && !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let builder = Builder::new(TokioExecutor::new());
    let mut builder = match limits.protocol {
        Protocol::Http1 => builder.http1_only(),
        Protocol::Http2(_) => builder.http2_only(),
        Protocol::Either(_) => builder,
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD_BYTES as usize)
        .max_headers(MAX_HEADERS)
        // Who sends no more (`nc -N`) still waits for the answer.
        .half_close(true);
    if let Some(http2) = limits.protocol.http2() {
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(http2.streams)
            .initial_stream_window_size(http2.stream_window)
            .initial_connection_window_size(http2.connection_window)
            .max_header_list_size(MAX_HEAD_BYTES)
            .max_pending_accept_reset_streams(MAX_RESETS)
            .max_local_error_reset_streams(MAX_RESETS)
            .keep_alive_interval(http2.keep_alive.0)
            .keep_alive_timeout(http2.keep_alive.1);
    }
    builder
}

/// What an error of a connection says of its client.
fn end_of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> End {
    match error.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_timeout() => End::Slow,
        Some(error) if error.is_parse_too_large() => End::TooLarge,
        Some(error) if error.is_parse() => End::Malformed,
        // Its client went away.
        _ => End::Fine,
    }
}
