//! Connections: accepted, limited, and ended when their client does nothing.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::counts::{Counts, Refused};
use super::stalling::{Movement, Noting};
use crate::access::Caller;
use crate::log;

/// How long a client may take for the head of a request, and how long a connection may be without
/// one. Longer than Prometheus waits between scrapes by default.
const HEAD_PATIENCE: Duration = Duration::from_secs(20);
/// How long a client may take nothing of its answer.
const STALL_PATIENCE: Duration = Duration::from_secs(15);
/// Bytes of a request's head, of which a part of an answer may use the room.
const MOST_HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
const MOST_HEADERS: usize = 64;
/// How long after its last byte a connection counts as one that does nothing.
const QUIET: Duration = Duration::from_secs(1);
/// How long to wait when the system gives no descriptor for another connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A socket that listens.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    counts: Arc<Counts>,
    open: Mutex<Vec<Arc<Open>>>,
}

/// One of them.
#[derive(Debug)]
struct Open {
    movement: Arc<Movement>,
    make_room: Notify,
}

/// A connection's place among all; dropping it gives it back.
#[derive(Debug)]
struct Seat {
    connections: Arc<Connections>,
    open: Arc<Open>,
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
        let (stream, caller) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                log::debug(|| format!("an HTTP connection could not be accepted: {error}"));
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
                continue;
            }
        };
        let Some(seat) = connections.seat() else { continue };
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

async fn take(socket: &Socket) -> std::io::Result<(Stream, Caller)> {
    match socket {
        Socket::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            // Answers are written at once; waiting for more would only delay them.
            stream.set_nodelay(true)?;
            Ok((Stream::Tcp(stream), Caller::Anonymous))
        }
        Socket::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let caller = Caller::of_socket(&stream)?;
            Ok((Stream::Unix(stream), caller))
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
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        app.call(request)
    });
    let stream = TokioIo::new(Noting::new(stream, Arc::clone(&seat.open.movement)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        .serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    let counts = &seat.connections.counts;
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
            () = seat.open.movement.stalls(STALL_PATIENCE) => return counts.refuse(Refused::Slow),
            () = seat.open.make_room.notified() => return counts.refuse(Refused::MadeRoom),
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

// === impl Connections ===

impl Connections {
    pub(super) fn new(most: usize, counts: Arc<Counts>) -> Self {
        Self { most, counts, open: Mutex::default() }
    }

    /// A place for one more. Where there is none, the connection that has been quiet for longest
    /// has to go; where none is quiet, the new one.
    fn seat(self: &Arc<Self>) -> Option<Seat> {
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= self.most {
            let now = Instant::now();
            let quiet = all.iter().enumerate().map(|(place, open)| (open.movement.last(), place));
            let quiet = quiet.min().filter(|(last, _)| now.duration_since(*last) >= QUIET);
            let Some((_, place)) = quiet else {
                self.counts.refuse(Refused::TooMany);
                return None;
            };
            all.swap_remove(place).make_room.notify_one();
        }
        let open = Arc::new(Open { movement: Arc::new(Movement::new()), make_room: Notify::new() });
        all.push(Arc::clone(&open));
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
        Some(Seat { connections: Arc::clone(self), open })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut all = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|open| !Arc::ptr_eq(open, &self.open));
        self.connections.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
