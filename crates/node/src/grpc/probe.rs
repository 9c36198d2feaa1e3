//! Asks a service whether it serves, as probes do (grpc.health.v1). Nothing else is asked, so that
//! anyone who may connect gets an answer.

use std::time::Duration;

use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::reach::{ReachError, TlsToPort, in_the_way, way};

/// Where a service is asked.
pub use telltale_server::listen::Remote as HealthEndpoint;

/// What a service says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It has a snapshot that is not too old, and more will come.
    Serving,
    /// It answers, and has none.
    NotServing,
}

/// Why nothing is known of a service.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// There is no way to it.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// It took too long.
    #[error("{endpoint} did not answer within {} s", .timeout.as_secs_f64())]
    Late {
        /// Where.
        endpoint: HealthEndpoint,
        /// How long it had.
        timeout: Duration,
    },
    /// The server there does not support this request.
    #[error("{endpoint} does not tell its health; is it a node service?")]
    Refused {
        /// Where.
        endpoint: HealthEndpoint,
        /// What it said.
        #[source]
        status: Box<Status>,
    },
}

/// Asks the service at `endpoint`. Needs a tokio runtime with I/O and time.
///
/// # Errors
/// When it cannot be reached or does not answer within `timeout`, connecting included.
pub async fn ask_health(
    endpoint: &HealthEndpoint,
    tls: Option<&TlsToPort>,
    timeout: Duration,
) -> Result<Health, HealthError> {
    let late = |_| HealthError::Late { endpoint: endpoint.clone(), timeout };
    tokio::time::timeout(timeout, ask(endpoint, tls)).await.map_err(late)?
}

async fn ask(endpoint: &HealthEndpoint, tls: Option<&TlsToPort>) -> Result<Health, HealthError> {
    if let (HealthEndpoint::Unix(_), Some(_)) = (endpoint, tls) {
        return Err(ReachError::TlsOnSocket(endpoint.clone()).into());
    }
    let tls = tls.map(TlsToPort::prepare).transpose().map_err(ReachError::Tls)?;
    let channel = way(endpoint, tls.as_ref()).await?;
    // The empty name is the whole server.
    let request = HealthCheckRequest { service: String::new() };
    let refused = |status| match in_the_way(endpoint, tls.as_ref(), &status) {
        Some(diagnosis) => diagnosis.into(),
        None => HealthError::Refused { endpoint: endpoint.clone(), status: Box::new(status) },
    };
    let answer = HealthClient::new(channel).check(request).await.map_err(refused)?;
    Ok(match answer.get_ref().status() {
        ServingStatus::Serving => Health::Serving,
        _ => Health::NotServing,
    })
}

#[cfg(test)]
mod tests {
    use super::HealthEndpoint;

    #[test]
    fn an_endpoint_is_a_socket_file_an_address_or_a_name() {
        for text in ["unix:/run/x.sock", "127.0.0.1:9436", "[::1]:80", "node-7.lab_a:9436"] {
            assert_eq!(text.parse::<HealthEndpoint>().unwrap().to_string(), text);
        }
        for bad in
            ["", "9436", ":9436", "node7", "node7:", "node7:x", "http://a:1", "a b:1", "unix:"]
        {
            assert!(bad.parse::<HealthEndpoint>().is_err(), "{bad}");
        }
    }
}
