//! What each path does, and for whom.
//!
//! `/log_ccl` is for this machine only; orders are for who has the token, a certificate of the client
//! authority where there is no token, or is the agent's own user; metrics are for this machine, and for
//! others by the same rule.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ORIGIN, RETRY_AFTER,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use telltale_schema::text::with_causes;
use telltale_server::problem::Problem;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::keeper::Peer;
use super::{ANSWER_MARGIN, App, MAX_BODY_BYTES, NodeOrder, ORDER_TIMEOUT, Unmet, Wish, answers};
use telltale_cluster::intake::Sender;

/// What the original answers; its clients look at nothing else.
const PROCESSED: &[u8] = br#"{"message":"Processed"}"#;
/// How long a body may take to come, the wait for room included.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of the body of an order, which is not checked: the coordinator knows ranks better.
const MAX_ORDER_BYTES: usize = 64 << 10;

/// The paths.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/log_ccl", post(log_ccl))
        .route("/activate", post(activate))
        .route("/remove", post(remove))
        .route("/restart", post(restart))
        .route("/metrics", get(metrics))
        .fallback(async || problem(StatusCode::NOT_FOUND, "there is no such path"))
        .method_not_allowed_fallback(async || {
            problem(StatusCode::METHOD_NOT_ALLOWED, "this path has another method")
                .with(ALLOW, "GET, POST")
        })
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

/// Why a request is not answered as it was asked.
fn problem(status: StatusCode, detail: impl Into<String>) -> Problem {
    Problem::new(status, detail).with_error()
}

fn json_answer(status: StatusCode, text: Bytes) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Keeps browsers out: a site that one shows must neither post nor read here.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match check(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.with_error().with(CONNECTION, "close").into_response(),
    }
}

fn check(app: &App, request: &Request) -> Result<(), Problem> {
    // A browser reaches no Unix socket, and clients make up hosts for them.
    if matches!(peer(request), Peer::User(_)) {
        return Ok(());
    }
    if request.headers().contains_key(ORIGIN) {
        return Err(problem(StatusCode::FORBIDDEN, "no web page may ask here"));
    }
    // A browser is held off by the certificate's names as well: it speaks TLS with no other server
    // under them.
    let remedy = "use its address, its --node name, or a DNS name of its certificate";
    app.hosts.check(request, |host| app.tls.has_name(host), remedy)
}

fn peer(request: &Request) -> Peer {
    // Every connection puts its peer in; without one nothing is granted.
    request.extensions().get::<Peer>().copied().unwrap_or(Peer::Remote)
}

async fn log_ccl(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    if matches!(peer(&request), Peer::Remote | Peer::Known) {
        let detail = "only workers of this host may post here; post to 127.0.0.1";
        return Err(problem(StatusCode::FORBIDDEN, detail).with(CONNECTION, "close"));
    }
    let sender = sender(&app, &request);
    let (body, _room) = body(&app, sender, request.into_body()).await?;
    let taken = app
        .intake
        .post(&body, sender)
        .map_err(|refused| problem(StatusCode::BAD_REQUEST, with_causes(&refused)))?;
    if taken.dropped > 0 {
        let detail = "the queue is full; what was posted is dropped";
        return Err(problem(StatusCode::SERVICE_UNAVAILABLE, detail).with(RETRY_AFTER, "1"));
    }
    match taken.first_refused {
        None => Ok(json_answer(StatusCode::OK, Bytes::from_static(PROCESSED))),
        Some(reason) if taken.queued == 0 => {
            Err(problem(StatusCode::BAD_REQUEST, reason.to_string()))
        }
        Some(reason) => {
            let text = json!({
                "message": "Processed",
                "refused": taken.refused,
                "first_refused": reason.to_string(),
            });
            Ok(json_answer(StatusCode::OK, text.to_string().into()))
        }
    }
}

/// Whether who posts is one of the workers' users, as the kernel says, or has the token.
fn sender(app: &App, request: &Request) -> Sender {
    let is_of_worker = match peer(request) {
        Peer::User(user) => app.senders.has(user),
        Peer::Loopback(user) => user.is_some_and(|user| app.senders.has(user)),
        Peer::Remote | Peer::Known => false,
    };
    if is_of_worker || has_token(app, request.headers()) {
        return Sender::Verified;
    }
    if peer(request) == Peer::Loopback(None) {
        app.senders.log_unknown();
    }
    Sender::Unverified
}

