//! `/api/v1/stream`: snapshots as server-sent events
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//!
//! With `usage=true` the service reads what processes and the host use as long as the stream is open.
//! A reader that is slow gets the newest snapshot and learns how many it missed: nothing waits
//! for it in a queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::body_parts::BodyParts;
use super::{App, filter};
use crate::access::Visibility;
use crate::service::UsageWatch;
use telltale_server::problem::Problem;

/// How long a reader shall wait before it connects again.
const RETRY: &str = "retry: 2000\n\n";
/// A stream in which nothing happens says so, so that neither end takes the other for gone.
const SILENCE: Duration = Duration::from_secs(10);
/// What is said then: a comment.
const STILL_HERE: &str = ": still here\n\n";

/// Begins a stream.
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    Extension(visibility): Extension<Visibility>,
    Query(pairs): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (usage, pairs): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(name, _)| name == "usage");
    let query = filter::read(&pairs)?;
    let usage = match usage.as_slice() {
        [] => false,
        [(_, value)] if value == "true" => true,
        _ => {
            let detail = "usage is `true`, once, or left out";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
    };
    let usage = visibility.gets_usage(usage, query.as_ref());
    let taken = Arc::clone(&app.streams).try_acquire_owned().or_else(|full| match visibility {
        Visibility::Everything => Arc::clone(&app.kept_streams).try_acquire_owned(),
        Visibility::Own { .. } | Visibility::DevicesOnly => Err(full),
    });
    let Ok(permit) = taken else {
        let detail = "all streams are taken; try again, or read /api/v1/snapshot";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    // What a reader saw last. A number of another service's is of no use, and does no harm.
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<u64>().ok());
    let (sender, parts) = mpsc::channel(1);
    let held = (permit, usage.then(|| app.view.watch_usage()));
    let body = BodyParts::by(parts, tell(Arc::clone(&app), visibility, query, seen, sender, held));
    let kind = HeaderValue::from_static("text/event-stream");
    Ok(([(CONTENT_TYPE, kind)], Body::new(body)).into_response())
}

/// Tells of each snapshot, until the service stops or the reader has gone.
async fn tell(
    app: Arc<App>,
    visibility: Visibility,
    query: Option<telltale_query::Query>,
    mut seen: Option<u64>,
    to: mpsc::Sender<Bytes>,
    _held: (OwnedSemaphorePermit, Option<UsageWatch>),
) {
    let (mut latest, mut stop) = (app.view.subscribe(), app.stop.clone());
    let mut waiting: VecDeque<Bytes> = VecDeque::from([Bytes::from_static(RETRY.as_bytes())]);
    latest.mark_changed();
    loop {
        while let Some(part) = waiting.pop_front() {
            if to.send(part).await.is_err() {
                return;
            }
        }
        let changed = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            changed = tokio::time::timeout(SILENCE, latest.changed()) => changed,
        };
        match changed {
            Err(_) => waiting.push_back(Bytes::from_static(STILL_HERE.as_bytes())),
            Ok(Err(_)) => return,
            Ok(Ok(())) => {
                let published = Arc::clone(&latest.borrow_and_update());
                let Ok(json) = filter::json(&app, &published, visibility, query.as_ref()) else {
                    // Asking again tells why.
                    return;
                };
                let sequence = published.sequence;
                let missed = seen.map_or(0, |seen| sequence.saturating_sub(seen).saturating_sub(1));
                seen = Some(sequence);
                let lag = match missed {
                    0 => String::new(),
                    missed => format!("event: lag\ndata: {{\"missed\":{missed}}}\n\n"),
                };
                waiting.push_back(format!("{lag}id: {sequence}\nevent: snapshot\ndata: ").into());
                waiting.push_back(json);
                waiting.push_back(Bytes::from_static(b"\n\n"));
            }
        }
    }
}
