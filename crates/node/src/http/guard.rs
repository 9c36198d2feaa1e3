//! What every request passes before it is answered, and every answer before it goes.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    REFERRER_POLICY, TRANSFER_ENCODING, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::slots::ConnectionKind;
use crate::access::{Caller, Visibility, visibility};
use telltale_server::problem::Problem;

/// What answers have unless they say otherwise: no browser is to guess a type, load anything, show
/// the answer in another site's frame or hand it to another site.
const HEADERS: [(HeaderName, &str); 7] = [
    (CACHE_CONTROL, "no-cache, private"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (REFERRER_POLICY, "no-referrer"),
    (VARY, "accept, authorization"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// Lets a request pass whose caller, host and form are in order, with what its caller may see.
pub(super) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match check(&app, &request) {
        Ok(visibility) => {
            request.extensions_mut().insert(visibility);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    app.counts.answered(response.status().as_u16());
    response
}

fn check(app: &App, request: &Request) -> Result<Visibility, Problem> {
    let caller = request.extensions().get::<Caller>().cloned().unwrap_or(Caller::Anonymous);
    // A browser reaches no Unix socket, and clients make up hosts for them.
    if !matches!(caller, Caller::Local { .. }) {
        let remedy = "use its address, or add the name to http.hosts";
        app.hosts.check(request, |_| false, remedy)?;
    }
    let caller = known(caller, request);
    if has_body(request.headers()) {
        let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "no request here has a body");
        // What would follow is not read.
        return Err(problem.with(CONNECTION, "close"));
    }
    let header = request.headers().get(AUTHORIZATION);
    let Ok(header) = header.map(HeaderValue::to_str).transpose() else {
        return Err(unauthorized());
    };
    let caller = app.policy.authorized(caller, header).ok_or_else(unauthorized)?;
    let visibility = visibility(&app.policy, &caller);
    let place = request.extensions().get::<Arc<ConnectionKind>>();
    if place.is_some_and(|place| !place.shows(visibility)) {
        let detail = "all connections are taken; send the token, or come back later";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        return Err(problem.with(CONNECTION, "close"));
    }
    Ok(visibility)
}

/// The client of this request: unknown where it may be another's than the process's that sent it.
fn known(caller: Caller, request: &Request) -> Caller {
    let is_loopback = matches!(caller, Caller::Loopback { .. });
    if is_loopback && !is_direct(request) {
        return Caller::Anonymous;
    }
    caller.asking_with(request.headers().keys().map(HeaderName::as_str))
}

/// Whether a request looks as if the process that sent it asks for itself: to the loopback by name, also
/// in a target that is a whole address, as clients of a proxy send it; and from no page of another site
/// that its browser shows. HTTP/1.0 is what proxies speak.
fn is_direct(request: &Request) -> bool {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let host = header("host").and_then(|host| Authority::try_from(host).ok());
    let is_loopback = host.as_ref().is_some_and(names_loopback)
        && request.uri().authority().is_none_or(names_loopback);
    let is_same_site = header("sec-fetch-site")
        .is_none_or(|site| [b"none".as_slice(), b"same-origin"].contains(&site));
    let is_own_page = header("origin").is_none_or(|origin| {
        let origin = std::str::from_utf8(origin).ok();
        let origin = origin.and_then(|origin| origin.split_once("://"));
        origin.zip(host.as_ref()).is_some_and(|((_, of), host)| of == host.as_str())
    });
    request.version() >= Version::HTTP_11 && is_loopback && is_same_site && is_own_page
}

fn names_loopback(authority: &Authority) -> bool {
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_address = |ip: IpAddr| ip.to_canonical().is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_address)
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

fn unauthorized() -> Problem {
    let detail = "the token is not the service's; without a token, devices are shown";
    Problem::new(StatusCode::UNAUTHORIZED, detail).with(WWW_AUTHENTICATE, "Bearer")
}
