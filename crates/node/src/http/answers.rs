//! The answers to single requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::atomic::Ordering;
use telltale_schema::metric::{DEFINITIONS, MetricKind, Scope};
use telltale_wire::exposition::Format;
use tokio::sync::mpsc;

use super::body_parts::BodyParts;
use super::{App, filter};
use crate::access::Visibility;
use crate::samples::Writing;
use crate::service::Published;
use telltale_server::problem::Problem;

/// The size of a part of a long text. Smaller than what the C library gets from the system and gives
/// back to it one by one, as each block that it gives back makes it keep more.
const PART_BYTES: usize = 64 << 10;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// `/metrics`.
pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    Extension(visibility): Extension<Visibility>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.counts.scrapes.fetch_add(1, Ordering::Relaxed);
    let accepted = headers.get(ACCEPT).map(HeaderValue::to_str).transpose();
    let format = accepted.ok().and_then(Format::asked).ok_or_else(|| {
        let detail =
            "metrics are text/plain;version=0.0.4 or application/openmetrics-text;version=1.0.0";
        Problem::new(StatusCode::NOT_ACCEPTABLE, detail)
    })?;
    let published = app.view.latest();
    let body = match app.cache.metrics(&app, &published, visibility, format) {
        Some(text) => Body::from(text),
        None => metrics_in_parts(app, published, visibility, format),
    };
    let kind = HeaderValue::from_static(format.content_type());
    Ok(([(CONTENT_TYPE, kind)], body).into_response())
}

/// Metrics that are too long to be kept: made as fast as the connection takes them.
fn metrics_in_parts(
    app: Arc<App>,
    published: Arc<Published>,
    visibility: Visibility,
    format: Format,
) -> Body {
    let (to, parts) = mpsc::channel(1);
    let reported = async move {
        let (mut took, mut length) = (Duration::ZERO, 0);
        let mut began = Instant::now();
        let visible = app.policy.visible(&published.snapshot, visibility);
        let samples = app.cache.sample(&app, &published, &visible, visibility);
        let mut writing = Writing::new(&samples, format);
        loop {
            let mut part = String::with_capacity(PART_BYTES + PART_BYTES / 16);
            let more = writing.next_part(PART_BYTES, &mut part);
            took += began.elapsed();
            length += part.len();
            if to.send(Bytes::from(part)).await.is_err() {
                return;
            }
            if !more {
                break;
            }
            began = Instant::now();
        }
        app.counts.made_text(took, samples.dropped());
        app.cache.was_long(visibility, length);
    };
    Body::new(BodyParts::by(parts, reported))
}

/// `/-/healthy`: the server answers.
pub(super) async fn healthy() -> &'static str {
    "healthy\n"
}

/// `/-/ready`: what it answers can be believed.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    match app.view.is_ready() {
        Ok(()) => Ok("ready\n"),
        Err(reason) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason.to_string())),
    }
}

/// `/api/v1/snapshot`.
pub(super) async fn snapshot(
    State(app): State<Arc<App>>,
    Extension(visibility): Extension<Visibility>,
    Query(pairs): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = filter::read(&pairs)?;
    let published = match visibility.gets_usage(false, query.as_ref()) {
        true => app.view.with_usage().await,
        false => app.view.latest(),
    };
    let started = published.service.started_at.0;
    let reader = match visibility {
        Visibility::Everything => String::from("all"),
        Visibility::Own { uid } => format!("u{uid}"),
        Visibility::DevicesOnly => String::from("devices"),
    };
    // A tag is of one address, and the filter is part of that.
    let tag = format!("\"{started:x}-{}-{reader}\"", published.sequence);
    let made =
        query.map(|query| filter::json(&app, &published, visibility, Some(&query))).transpose();
    let made = made.map_err(filter::too_slow)?;
    let body = || made.unwrap_or_else(|| app.cache.json(&app, &published, visibility)).into();
    Ok(tagged(&headers, &tag, JSON, body))
}

/// A metric's definition as JSON.
#[derive(Serialize)]
struct Definition {
    name: &'static str,
    kind: MetricKind,
    unit: Option<&'static str>,
    scope: Scope,
    labels: &'static [&'static str],
    help: &'static str,
    since: &'static str,
}

/// `/api/v1/metrics`: what each metric means.
pub(super) async fn definitions(headers: HeaderMap) -> Response {
    tagged(&headers, concat!("\"", env!("CARGO_PKG_VERSION"), "\""), JSON, || {
        let all = DEFINITIONS.iter().map(|definition| Definition {
            name: definition.name,
            kind: definition.kind,
            unit: definition.unit.suffix(),
            scope: definition.scope,
            labels: definition.labels,
            help: definition.help,
            since: definition.since,
        });
        let all: Vec<Definition> = all.collect();
        Body::from(serde_json::to_vec(&all).expect("definitions are JSON"))
    })
}

/// A text of this media type and tag, unless the reader has it already.
pub(super) fn tagged(
    headers: &HeaderMap,
    tag: &str,
    kind: HeaderValue,
    body: impl FnOnce() -> Body,
) -> Response {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(str::trim);
    let has_it = known.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag);
    // Weak, as the same text may be sent with gzip and without.
    let tag = HeaderValue::try_from(format!("W/{tag}"));
    let tag = tag.expect("a tag is made of printable letters");
    if has_it {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(CONTENT_TYPE, kind), (ETAG, tag)], body()).into_response()
}

pub(super) async fn not_found(uri: Uri) -> Problem {
    let detail = "there are the page at /, /metrics, /-/healthy, /-/ready and \
                  /api/v1/{snapshot,stream,history,metrics}";
    let detail = match uri.path() {
        "/metrics/" => "the path is /metrics",
        _ => detail,
    };
    Problem::new(StatusCode::NOT_FOUND, detail)
}

pub(super) async fn method_not_allowed(method: Method) -> Problem {
    let detail = match method {
        Method::OPTIONS => "other sites may not use this service; only GET and HEAD are answered",
        _ => "only GET and HEAD are answered",
    };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}
