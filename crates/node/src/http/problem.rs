//! Refusals, as RFC 9457 has them: JSON that says what is wrong and what to do.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why a request is not answered as it was asked.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    column: Option<usize>,
    header: Option<(HeaderName, HeaderValue)>,
}

#[derive(Serialize)]
struct Body<'a> {
    title: &'a str,
    status: u16,
    detail: &'a str,
    /// Where a filter stops making sense, in characters from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), column: None, header: None }
    }

    /// The same about one column of a filter, counted from 1.
    pub(super) fn at_column(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    /// The same with one more header.
    pub(super) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, detail, column, header } = self;
        let title = status.canonical_reason().unwrap_or_default();
        let body = Body { title, status: status.as_u16(), detail: &detail, column };
        let body = serde_json::to_string(&body).expect("texts and a number are JSON");
        let kind = HeaderValue::from_static("application/problem+json");
        let keep = HeaderValue::from_static("no-store");
        let mut response =
            (status, [(CONTENT_TYPE, kind), (CACHE_CONTROL, keep)], body).into_response();
        response.headers_mut().extend(header);
        response
    }
}
