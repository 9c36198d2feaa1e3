//! One POST over a connection of its own, plain or with TLS.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::Uri;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::secret::{self, SecretError};
use crate::alerts::WebhookOptions;
use telltale_server::tls::{self, TrustError};

/// Bytes of an answer's head.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Headers of an answer.
const MAX_HEADERS: usize = 64;

const AGENT: &str = concat!("telltale/", env!("CARGO_PKG_VERSION"));

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("{0}")]
    Url(String),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("cannot connect to {server}")]
    Connect {
        server: String,
        #[source]
        source: io::Error,
    },
    #[error("{server} could not be proved to be itself")]
    Tls {
        server: String,
        #[source]
        source: io::Error,
    },
    #[error("{server} did not answer in HTTP")]
    Http {
        server: String,
        #[source]
        source: hyper::Error,
    },
    #[error("{server} answered {status}{}", remedy(*status))]
    Status { server: String, status: StatusCode },
    #[error("it took more than {0:?}")]
    TimedOut(Duration),
}

fn remedy(status: StatusCode) -> &'static str {
    if status.is_redirection() { "; redirects are not followed: give the final URL" } else { "" }
}

// === impl PostError ===

impl PostError {
    /// Whether it may be taken later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, .. } => {
                let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
                status.is_server_error() || later.contains(status)
            }
            _ => true,
        }
    }
}

/// Whether something can be posted there.
///
/// # Errors
/// Why not.
pub(in crate::alerts) fn check(url: &Uri) -> Result<(), String> {
    let authority = url.authority().ok_or("it has no host")?;
    match url.scheme_str() {
        Some("http" | "https") if authority.as_str().contains('@') => {
            Err(String::from("a password does not belong into it; use authorization_file"))
        }
        Some("http" | "https") => Ok(()),
        _ => Err(String::from("it must begin with http:// or https://")),
    }
}

/// Posts `body`. The caller limits the time.
pub(super) async fn post(
    url: &str,
    options: &WebhookOptions,
    body: Vec<u8>,
) -> Result<(), PostError> {
    let url: Uri = url.parse().map_err(|_| PostError::Url(String::from("this is no URL")))?;
    check(&url).map_err(PostError::Url)?;
    let secured = url.scheme_str() == Some("https");
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_u16().unwrap_or(if secured { 443 } else { 80 });
    let server = format!("{host}:{port}");
    let request = request(&url, options, body)?;
    // Made for each attempt: notices are rare, certificates are large.
    let tls = if secured { Some(tls::client(options.ca_file.as_deref())?) } else { None };
    let connected = TcpStream::connect((host.as_str(), port)).await;
    let socket =
        connected.map_err(|source| PostError::Connect { server: server.clone(), source })?;
    let Some(tls) = tls else { return exchange(socket, request, server).await };
    let name = ServerName::try_from(host).map_err(|error| PostError::Url(error.to_string()))?;
    let secured = TlsConnector::from(tls).connect(name, socket).await;
    let secured = secured.map_err(|source| PostError::Tls { server: server.clone(), source })?;
    exchange(secured, request, server).await
}

fn request(url: &Uri, options: &WebhookOptions, body: Vec<u8>) -> Result<Request<Body>, PostError> {
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::post(path)
        .header(HOST, authority)
        .header(USER_AGENT, AGENT)
        .header(CONTENT_TYPE, "application/json");
    if let Some(path) = &options.authorization_file {
        request = request.header(AUTHORIZATION, secret::read(path)?);
    }
    request.body(Body::from(body)).map_err(|error| PostError::Url(error.to_string()))
}

/// Sends the request; of the answer only the status is checked.
async fn exchange(
    socket: impl AsyncRead + AsyncWrite + Unpin + 'static,
    request: Request<Body>,
    server: String,
) -> Result<(), PostError> {
    let begun = hyper::client::conn::http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(socket))
        .await;
    let failed = |source| PostError::Http { server: server.clone(), source };
    let (mut sender, connection) = begun.map_err(failed)?;
    let mut connection = std::pin::pin!(connection);
    let mut answer = std::pin::pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // The end of the connection may bring the answer, or the reason why there is none.
        _ = &mut connection => answer.await,
    };
    let status = answer.map_err(failed)?.status();
    if status.is_success() { Ok(()) } else { Err(PostError::Status { server, status }) }
}
