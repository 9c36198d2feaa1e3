//! What can be chosen about gRPC, and the TLS that follows from it.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use telltale_server::door::{TlsError, TlsFiles};
use telltale_server::listen::Address;

/// Connections at a time by default.
const MOST_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not 0");

/// The socket's name in the runtime directory.
pub use telltale_collector::sockets::TELEMETRY as SOCKET_NAME;

/// The table `[grpc]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GrpcOptions {
    /// Where to listen; nowhere when it is empty. Without TLS a TCP port must be this machine's
    /// own, and callers without the token see devices alone there.
    pub listen: Vec<Address>,
    /// A PEM file with the server's certificate and those that lead to its authority.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate.
    pub key: Option<PathBuf>,
    /// A PEM file with the authority whose certificates clients must have; they see everything.
    pub client_authority: Option<PathBuf>,
    /// Connections at a time, on all sockets together.
    pub connections: NonZeroUsize,
}

/// Why the options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Anyone on the network could listen in.
    #[error(
        "gRPC on {0} would be readable on the network; set `certificate` and `key`, or listen on \
         127.0.0.1"
    )]
    PlainBeyondLoopback(SocketAddr),
    /// The files do not hold what they should, or do not belong together.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Default for GrpcOptions {
    fn default() -> Self {
        Self {
            listen: vec![Address::Unix(PathBuf::from(SOCKET_NAME))],
            certificate: None,
            key: None,
            client_authority: None,
            connections: MOST_CONNECTIONS,
        }
    }
}

impl GrpcOptions {
    /// Checks a port that shall be served.
    pub(crate) fn check(&self, address: SocketAddr) -> Result<(), OptionsError> {
        if self.certificate.is_some() || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(OptionsError::PlainBeyondLoopback(address))
    }

    /// The files that TLS needs; none where TLS is not asked for.
    pub(crate) fn tls_files(&self) -> Result<Option<TlsFiles>, TlsError> {
        let Self { certificate, key, client_authority, .. } = self;
        TlsFiles::named(certificate.as_deref(), key.as_deref(), client_authority.as_deref())
    }

    /// Checks that a service which listens at these addresses can serve them with these options,
    /// as the files are now.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check_files(&self, addresses: &[Address]) -> Result<(), OptionsError> {
        for address in addresses {
            if let Address::Tcp(address) = address {
                self.check(*address)?;
            }
        }
        Ok(self.tls_files()?.map_or(Ok(()), TlsFiles::usable)?)
    }
}
