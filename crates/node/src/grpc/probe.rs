//! Asks a service whether it serves, as probes do (grpc.health.v1). Nothing else is asked, so that
//! anyone who may connect gets an answer.

use std::path::PathBuf;
use std::time::Duration;

use tonic::Status;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::connect::{ConnectError, channel};
use super::options::{OptionsError, read};

/// Where a service is asked.
pub use telltale_server::listen::Remote as HealthEndpoint;

/// The files that TLS to a port takes, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthTls {
    /// The authority that the service's certificate descends from.
    pub authority: PathBuf,
    /// Our own certificate and its key, where the service wants one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

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
    /// Nobody, or nobody to be trusted, is at the socket.
    #[error(transparent)]
    Socket(#[from] ConnectError),
    /// Nobody is at the port.
    #[error("no service answers at {endpoint}; does one listen there, and with TLS or without?")]
    Port {
        /// The port.
        endpoint: HealthEndpoint,
        /// What went wrong.
        #[source]
        source: tonic::transport::Error,
    },
    /// A file for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] OptionsError),
    /// A socket file has no TLS.
    #[error("TLS is for ports; {0} is a socket file")]
    TlsOnSocket(HealthEndpoint),
    /// It took too long.
    #[error("{endpoint} did not answer within {} s", .patience.as_secs_f64())]
    Late {
        /// Where.
        endpoint: HealthEndpoint,
        /// How long it had.
        patience: Duration,
    },
    /// Whoever is there does not answer this question.
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
/// When it cannot be reached or does not answer within `patience`, connecting included.
pub async fn ask_health(
    endpoint: &HealthEndpoint,
    tls: Option<&HealthTls>,
    patience: Duration,
) -> Result<Health, HealthError> {
    let late = |_| HealthError::Late { endpoint: endpoint.clone(), patience };
    tokio::time::timeout(patience, ask(endpoint, tls)).await.map_err(late)?
}

async fn ask(endpoint: &HealthEndpoint, tls: Option<&HealthTls>) -> Result<Health, HealthError> {
    let channel = match (endpoint, tls) {
        (HealthEndpoint::Unix(path), None) => channel(path).await?,
        (HealthEndpoint::Unix(_), Some(_)) => {
            return Err(HealthError::TlsOnSocket(endpoint.clone()));
        }
        (HealthEndpoint::Port(port), tls) => port_channel(port, tls).await?,
    };
    // The empty name is the whole server.
    let request = HealthCheckRequest { service: String::new() };
    let answer = HealthClient::new(channel).check(request).await.map_err(|status| {
        HealthError::Refused { endpoint: endpoint.clone(), status: Box::new(status) }
    })?;
    Ok(match answer.get_ref().status() {
        ServingStatus::Serving => Health::Serving,
        _ => Health::NotServing,
    })
}

async fn port_channel(port: &str, tls: Option<&HealthTls>) -> Result<Channel, HealthError> {
    let failed =
        |source| HealthError::Port { endpoint: HealthEndpoint::Port(port.to_owned()), source };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{port}")).map_err(failed)?;
    if let Some(tls) = tls {
        let authority = Certificate::from_pem(read(&tls.authority)?);
        let mut config = ClientTlsConfig::new().ca_certificate(authority);
        if let Some((certificate, key)) = &tls.identity {
            config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        endpoint = endpoint.tls_config(config).map_err(OptionsError::Tls)?;
    }
    endpoint.connect().await.map_err(failed)
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
