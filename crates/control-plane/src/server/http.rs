//! HTTP/1.1 beside gRPC: metrics, probes, and the page. Whoever needs a token for gRPC needs it here,
//! but for the probes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use telltale_server::door::{Limits, Protocol};
use telltale_server::hosts::Hosts;
use telltale_wire::exposition::Format;
use tokio::sync::watch;

use super::access::Access;
use super::api;
use super::counters::{Counters, Refused};
use super::desk::Desk;
use super::metrics;
use super::page;
use super::peer::{STRANGER, is_stranger};
use super::standing::Standing;

/// What a connection may take.
pub(super) const LIMITS: Limits = Limits {
    protocol: Protocol::Http1,
    head: Duration::from_secs(15),
    stall: Duration::from_secs(15),
};

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
pub(super) fn router(web: Web) -> Router {
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

/// Lets a request on that names this machine and shows what it must.
async fn admit(State(web): State<Web>, request: Request, next: Next) -> Response {
    match refusal(&web, &request) {
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

fn refusal(web: &Web, request: &Request) -> Option<Response> {
    let headers = request.headers();
    if let Some(refusal) = misdirected(web, headers) {
        return Some(refusal);
    }
    if is_stranger(request.extensions()) {
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
    let Some(format) = Format::asked(wanted) else {
        let why =
            "metrics are text/plain;version=0.0.4 or application/openmetrics-text;version=1.0.0\n";
        return (StatusCode::NOT_ACCEPTABLE, why).into_response();
    };
    let text = metrics::text(format, &web.counters, &gauges);
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}
