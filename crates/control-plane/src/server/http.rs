//! HTTP/1.1 beside gRPC: metrics, probes, and the page. Clients that need a token for gRPC need it here,
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
use telltale_server::problem::Problem;
use telltale_wire::exposition::Format;
use tokio::sync::watch;

use super::access::Access;
use super::api;
use super::counters::{Counters, RefusalReason};
use super::mailbox::Mailbox;
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
    pub(super) mailbox: Mailbox,
    pub(super) access: Arc<Access>,
    pub(super) counters: Arc<Counters>,
    pub(super) hosts: Arc<Hosts>,
    pub(super) stands: watch::Receiver<Standing>,
}

/// Everything that is answered.
pub(super) fn router(web: Web) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(serve_metrics))
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
        .route("/readyz", get(serve_ready))
        .merge(guarded)
        .merge(page)
        .with_state(web)
}

/// Lets a request on that names this machine and shows what it must.
async fn admit(State(web): State<Web>, request: Request, next: Next) -> Response {
    match may_ask(&web, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.with_error().into_response(),
    }
}

/// Lets a request on that names this machine.
async fn admit_by_name(State(web): State<Web>, request: Request, next: Next) -> Response {
    match names_us(&web, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.with_error().into_response(),
    }
}

fn names_us(web: &Web, request: &Request) -> Result<(), Problem> {
    web.hosts.check(request, |_| false, "use its address or its host name")
}

fn may_ask(web: &Web, request: &Request) -> Result<(), Problem> {
    names_us(web, request)?;
    if is_stranger(request.extensions()) {
        web.counters.refuse(RefusalReason::Stranger);
        return Err(Problem::new(StatusCode::FORBIDDEN, STRANGER));
    }
    let token = request.headers().get(header::AUTHORIZATION);
    if !web.access.admits(token.and_then(|value| value.to_str().ok())) {
        web.counters.refuse(RefusalReason::Token);
        let detail = "send this coordinator's token: Authorization: Bearer TOKEN";
        let problem = Problem::new(StatusCode::UNAUTHORIZED, detail);
        return Err(problem.with(header::WWW_AUTHENTICATE, "Bearer"));
    }
    Ok(())
}

async fn serve_ready(State(web): State<Web>) -> Response {
    let standing = web.stands.borrow().clone();
    let status = if standing.leads { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, format!("{standing}\n")).into_response()
}

async fn serve_metrics(State(web): State<Web>, headers: HeaderMap) -> Response {
    let Some(gauges) = web.mailbox.gauges().await else {
        let detail = "the coordinator is ending";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_error().into_response();
    };
    let wanted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let Some(format) = Format::asked(wanted) else {
        let detail =
            "metrics are text/plain;version=0.0.4 or application/openmetrics-text;version=1.0.0";
        return Problem::new(StatusCode::NOT_ACCEPTABLE, detail).with_error().into_response();
    };
    let text = metrics::text(format, &web.counters, &gauges);
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}
