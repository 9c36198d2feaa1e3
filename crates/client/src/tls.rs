//! What TLS to a port takes: whom to trust, and who one is. Where the texts come from is the caller's.

use std::fmt;

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// TLS to the ports of services, all of it PEM.
#[derive(Clone)]
pub struct Tls {
    config: ClientTlsConfig,
    has_certificate: bool,
}

// === impl Tls ===

impl Tls {
    /// TLS to services whose certificate descends from this authority.
    #[must_use]
    pub fn with_authority(authority: impl AsRef<[u8]>) -> Self {
        let authority = Certificate::from_pem(authority);
        let config = ClientTlsConfig::new().ca_certificate(authority);
        Self { config, has_certificate: false }
    }

    /// The same with a certificate of our own and its key, for services that ask for one.
    #[must_use]
    pub fn with_identity(self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let config = self.config.identity(Identity::from_pem(certificate, key));
        Self { config, has_certificate: true }
    }

    /// Whether it has a certificate of our own.
    pub(crate) fn has_certificate(&self) -> bool {
        self.has_certificate
    }

    pub(crate) fn config(&self) -> ClientTlsConfig {
        self.config.clone()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest has a key in it.
        to.debug_struct("Tls")
            .field("has_certificate", &self.has_certificate)
            .finish_non_exhaustive()
    }
}
