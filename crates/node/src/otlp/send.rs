//! One message to the receiver: by gRPC, or as the body of an HTTP request.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, header};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::Code;
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use super::{OptionsError, OtlpOptions, Protocol, wishes};
use telltale_schema::text::printable;
use telltale_server::tls;

/// The longest answer that is read.
const MOST_ANSWER_BYTES: usize = 64 << 10;

/// Sends messages.
#[derive(Debug)]
pub(super) struct Sender {
    way: Transport,
    headers: HeaderMap,
    timeout: Duration,
}

#[derive(Debug)]
enum Transport {
    Grpc(MetricsServiceClient<Channel>),
    Http(Uri, Option<Arc<ClientConfig>>),
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The receiver answered, and did not take it.
    #[error("the receiver answers {status}")]
    Refused {
        /// What it said.
        status: String,
        /// Whether it may take it later.
        again: bool,
        /// When, if it said so.
        after: Option<Duration>,
    },
    /// It did not answer.
    #[error("the receiver did not answer within {0:?}")]
    TimedOut(Duration),
    /// It cannot be talked to.
    #[error("the receiver cannot be reached; look at otlp.endpoint")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Sender {
    pub(super) fn new(options: &OtlpOptions) -> Result<Self, OptionsError> {
        let endpoint = options.check()?;
        let timeout = options.timeout();
        let bad = || OptionsError::Endpoint(endpoint.to_owned());
        let way = match options.protocol {
            Protocol::Grpc => {
                Transport::Grpc(MetricsServiceClient::new(channel(endpoint, options)?))
            }
            Protocol::Http => {
                let uri: Uri = endpoint.parse().map_err(|_| bad())?;
                uri.host().ok_or_else(bad)?;
                let secured = uri.scheme_str() == Some("https");
                let authority = options.authority.as_deref();
                let tls = secured.then(|| tls::client(authority)).transpose();
                Transport::Http(uri, tls.map_err(OptionsError::Authority)?)
            }
        };
        let mut headers = HeaderMap::new();
        for pair in &options.headers {
            let wrong = || OptionsError::Header(pair.clone());
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
            // Most of them are secrets.
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self { way, headers, timeout })
    }

    /// Sends a message; gives how many of its points the receiver did not take.
    pub(super) async fn send(
        &mut self,
        request: &ExportMetricsServiceRequest,
    ) -> Result<u64, SendError> {
        let headers = &self.headers;
        let sending = async {
            match &mut self.way {
                Transport::Grpc(client) => by_grpc(client, headers, request).await,
                Transport::Http(uri, tls) => by_http((uri, tls.as_ref()), headers, request).await,
            }
        };
        let timed_out = |_| SendError::TimedOut(self.timeout);
        let answer = tokio::time::timeout(self.timeout, sending).await.map_err(timed_out)??;
        let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_data_points);
        Ok(u64::try_from(rejected).unwrap_or(0))
    }
}

fn channel(endpoint: &str, options: &OtlpOptions) -> Result<Channel, OptionsError> {
    let bad = |_| OptionsError::Endpoint(endpoint.to_owned());
    let mut channel = Endpoint::from_shared(endpoint.to_owned()).map_err(bad)?;
    if endpoint.starts_with("https://") {
        let pem = tls::trusted(options.authority.as_deref()).map_err(OptionsError::Authority)?;
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
        channel = channel.tls_config(tls).map_err(OptionsError::Certificate)?;
    }
    Ok(channel.connect_lazy())
}

async fn by_grpc(
    client: &mut MetricsServiceClient<Channel>,
    headers: &HeaderMap,
    message: &ExportMetricsServiceRequest,
) -> Result<ExportMetricsServiceResponse, SendError> {
    let metadata = MetadataMap::from_headers(headers.clone());
    let request = tonic::Request::from_parts(metadata, <_>::default(), message.clone());
    let refused = |status: tonic::Status| {
        let after = wishes::of_status(status.details());
        // What the protocol says may be sent again.
        let again = match status.code() {
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss => true,
            // It may stay so, unless the receiver says until when.
            Code::ResourceExhausted => after.is_some(),
            _ => false,
        };
        SendError::Refused { status: words(&status), again, after }
    };
    client.export(request).await.map(tonic::Response::into_inner).map_err(refused)
}

/// What a status says, and what the receiver said beside it.
pub(super) fn words(status: &tonic::Status) -> String {
    match (status.code().description(), status.message()) {
        (code, "") => code.to_owned(),
        (code, said) => format!("{code}: {}", printable(said)),
    }
}

fn unreachable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SendError {
    SendError::Unreachable(error.into())
}

/// Sends a message over a connection of its own, with TLS where it is configured.
async fn by_http(
    (uri, tls): (&Uri, Option<&Arc<ClientConfig>>),
    headers: &HeaderMap,
    message: &ExportMetricsServiceRequest,
) -> Result<ExportMetricsServiceResponse, SendError> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let mut request = Request::new(Body::from(message.encode_to_vec()));
    *request.method_mut() = hyper::Method::POST;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(unreachable)?;
    request.headers_mut().extend(headers.clone());
    let authority = uri.authority().map_or(host, |authority| authority.as_str());
    let authority = HeaderValue::try_from(authority).map_err(unreachable)?;
    request.headers_mut().insert(header::HOST, authority);
    let kind = HeaderValue::from_static("application/x-protobuf");
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
    let Some(tls) = tls else { return exchange(stream, request).await };
    let name = ServerName::try_from(host.to_owned()).map_err(unreachable)?;
    let tls = TlsConnector::from(Arc::clone(tls));
    let stream = tls.connect(name, stream).await.map_err(unreachable)?;
    exchange(stream, request).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    request: Request<Body>,
) -> Result<ExportMetricsServiceResponse, SendError> {
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(unreachable)?;
    let asking = async {
        let answer = sender.send_request(request).await.map_err(unreachable)?;
        let (head, body) = answer.into_parts();
        let body = to_bytes(Body::new(body), MOST_ANSWER_BYTES).await.map_err(unreachable)?;
        if head.status.is_success() {
            // An answer that is not understood was still one of taking it.
            return Ok(ExportMetricsServiceResponse::decode(body).unwrap_or_default());
        }
        let after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|value| wishes::of_header(value, SystemTime::now()));
        let again = matches!(head.status.as_u16(), 429 | 502 | 503 | 504);
        Err(SendError::Refused { status: head.status.to_string(), again, after })
    };
    let mut asking = std::pin::pin!(asking);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        outcome = asking.as_mut() => outcome,
        ended = connection.as_mut() => {
            ended.map_err(unreachable)?;
            asking.await
        }
    }
}
