//! What can be chosen about gRPC, and the TLS that follows from it.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use super::GREETING_PATIENCE;
use crate::access::Caller;
use telltale_server::bounded_file;
use telltale_server::listen::Address;

/// The longest file with certificates or a key.
const MOST_PEM_BYTES: u64 = 1 << 20;

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
    /// A certificate without a key, a key without a certificate, or neither for clients.
    #[error("TLS for gRPC needs both `certificate` and `key`")]
    HalfTls,
    /// Anyone on the network could listen in.
    #[error(
        "gRPC on {0} would be readable on the network; set `certificate` and `key`, or listen on \
         127.0.0.1"
    )]
    PlainBeyondLoopback(SocketAddr),
    /// A file cannot be read.
    #[error("cannot read {path} for gRPC's TLS")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file has nothing of what it should.
    #[error("there is no {what} in {path}; name the PEM file that has it, for gRPC's TLS")]
    Without {
        /// What it should have.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The files do not hold what they should, or do not belong together.
    #[error("the certificate, key or client authority for gRPC cannot be used")]
    Tls(#[source] tonic::transport::Error),
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

    /// Checks that nothing of TLS is there alone.
    pub(crate) fn check_pair(&self) -> Result<(), OptionsError> {
        match (&self.certificate, &self.key) {
            (Some(_), Some(_)) => Ok(()),
            (None, None) if self.client_authority.is_none() => Ok(()),
            _ => Err(OptionsError::HalfTls),
        }
    }

    /// Who a caller on the TCP port is: with a client authority, only those with a certificate
    /// get through the handshake.
    pub(super) fn caller(&self) -> Caller {
        if self.client_authority.is_some() { Caller::Certificate } else { Caller::Anonymous }
    }

    /// The files that TLS needs, as they are now; none where TLS is not asked for.
    pub(super) fn files(&self) -> Result<Option<TlsFiles>, OptionsError> {
        self.check_pair()?;
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Ok(None);
        };
        let (certificate, key) = (certificates(certificate)?, private_key(key)?);
        let authority = self.client_authority.as_deref().map(certificates).transpose()?;
        Ok(Some(TlsFiles { certificate, key, authority }))
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
        server(Server::builder(), self.files()?.as_ref()).map(drop)
    }
}

/// What TLS needs, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TlsFiles {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<Vec<u8>>,
}

/// The server for TCP ports, with TLS where there are files for it.
pub(super) fn server(builder: Server, files: Option<&TlsFiles>) -> Result<Server, OptionsError> {
    let Some(TlsFiles { certificate, key, authority }) = files else { return Ok(builder) };
    let identity = Identity::from_pem(certificate, key);
    let mut tls = ServerTlsConfig::new().identity(identity).timeout(GREETING_PATIENCE);
    if let Some(authority) = authority {
        tls = tls.client_ca_root(Certificate::from_pem(authority));
    }
    builder.tls_config(tls).map_err(OptionsError::Tls)
}

/// A file with certificates.
fn certificates(path: &Path) -> Result<Vec<u8>, OptionsError> {
    let pem = read(path)?;
    match CertificateDer::from_pem_slice(&pem) {
        Ok(_) => Ok(pem),
        Err(_) => Err(OptionsError::Without { what: "certificate", path: path.to_owned() }),
    }
}

/// A file with a key.
fn private_key(path: &Path) -> Result<Vec<u8>, OptionsError> {
    let pem = read(path)?;
    match PrivateKeyDer::from_pem_slice(&pem) {
        Ok(_) => Ok(pem),
        Err(_) => Err(OptionsError::Without { what: "private key", path: path.to_owned() }),
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, OptionsError> {
    let failed = |source| OptionsError::Read { path: path.into(), source };
    bounded_file::read(path, MOST_PEM_BYTES).map_err(failed)
}