/// The whole body, with its part of the room that all bodies of such senders have.
async fn body(
    app: &App,
    sender: Sender,
    body: Body,
) -> Result<(Bytes, OwnedSemaphorePermit), Problem> {
    let too_large = || {
        let detail = format!("a body may have {MAX_BODY_BYTES} bytes; send several");
        problem(StatusCode::PAYLOAD_TOO_LARGE, detail).with(CONNECTION, "close")
    };
    let announced = body.size_hint().upper().unwrap_or(u64::MAX);
    let most = u64::try_from(MAX_BODY_BYTES).expect("4 MiB fits in a u64");
    if body.size_hint().lower() > most {
        return Err(too_large());
    }
    let kib = u32::try_from(announced.min(most) >> 10).expect("4096 fits in a u32") + 1;
    let read = async {
        let bodies = match sender {
            Sender::Verified => &app.bodies,
            Sender::Unverified => &app.unverified_bodies,
        };
        let room = Arc::clone(bodies).acquire_many_owned(kib).await;
        let room = room.expect("nobody closes the semaphore of bodies");
        to_bytes(body, MAX_BODY_BYTES).await.map(|bytes| (bytes, room)).map_err(|_| too_large())
    };
    tokio::time::timeout(BODY_TIMEOUT, read).await.map_err(|_| {
        let detail = "the body did not come in time";
        problem(StatusCode::REQUEST_TIMEOUT, detail).with(CONNECTION, "close")
    })?
}

async fn activate(app: State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    order(&app, request, NodeOrder::Activate).await
}

async fn remove(app: State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    order(&app, request, NodeOrder::Remove).await
}

async fn restart(app: State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    order(&app, request, NodeOrder::Restart).await
}

/// Forwards an order to the coordinator, and reports what it says.
async fn order(app: &App, request: Request, order: NodeOrder) -> Result<Response, Problem> {
    if !may_order(app, &request) {
        let detail = "orders need the agent's token, a certificate of its client authority, or its \
                      Unix socket and its user";
        let problem = problem(StatusCode::UNAUTHORIZED, detail);
        return Err(problem.with(WWW_AUTHENTICATE, "Bearer"));
    }
    let body = to_bytes(request.into_body(), MAX_ORDER_BYTES);
    if !matches!(tokio::time::timeout(BODY_TIMEOUT, body).await, Ok(Ok(_))) {
        let detail = "the body of an order is short, or empty";
        return Err(problem(StatusCode::PAYLOAD_TOO_LARGE, detail).with(CONNECTION, "close"));
    }
    let unavailable = |detail| problem(StatusCode::SERVICE_UNAVAILABLE, detail);
    let (answer, answered) = oneshot::channel();
    let wish = Wish { order, answer };
    if app.wishes.try_send(wish).is_err() {
        return Err(unavailable("too many orders wait already"));
    }
    match tokio::time::timeout(ORDER_TIMEOUT + ANSWER_MARGIN, answered).await {
        Ok(Ok(Ok(()))) => {
            let text = json!({ "message": "Ordered" }).to_string();
            Ok(json_answer(StatusCode::OK, text.into()))
        }
        Ok(Ok(Err(Unmet::Refused(reason)))) => Err(problem(StatusCode::CONFLICT, reason)),
        Ok(Ok(Err(Unmet::Unreached(reason)))) => {
            Err(problem(StatusCode::SERVICE_UNAVAILABLE, reason))
        }
        Ok(Ok(Err(Unmet::PerhapsGiven))) => Err(unavailable(
            "the coordinator has the order and has not answered; see whether it is carried out",
        )),
        // The agent gives nothing that no client waits for.
        Ok(Ok(Err(Unmet::NotGiven)) | Err(_)) | Err(_) => {
            Err(unavailable("no coordinator has answered; the order was not given"))
        }
    }
}

fn may_order(app: &App, request: &Request) -> bool {
    match peer(request) {
        Peer::User(uid) if app.senders.is_own(uid) => true,
        Peer::Known if app.token.is_none() => true,
        _ => has_token(app, request.headers()),
    }
}

fn has_token(app: &App, headers: &HeaderMap) -> bool {
    let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
    app.token.as_ref().zip(header).is_some_and(|(token, header)| token.is_in(header))
}

async fn metrics(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let is_elsewhere = matches!(peer(&request), Peer::Remote | Peer::Known);
    if is_elsewhere && !may_order(&app, &request) {
        let problem = problem(StatusCode::UNAUTHORIZED, "metrics need the agent's token here");
        return Err(problem.with(WWW_AUTHENTICATE, "Bearer"));
    }
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let Some((kind, text)) = answers::metrics(&app.intake.view(), accept) else {
        let detail = "metrics are application/json, text/plain or application/openmetrics-text";
        return Err(problem(StatusCode::NOT_ACCEPTABLE, detail));
    };
    let mut response = json_answer(StatusCode::OK, text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
