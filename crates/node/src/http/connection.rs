//! Connections: accepted, limited, and ended when their client does nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::counts::Refused;
use super::seats::{Connections, Seat};
use crate::access::{AccessPolicy, Caller};
use telltale_server::log;
use telltale_server::stalling::Noting;

/// Bytes of a request's head, of which a part of an answer may use the room.
const MOST_HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
const MOST_HEADERS: usize = 64;
/// How long to wait when the system gives no descriptor for another connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A socket that listens.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Accepts connections until it is time to stop, and waits until they have ended.
pub(super) async fn accept(
    socket: Socket,
    router: Router,
    connections: Arc<Connections>,
    mut stop: watch::Receiver<bool>,
) {
    let mut running = JoinSet::new();
    let mut stopping = stop.clone();
    loop {
        let taken = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            taken = take(&socket) => taken,
            Some(_) = running.join_next() => continue,
        };
        let stream = match taken {
            Ok(stream) => stream,
            Err(error) => {
                log::debug(|| format!("an HTTP connection could not be accepted: {error}"));
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
                continue;
            }
        };
        let Some(caller) = stream.caller(connections.policy()).await else { continue };
        let Some(seat) = connections.seat(&caller).await else { continue };
        let (router, stop) = (router.clone(), stop.clone());
        running.spawn(async move {
            match stream {
                Stream::Tcp(stream) => drive(stream, caller, router, seat, stop).await,
                Stream::Unix(stream) => drive(stream, caller, router, seat, stop).await,
            }
        });
    }
    // Whoever stops the service bounds how long this may take.
    let _ = stop.wait_for(|stop| *stop).await;
    while running.join_next().await.is_some() {}
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

/// A connection. Whoever stops waiting for it has taken none.
async fn take(socket: &Socket) -> std::io::Result<Stream> {
    match socket {
        Socket::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            // Answers are written at once; waiting for more would only delay them.
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        }
        Socket::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
    }
}

impl Stream {
    /// Who has connected, asked once and while the client is most likely there; none where a socket file's
    /// client is gone.
    async fn caller(&self, policy: &AccessPolicy) -> Option<Caller> {
        match self {
            Self::Tcp(stream) => Some(policy.tcp_caller(stream).await),
            Self::Unix(stream) => Caller::of_socket(stream).ok(),
        }
    }
}

/// Serves one connection until it ends or must.
async fn drive<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    caller: Caller,
    router: Router,
    seat: Seat,
    mut stop: watch::Receiver<bool>,
) {
    let app = TowerToHyperService::new(router);
    let place = Arc::clone(seat.place());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        request.extensions_mut().insert(Arc::clone(&place));
        app.call(request)
    });
    let stream = TokioIo::new(Noting::new(stream, Arc::clone(&seat.place().movement)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(seat.patience().head)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        // Who sends no more (`nc -N`) still waits for the answer.
        .half_close(true)
        .serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    let (counts, place, patience) = (seat.counts(), seat.place(), seat.patience());
    let mut is_stopping = false;
    loop {
        tokio::select! {
            outcome = connection.as_mut() => {
                match outcome {
                    Err(error) if error.is_timeout() => counts.refuse(Refused::Slow),
                    Err(error) if error.is_parse() => counts.refuse(Refused::Malformed),
                    // Its client went away, or all is well.
                    _ => {}
                }
                return;
            }
            () = place.movement.stalls(patience.stall) => return counts.refuse(Refused::Slow),
            () = place.make_room.notified() => return counts.refuse(Refused::MadeRoom),
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
