//! A server's own certificate, and whose certificates callers must have; read again when the files
//! change, since they expire while a server runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tracing::{error, info, warn};

use telltale_schema::text::with_causes;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use super::flaw::{self, Flaw};
use super::limits::Protocol;
use crate::bounded_file;
use crate::tls::MAX_CERTIFICATES_BYTES;

/// How often the files are checked.
const INTERVAL: Duration = Duration::from_secs(60);

/// Where certificates are, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's own, and those that lead to its authority.
    pub certificate: PathBuf,
    /// The key of the first of them.
    pub key: PathBuf,
    /// The authority whose certificates callers must have; without it they need none.
    pub client_authority: Option<PathBuf>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}; it must be there, and be readable for this user", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file has nothing of what it should.
    #[error("there is no {what} in {}; name the PEM file that has it", path.display())]
    Without {
        /// What it should have.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A certificate without its key, a key without a certificate, or neither beside an authority of callers.
    #[error("TLS needs both a certificate and its key")]
    Half,
    /// Callers would refuse it.
    #[error("the certificate in {} {flaw}", path.display())]
    Flawed {
        /// The file.
        path: PathBuf,
        /// Why.
        flaw: Flaw,
    },
    /// Certificate and key do not belong together, or cannot be used.
    #[error("the certificate and its key cannot be used together")]
    Identity(#[source] rustls::Error),
    /// The authority cannot be used.
    #[error("the authority of callers' certificates cannot be used")]
    Authority(#[source] VerifierBuilderError),
}

/// TLS as the files were when they were read last, or none at all.
#[derive(Debug, Default)]
pub struct Tls {
    now: RwLock<Option<Now>>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Clone)]
struct Now {
    files: TlsFiles,
    read: Contents,
    chain: Vec<CertificateDer<'static>>,
    config: ServerConfig,
}

#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authority: Option<Vec<u8>>,
}

// === impl TlsFiles ===

impl TlsFiles {
    /// What keys of a configuration name; none where they name nothing.
    ///
    /// # Errors
    /// [`TlsError::Half`] when one is there without what belongs to it.
    pub fn named(
        certificate: Option<&Path>,
        key: Option<&Path>,
        client_authority: Option<&Path>,
    ) -> Result<Option<Self>, TlsError> {
        match (certificate, key, client_authority) {
            (Some(certificate), Some(key), authority) => Ok(Some(Self {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
                client_authority: authority.map(Path::to_owned),
            })),
            (None, None, None) => Ok(None),
            _ => Err(TlsError::Half),
        }
    }

    /// Checks that they can be used together, whatever callers would say.
    ///
    /// # Errors
    /// When they cannot.
    pub fn usable(self) -> Result<(), TlsError> {
        Now::read(self).map(drop)
    }

    /// Checks that they can be used, and that callers would not refuse the certificate now.
    ///
    /// # Errors
    /// When they cannot, or would.
    pub fn check(self) -> Result<(), TlsError> {
        Now::read(self)?.flawless()
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Contents(withheld)")
    }
}

// === impl Tls ===

impl Tls {
    /// TLS with these files as they are now; without files none. A certificate that callers refuse is logged and
    /// served all the same: what needs none goes on.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn new(files: Option<TlsFiles>) -> Result<Self, TlsError> {
        let now = files.map(Now::read).transpose()?;
        if let Some(Err(flaw)) = now.as_ref().map(Now::flawless) {
            warn!("{}", flaw.to_string());
        }
        Ok(Self { now: RwLock::new(now), changes: watch::Sender::default() })
    }

    /// Takes over other files, or the same as they are now. Says whether anything has changed; when they
    /// cannot be used, or callers would refuse the certificate, all stays as it was.
    ///
    /// # Errors
    /// When they cannot be used, or would be refused.
    pub fn replace(&self, files: Option<TlsFiles>) -> Result<bool, TlsError> {
        let new = files.map(Now::read).transpose()?;
        let read = |now: &Option<Now>| now.as_ref().map(|now| now.read.clone());
        if read(&self.held()) == read(&new) {
            return Ok(false);
        }
        if let Some(new) = &new {
            new.flawless()?;
            if let Some(flaw) =
                self.held().and_then(|held| Flaw::of_change(&held.chain, &new.chain))
            {
                return Err(new.flawed(flaw));
            }
        }
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = new;
        self.changes.send_replace(());
        Ok(true)
    }

    /// Reads the files again from time to time, until it is time to stop.
    pub async fn renew(&self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            match self.replace(self.held().map(|now| now.files)) {
                Ok(true) => {
                    info!("certificates reloaded for new connections");
                }
                Ok(false) => {}
                Err(error) => {
                    let causes = with_causes(&error);
                    error!("keeping the present certificates: {causes}");
                }
            }
        }
    }

    /// Whether connections are secured.
    pub fn is_there(&self) -> bool {
        self.now.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Notified when the certificates have changed.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// For a connection on which this is spoken; names of protocols are those of RFC 7301's registry.
    pub(super) fn acceptor(&self, protocol: Protocol) -> Option<TlsAcceptor> {
        let mut config = self.held()?.config;
        let spoken: &[&[u8]] = match protocol {
            Protocol::Http1 => &[b"http/1.1"],
            Protocol::Http2(_) => &[b"h2"],
            Protocol::Either(_) => &[b"h2", b"http/1.1"],
        };
        config.alpn_protocols = spoken.iter().map(|protocol| protocol.to_vec()).collect();
        Some(TlsAcceptor::from(Arc::new(config)))
    }

    /// Whether our own certificate is for a server of this name.
    pub fn has_name(&self, host: &str) -> bool {
        self.held().is_some_and(|held| flaw::is_for(&held.chain, host))
    }

    /// Whether callers must have a certificate.
    pub fn asks_for_certificates(&self) -> bool {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().is_some_and(|now| now.files.client_authority.is_some())
    }

    fn held(&self) -> Option<Now> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

// === impl Now ===

impl Now {
    fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let read = Contents::read(&files)?;
        let chain = certificates(&files.certificate, &read.certificate)?;
        let config = server_config(&files, &read, chain.clone())?;
        Ok(Self { files, read, chain, config })
    }

    fn flawless(&self) -> Result<(), TlsError> {
        Flaw::of(&self.chain).map_or(Ok(()), |flaw| Err(self.flawed(flaw)))
    }

    fn flawed(&self, flaw: Flaw) -> TlsError {
        TlsError::Flawed { path: self.files.certificate.clone(), flaw }
    }
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: read_pem(&files.certificate)?,
            key: read_pem(&files.key)?,
            client_authority: files.client_authority.as_deref().map(read_pem).transpose()?,
        })
    }
}

fn server_config(
    files: &TlsFiles,
    read: &Contents,
    chain: Vec<CertificateDer<'static>>,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let without = |_| TlsError::Without { what: "private key", path: files.key.clone() };
    let key = PrivateKeyDer::from_pem_slice(&read.key).map_err(without)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has what the default versions need");
    let builder = match (&files.client_authority, &read.client_authority) {
        (Some(path), Some(bytes)) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path, bytes)? {
                roots.add(certificate).map_err(TlsError::Identity)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(TlsError::Authority)?)
        }
        _ => builder.with_no_client_auth(),
    };
    builder.with_single_cert(chain, key).map_err(TlsError::Identity)
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| TlsError::Without { what: "certificate", path: path.to_owned() })
}

/// The bytes of a PEM file of bounded length.
///
/// # Errors
/// When it cannot be read.
pub fn read_pem(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read { path: path.to_owned(), source };
    bounded_file::read(path, MAX_CERTIFICATES_BYTES).map_err(failed)
}
