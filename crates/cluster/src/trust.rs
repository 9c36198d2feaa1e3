//! A server's own certificate, and whose certificates callers must have; read again when the files
//! change, since they expire while a job runs. The coordinator's servers and the agent's have it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use telltale_schema::text::with_causes;
use telltale_server::tls::MAX_CERTIFICATES_BYTES;
use telltale_server::{bounded_file, log};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem};
use tokio_rustls::rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

/// How often the files are looked at.
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

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// gRPC, which wants HTTP/2.
    Grpc,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 or HTTP/1.1.
    Http,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read.
    #[error("cannot read {}; it must be there, and be readable for this user", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file is not PEM, or there is nothing of its kind in it.
    #[error("{} does not hold what it should, as PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: pem::Error,
    },
    /// Certificate and key do not belong together, or cannot be used.
    #[error("the certificate and its key cannot be used together")]
    Identity(#[source] rustls::Error),
    /// The authority cannot be used.
    #[error("the authority of callers' certificates cannot be used")]
    Authority(#[source] VerifierBuilderError),
}

/// TLS as the files were when they were read last.
#[derive(Debug)]
pub(crate) struct TlsPlan {
    files: TlsFiles,
    now: RwLock<Now>,
}

#[derive(Debug, Clone)]
struct Now {
    read: Contents,
    grpc: Arc<ServerConfig>,
    http1: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
}

#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authority: Option<Vec<u8>>,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Contents(withheld)")
    }
}

// === impl TlsPlan ===

impl TlsPlan {
    pub(crate) fn new(files: TlsFiles) -> Result<Self, TrustError> {
        let now = RwLock::new(Now::read(&files)?);
        Ok(Self { files, now })
    }

    /// Reads the files again. Says whether they have changed; when they cannot be used, all stays as it
    /// was.
    fn read_again(&self) -> Result<bool, TrustError> {
        let read = Contents::read(&self.files)?;
        if self.held().read == read {
            return Ok(false);
        }
        let now = Now::of(&self.files, read)?;
        *self.now.write().unwrap_or_else(std::sync::PoisonError::into_inner) = now;
        Ok(true)
    }

    /// Reads the files again from time to time, until it is time to stop.
    pub(crate) async fn renew(&self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            match self.read_again() {
                Ok(true) => {
                    log::info("new connections are made with the certificates as they are now");
                }
                Ok(false) => {}
                Err(error) => {
                    let causes = with_causes(&error);
                    log::error(&format!("the certificates stay as they were: {causes}"));
                }
            }
        }
    }

    /// For a connection on which this is spoken.
    pub(crate) fn acceptor(&self, spoken: Spoken) -> TlsAcceptor {
        let held = self.held();
        TlsAcceptor::from(match spoken {
            Spoken::Grpc => held.grpc,
            Spoken::Http1 => held.http1,
            Spoken::Http => held.http,
        })
    }

    /// Whether our own certificate is for a server of this name.
    pub(crate) fn has_name(&self, host: &str) -> bool {
        let Ok(name) = ServerName::try_from(host) else { return false };
        let held = self.held();
        let first = CertificateDer::pem_slice_iter(&held.read.certificate).find_map(Result::ok);
        first.is_some_and(|first| {
            ParsedCertificate::try_from(&first)
                .is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
        })
    }

    /// Whether callers must have a certificate.
    pub(crate) const fn asks_for_certificates(&self) -> bool {
        self.files.client_authority.is_some()
    }

    fn held(&self) -> Now {
        self.now.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

// === impl Now ===

impl Now {
    fn read(files: &TlsFiles) -> Result<Self, TrustError> {
        Self::of(files, Contents::read(files)?)
    }

    fn of(files: &TlsFiles, read: Contents) -> Result<Self, TrustError> {
        let config = server_config(files, &read)?;
        // Names of protocols are those of RFC 7301's registry.
        let speaking = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Arc::new(config)
        };
        Ok(Self {
            grpc: speaking(&[b"h2"]),
            http1: speaking(&[b"http/1.1"]),
            http: speaking(&[b"h2", b"http/1.1"]),
            read,
        })
    }
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TrustError> {
        Ok(Self {
            certificate: contents(&files.certificate)?,
            key: contents(&files.key)?,
            client_authority: files.client_authority.as_deref().map(contents).transpose()?,
        })
    }
}

fn server_config(files: &TlsFiles, read: &Contents) -> Result<ServerConfig, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.certificate, &read.certificate)?;
    let unusable = |source| TrustError::Pem { path: files.key.clone(), source };
    let key = PrivateKeyDer::from_pem_slice(&read.key).map_err(unusable)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has what the default versions need");
    let builder = match (&files.client_authority, &read.client_authority) {
        (Some(path), Some(bytes)) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path, bytes)? {
                roots.add(certificate).map_err(TrustError::Identity)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(TrustError::Authority)?)
        }
        _ => builder.with_no_client_auth(),
    };
    builder.with_single_cert(chain, key).map_err(TrustError::Identity)
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let unusable = |source| TrustError::Pem { path: path.to_owned(), source };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let found = found.map_err(unusable)?;
    if found.is_empty() { Err(unusable(pem::Error::NoItemsFound)) } else { Ok(found) }
}

fn contents(path: &Path) -> Result<Vec<u8>, TrustError> {
    let failed = |source| TrustError::Read { path: path.to_owned(), source };
    bounded_file::read(path, MAX_CERTIFICATES_BYTES).map_err(failed)
}
