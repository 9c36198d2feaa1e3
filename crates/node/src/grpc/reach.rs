//! The way to a service wherever it is: a socket file of this machine, or a port, with TLS or without.

use std::path::PathBuf;

use telltale_server::listen::Remote;
use telltale_wire::telemetry::Client;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::connect::{ConnectError, channel};
use super::options::{OptionsError, read};

/// The files that TLS to a port takes, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsToPort {
    /// The authority that the service's certificate descends from.
    pub authority: PathBuf,
    /// Our own certificate and its key, where the service wants one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The same once the files were read, for as many services as there are.
#[derive(Debug, Clone)]
pub struct PreparedTls(ClientTlsConfig);

/// Why there is no way to a service.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// Nobody, or nobody to be trusted, is at the socket.
    #[error(transparent)]
    Socket(#[from] ConnectError),
    /// Nobody is at the port.
    #[error("no service answers at {endpoint}; does one listen there, and with TLS or without?")]
    Port {
        /// The port.
        endpoint: Remote,
        /// What went wrong.
        #[source]
        source: tonic::transport::Error,
    },
    /// A file for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] OptionsError),
    /// A socket file has no TLS.
    #[error("TLS is for ports; {0} is a socket file")]
    TlsOnSocket(Remote),
}

// === impl TlsToPort ===

impl TlsToPort {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn prepare(&self) -> Result<PreparedTls, OptionsError> {
        let authority = Certificate::from_pem(read(&self.authority)?);
        let mut config = ClientTlsConfig::new().ca_certificate(authority);
        if let Some((certificate, key)) = &self.identity {
            config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        Ok(PreparedTls(config))
    }
}

/// A client of the service at `remote`, by TLS where that is given: a port alone takes it. Needs a
/// tokio runtime with I/O and time; how long it may take, its caller decides.
///
/// # Errors
/// When nobody answers there, or nobody to be trusted.
pub async fn reach(remote: &Remote, tls: Option<&PreparedTls>) -> Result<Client, ReachError> {
    Ok(Client::new(way(remote, tls).await?))
}

/// The connection of [`reach`].
pub(super) async fn way(remote: &Remote, tls: Option<&PreparedTls>) -> Result<Channel, ReachError> {
    match (remote, tls) {
        (Remote::Unix(path), None) => Ok(channel(path).await?),
        (Remote::Unix(_), Some(_)) => Err(ReachError::TlsOnSocket(remote.clone())),
        (Remote::Port(port), tls) => {
            let failed = |source| ReachError::Port { endpoint: remote.clone(), source };
            let scheme = if tls.is_some() { "https" } else { "http" };
            let address = format!("{scheme}://{port}");
            let mut endpoint = Endpoint::from_shared(address).map_err(failed)?;
            if let Some(PreparedTls(config)) = tls {
                endpoint = endpoint.tls_config(config.clone()).map_err(OptionsError::Tls)?;
            }
            endpoint.connect().await.map_err(failed)
        }
    }
}
