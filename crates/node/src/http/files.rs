//! `/` and `/assets/…`: the page and its files. They show nothing by themselves, so everybody may
//! have them; what they show they ask for like any other client.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::answers::tagged;
use crate::page::{self, Asset};
use telltale_server::problem::Problem;

/// `/`.
pub(super) async fn index(headers: HeaderMap) -> Response {
    file(page::index(), &headers)
}

/// `/assets/{name}`.
pub(super) async fn asset(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = page::asset(&name).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "the page has no such file; the page itself is at /")
    })?;
    Ok(file(found, &headers))
}

/// A browser that has this very file is answered so, and one that has another version's gets this one.
fn file(asset: Asset, headers: &HeaderMap) -> Response {
    let mut hasher = DefaultHasher::new();
    asset.bytes.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let kind = HeaderValue::from_static(asset.content_type);
    let mut response = tagged(headers, &tag, kind, || Body::from(asset.bytes));
    let policy = HeaderValue::from_static(page::CONTENT_SECURITY_POLICY);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}
