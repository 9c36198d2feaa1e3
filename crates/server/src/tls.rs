//! What the servers that we connect to have to show: certificates that descend from given ones, or
//! from those that the system trusts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::bounded_file;

/// Bytes of a file of certificates or of a key; a longer one is not used at all.
pub const MAX_CERTIFICATES_BYTES: u64 = 4 << 20;

/// Where systems keep the certificates that they trust: Debian and its like, Red Hat's, SUSE's,
/// Alpine's.
const SYSTEM_CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Why no client can be authenticated.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read.
    #[error("cannot read the certificates in {path}")]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No file, or none in it.
    #[error("there is no certificate to check the server's with; name a file that has some")]
    NoCertificates,
    /// The library refuses.
    #[error("TLS cannot be set up")]
    Options(#[source] rustls::Error),
}

/// The certificates in `file`, else those that the system trusts, as PEM.
///
/// # Errors
/// When there is no such file, or it cannot be read.
pub fn trusted(file: Option<&Path>) -> Result<Vec<u8>, TrustError> {
    let system = || SYSTEM_CERTIFICATES.iter().map(Path::new).find(|path| path.exists());
    let path = file.or_else(system).ok_or(TrustError::NoCertificates)?;
    let failed = |source| TrustError::Certificates { path: path.to_owned(), source };
    bounded_file::read(path, MAX_CERTIFICATES_BYTES).map_err(failed)
}

/// What a client needs that connects to a server whose certificate descends from one of these.
///
/// # Errors
/// When none can be used.
pub fn client(file: Option<&Path>) -> Result<Arc<ClientConfig>, TrustError> {
    let pem = trusted(file)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).flatten());
    if roots.is_empty() {
        return Err(TrustError::NoCertificates);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Options)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
