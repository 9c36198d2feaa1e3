//! Refusals, as RFC 9457 has them: JSON that says what is wrong and what to do.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

/// Why a request is not answered as it was asked.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    members: Map<String, Value>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// One with this status. `detail` is for a person: the cause, then the remedy.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or_default();
        let members = Map::from_iter([
            (String::from("title"), Value::from(title)),
            (String::from("status"), Value::from(status.as_u16())),
            (String::from("detail"), Value::from(detail.into())),
        ]);
        Self { status, members, header: None }
    }

    /// The same with one more member, for programs.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The same with the detail as `error` too, where clients of earlier versions read it.
    #[must_use]
    pub fn with_error(self) -> Self {
        let detail = self.members["detail"].clone();
        self.member("error", detail)
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, members, header } = self;
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        let mut response = (status, headers, Value::Object(members).to_string()).into_response();
        response.headers_mut().extend(header);
        response
    }
}
