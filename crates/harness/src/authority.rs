//! Certificates for tests of TLS: an authority, and what it signs. Each has a key of its own, and nothing
//! outlives the test.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A day before and after now, in seconds.
const AROUND_NOW: Range<i64> = -86_400..86_400;

/// An authority that signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate that is wished for.
#[derive(Debug, Clone)]
pub struct Wish<'a> {
    /// Whose it is: names and addresses of hosts.
    pub names: &'a [&'a str],
    /// What it may be used for.
    pub purpose: Purpose,
    /// From when to when it is valid, in seconds from now.
    pub valid: Range<i64>,
}

/// What a certificate may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It does not say.
    Anything,
    /// To be called by it.
    Server,
    /// To call by it.
    Client,
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

// === impl Authority ===

impl Authority {
    /// An authority of this name.
    ///
    /// # Panics
    /// When no key can be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are fine");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key can be made");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate can be signed"))
    }

    /// Its own certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Its own certificate and key, as a server would be given them by mistake.
    #[must_use]
    pub fn own(&self) -> Signed {
        Signed { certificate: self.pem(), key: self.0.key().serialize_pem() }
    }

    /// The answer to these bytes at a port of this machine whose certificate, for `localhost`, is of this authority;
    /// what went wrong else. `identity` is the caller's.
    ///
    /// # Errors
    /// When the other is not of this authority, or refuses the caller.
    ///
    /// # Panics
    /// When nothing listens there.
    pub fn ask(
        &self,
        port: u16,
        identity: Option<&Signed>,
        bytes: &[u8],
    ) -> Result<String, String> {
        let mut roots = RootCertStore::empty();
        let own =
            CertificateDer::from_pem_slice(self.pem().as_bytes()).expect("it is a certificate");
        roots.add(own).expect("it is an authority's");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has what they need")
            .with_root_certificates(roots);
        let config = match identity {
            Some(Signed { certificate, key }) => {
                let chain = CertificateDer::from_pem_slice(certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("it is a key");
                builder
                    .with_client_auth_cert(vec![chain.expect("it is a certificate")], key)
                    .expect("they belong together")
            }
            None => builder.with_no_client_auth(),
        };
        let name = ServerName::try_from("localhost").expect("it is a name");
        let client = ClientConnection::new(Arc::new(config), name).expect("it can be configured");
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("something listens");
        let mut stream = StreamOwned::new(client, stream);
        stream.write_all(bytes).map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // A server need not say goodbye by TLS behind a whole answer.
            Err(error) if answer.is_empty() => Err(error.to_string()),
            _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
        }
    }

    /// The certificate that is wished for.
    ///
    /// # Panics
    /// When a name cannot be in a certificate, or no key can be made.
    #[must_use]
    pub fn sign(&self, wish: &Wish<'_>) -> Signed {
        let key = KeyPair::generate().expect("a key can be made");
        let names: Vec<String> = wish.names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names that a certificate can have");
        params.extended_key_usages = match wish.purpose {
            Purpose::Anything => Vec::new(),
            Purpose::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Purpose::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        let from_now = |seconds: i64| {
            let now = date_time_ymd(1970, 1, 1) + now;
            let shift = Duration::from_secs(seconds.unsigned_abs());
            if seconds < 0 { now - shift } else { now + shift }
        };
        params.not_before = from_now(wish.valid.start);
        params.not_after = from_now(wish.valid.end);
        let certificate = params.signed_by(&key, &self.0).expect("a certificate can be signed");
        Signed { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// A certificate of `localhost` for a server, valid now.
    #[must_use]
    pub fn server(&self) -> Signed {
        self.sign(&Wish { purpose: Purpose::Server, ..Wish::default() })
    }

    /// A certificate for a client, valid now.
    #[must_use]
    pub fn client(&self) -> Signed {
        self.sign(&Wish { purpose: Purpose::Client, ..Wish::default() })
    }
}

impl Default for Wish<'_> {
    /// One of `localhost` for anything, valid now.
    fn default() -> Self {
        Self { names: &["localhost"], purpose: Purpose::Anything, valid: AROUND_NOW }
    }
}

// === impl Signed ===

impl Signed {
    /// Writes both into `directory`, as NAME.pem and NAME.key, readable for this user alone; gives the
    /// paths in this order.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn write(&self, directory: &Path, name: &str) -> [PathBuf; 2] {
        [("pem", &self.certificate), ("key", &self.key)].map(|(ending, text)| {
            let path = directory.join(format!("{name}.{ending}"));
            write_private(&path, text);
            path
        })
    }
}

/// Writes a file that this user alone can read, as keys and tokens must be.
///
/// # Panics
/// When it cannot be written.
pub fn write_private(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let written = std::fs::write(path, text)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)));
    written.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
