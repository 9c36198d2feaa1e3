//! HTTP/1.1 beside gRPC: metrics, probes, and the page. Whoever needs a token for gRPC needs it here,
//! but for the probes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use telltale_server::hosts::Hosts;
use telltale_server::stalling::{Movement, Noting};
use telltale_wire::exposition::Format;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tonic::transport::server::Connected;

use super::access::Access;
use super::api;
use super::counters::{Counters, Refused};
use super::desk::Desk;
use super::incoming::Connection;
use super::metrics;
use super::page;
use super::peer::{Peer, STRANGER};
use super::standing::Standing;

/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
const MAX_HEADERS: usize = 64;
/// How long a request's head may take to come, and a caller to take what is there for it.
const PATIENCE: Duration = Duration::from_secs(15);

/// What all requests share.
#[derive(Debug, Clone)]
pub(super) struct Web {
    pub(super) desk: Desk,
    pub(super) access: Arc<Access>,
    pub(super) counters: Arc<Counters>,
    pub(super) hosts: Arc<Hosts>,
    pub(super) stands: watch::Receiver<Standing>,
}

/// Everything that is answered.
fn router(web: Web) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(tell_metrics))
        .route("/api/v1/status", get(api::status))
        .route("/api/v1/steps", get(api::steps))
        .route("/api/v1/nodes", get(api::nodes))
        .route("/api/v1/incidents", get(api::incidents))
        .route("/api/v1/incidents/{id}", get(api::incident))
        .layer(middleware::from_fn_with_state(web.clone(), admit));
    // The page's own files say nothing about the job.
    let page = Router::new()
        .route("/", get(page::index))
        .route("/assets/{name}", get(page::asset))
        .layer(middleware::from_fn_with_state(web.clone(), admit_by_name));
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(tell_ready))
        .merge(guarded)
        .merge(page)
        .with_state(web)
}

/// Serves connections until it is time to stop.
pub(super) async fn serve(
    mut connections: mpsc::Receiver<io::Result<Connection>>,
    web: Web,
    mut stop: watch::Receiver<bool>,
) {
    let counters = Arc::clone(&web.counters);
    let router = router(web);
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            taken = connections.recv() => match taken {
                Some(Ok(connection)) => {
                    running.spawn(drive(connection, router.clone(), Arc::clone(&counters)));
                }
                Some(Err(_)) => {}
                None => return,
            },
            Some(_) = running.join_next() => {}
        }
    }
}

async fn drive(connection: Connection, router: Router, counters: Arc<Counters>) {
    let router = router.layer(Extension(connection.connect_info()));
    let movement = Arc::new(Movement::default());
    let stream = TokioIo::new(Noting::new(connection, Arc::clone(&movement)));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        // Who sends no more (`nc -N`) still waits for the answer.
        .half_close(true)
        .serve_connection(stream, TowerToHyperService::new(router));
    tokio::select! {
        served = serving => match served {
            Err(error) if error.is_parse_too_large() => counters.refuse(Refused::TooLarge),
            Err(error) if error.is_parse() => counters.refuse(Refused::Garbage),
            // How it ends else is the caller's business.
            Ok(()) | Err(_) => {}
        },
        () = movement.stalls(PATIENCE) => {}
    }
}

/// Lets a request on that names this machine and shows what it must.
async fn admit(
    State(web): State<Web>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match refusal(&web, &peer, request.headers()) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
}

/// Lets a request on that names this machine.
async fn admit_by_name(State(web): State<Web>, request: Request, next: Next) -> Response {
    match misdirected(&web, request.headers()) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
}

fn misdirected(web: &Web, headers: &HeaderMap) -> Option<Response> {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    if host.is_some_and(|host| web.hosts.has(host)) {
        return None;
    }
    let why = "this name is not one of this machine's; use its address or its host name\n";
    Some((StatusCode::MISDIRECTED_REQUEST, why).into_response())
}

fn refusal(web: &Web, peer: &Peer, headers: &HeaderMap) -> Option<Response> {
    if let Some(refusal) = misdirected(web, headers) {
        return Some(refusal);
    }
    if peer.is_stranger {
        web.counters.refuse(Refused::Stranger);
        return Some((StatusCode::FORBIDDEN, format!("{STRANGER}\n")).into_response());
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if !web.access.admits(text(header::AUTHORIZATION)) {
        web.counters.refuse(Refused::Token);
        let why = "send this coordinator's token: Authorization: Bearer TOKEN\n";
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
        return Some((StatusCode::UNAUTHORIZED, challenge, why).into_response());
    }
    None
}

async fn tell_ready(State(web): State<Web>) -> Response {
    let standing = web.stands.borrow().clone();
    let status = if standing.leads { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, format!("{standing}\n")).into_response()
}

async fn tell_metrics(State(web): State<Web>, headers: HeaderMap) -> Response {
    let Some(gauges) = web.desk.gauges().await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the coordinator is ending\n").into_response();
    };
    let wanted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let open = wanted.is_some_and(|wanted| wanted.contains("application/openmetrics-text"));
    let format = if open { Format::OpenMetrics } else { Format::Text };
    let text = metrics::text(format, &web.counters, &gauges);
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}
