//! What can be configured of the export.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::samples::SampleOptions;
use telltale_server::tls::TrustError;

/// How a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// gRPC, by default on port 4317.
    #[default]
    Grpc,
    /// Protobuf in the body of an HTTP request, by default on port 4318.
    Http,
}

/// The table `[otlp]` of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OtlpOptions {
    /// The receiver, such as `http://127.0.0.1:4317`, or for HTTP with the whole path
    /// `http://127.0.0.1:4318/v1/metrics`. Nothing is exported without one.
    #[serde(deserialize_with = "endpoint")]
    pub endpoint: Option<String>,
    /// gRPC or HTTP.
    pub protocol: Protocol,
    /// The time from one export to the next, in seconds, at least 1.
    pub interval_seconds: f64,
    /// How long one message may take, in seconds; no longer than the interval.
    pub timeout_seconds: f64,
    /// Headers that each message has, as `name=value`.
    pub headers: Vec<String>,
    /// Attributes of the resource, as `name=value`.
    pub attributes: Vec<String>,
    /// A PEM file with the authority of the receiver's certificate, for `https`; without it the
    /// system's authorities count.
    pub authority: Option<PathBuf>,
    /// How many series there may be.
    pub series: SampleOptions,
}

/// Why the options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// There is no receiver, or its address is none.
    #[error("{0:?} is no receiver for OTLP; write http://HOST:PORT")]
    Endpoint(String),
    /// There is nothing to check the receiver's certificate with.
    #[error("https needs certificates; otlp.authority names a PEM file with the receiver's")]
    Authority(#[source] TrustError),
    /// The authority is not understood.
    #[error("the authority of the OTLP receiver cannot be used")]
    Certificate(#[source] tonic::transport::Error),
    /// A header is none.
    #[error("{0:?} is no header for OTLP; write name=value")]
    Header(String),
    /// There is no way to check them.
    #[error("cannot look at the options for OTLP")]
    Runtime(#[source] std::io::Error),
    /// The time between two exports makes no sense.
    #[error("otlp.interval_seconds is {0}; it must be from 1 to 3600")]
    Interval(f64),
    /// A message has no time, or time without an end.
    #[error("otlp.timeout_seconds is {0}; it must be a number above 0")]
    Timeout(f64),
}

impl Default for OtlpOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            protocol: Protocol::default(),
            interval_seconds: 15.0,
            timeout_seconds: 10.0,
            headers: Vec::new(),
            attributes: Vec::new(),
            authority: None,
            series: SampleOptions::default(),
        }
    }
}

impl OtlpOptions {
    /// How long one message may take.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_seconds.min(self.interval_seconds))
    }

    pub(super) fn check(&self) -> Result<&str, OptionsError> {
        let (interval, timeout) = (self.interval_seconds, self.timeout_seconds);
        if !(1.0..=3600.0).contains(&interval) {
            return Err(OptionsError::Interval(interval));
        }
        if !(timeout > 0.0 && timeout.is_finite()) {
            return Err(OptionsError::Timeout(timeout));
        }
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        if is_receiver(endpoint) {
            Ok(endpoint)
        } else {
            Err(OptionsError::Endpoint(endpoint.to_owned()))
        }
    }
}

/// Reads a receiver's address, so that one that is none is reported with its place in the file.
fn endpoint<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    if is_receiver(&text) {
        return Ok(Some(text));
    }
    Err(D::Error::custom(OptionsError::Endpoint(text)))
}

fn is_receiver(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme))
        && text.parse::<Uri>().is_ok()
}
