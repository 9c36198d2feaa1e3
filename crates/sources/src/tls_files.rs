//! The files of TLS to a service's port, as a user names them, read for the client.

use std::path::PathBuf;

use telltale_client::Tls;
use telltale_server::door::read_pem;

pub use telltale_server::door::TlsError;

/// The files that TLS to a port takes, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The authority that the service's certificate descends from.
    pub authority: PathBuf,
    /// The client's own certificate and its key, where the service wants one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

// === impl ClientTlsFiles ===

impl ClientTlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn read(&self) -> Result<Tls, TlsError> {
        let tls = Tls::with_authority(read_pem(&self.authority)?);
        Ok(match &self.identity {
            Some((certificate, key)) => tls.with_identity(read_pem(certificate)?, read_pem(key)?),
            None => tls,
        })
    }
}
