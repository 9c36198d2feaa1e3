//! How a coordinator is reached: its address, whom one has to be to it, and whom it has to be.
//!
//! Agents and operators both come this way. A token is never sent where it could be read on its way:
//! without TLS only to a socket file or to this machine.

mod keyring;
mod trouble;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_client::stranger;
use telltale_server::bounded_file;
use telltale_server::tls::MAX_CERTIFICATES_BYTES;
use telltale_server::token::{Token, TokenError};
use telltale_wire::cluster::Client;
use thiserror::Error;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

pub use keyring::Keyring;
pub use trouble::ReachTrouble;

/// How long a connection on which nothing comes is kept before the other end is asked, and how long
/// it may take to answer: a host that is gone says nothing.
pub const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Where a coordinator listens.
pub use telltale_client::ServiceAddress as CoordinatorAddress;

/// The files by which one proves who one is, and by which a coordinator proves who it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientFiles {
    /// The authority that the coordinator's certificate descends from (PEM); with it, ports are
    /// reached by TLS.
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key (PEM).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The file with the coordinator's token.
    pub token_file: Option<PathBuf>,
}

/// What was in those files.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    tls: Option<ClientTlsConfig>,
    token: Option<Token>,
    /// Where the authority was read.
    authority: Option<PathBuf>,
    /// Whether we have a certificate of our own.
    has_identity: bool,
}

/// Why the files are of no use.
#[derive(Debug, Error)]
pub enum AccessError {
    /// A file cannot be read.
    #[error("cannot read {path}; give a file with certificates or a key in PEM")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The authority's file is of something else.
    #[error("no certificate in {0}; name the file with the authority's, in PEM")]
    NoCertificate(PathBuf),
    /// A certificate of our own without an authority to check the coordinator's by.
    #[error("a certificate is for TLS; name the coordinator's authority too")]
    IdentityAlone,
    /// What is in the files is no certificate or key, or they do not belong together.
    #[error(
        "certificates and key cannot be used for TLS; give them in PEM, the key of the certificate"
    )]
    Unfit(#[source] tonic::transport::Error),
    /// The token's file cannot be read. The caller has the coordinator's token and makes none.
    #[error("cannot read the token file {path}; copy the coordinator's")]
    TokenFile {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The token cannot be used.
    #[error(transparent)]
    Token(TokenError),
}

/// Why a coordinator was not reached.
#[derive(Debug, Error)]
pub enum ReachError {
    /// There is no connection, or it does not carry a call.
    #[error(transparent)]
    Trouble(#[from] ReachTrouble),
    /// Nothing is at the path of a socket file.
    #[error("no coordinator is at {path}; start one with `telltale coordinator`")]
    Missing {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The socket file belongs to someone who could lie.
    #[error("{path} belongs to user {user}, who is neither root nor you")]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Whose it is.
        user: u32,
    },
    /// The address or the certificates cannot be used for gRPC.
    #[error("{address} cannot be reached by gRPC as it was given")]
    Unfit {
        /// Where.
        address: CoordinatorAddress,
        /// What is wrong.
        #[source]
        source: tonic::transport::Error,
    },
    /// A token would be sent in the clear over a network.
    #[error(
        "the token would go to {0} unencrypted; name the coordinator's authority for TLS, or use an \
         address of this machine"
    )]
    TokenInTheClear(CoordinatorAddress),
    /// It took too long.
    #[error("{address} did not answer within {} s", .timeout.as_secs_f64())]
    Late {
        /// Where.
        address: CoordinatorAddress,
        /// How long it had.
        timeout: Duration,
    },
}

/// Connects to a coordinator within `timeout`.
///
/// # Errors
/// When there is no answer, or a secret would go to the wrong receiver.
pub async fn reach(
    address: &CoordinatorAddress,
    credentials: &Credentials,
    timeout: Duration,
) -> Result<Client, ReachError> {
    let late = |_| ReachError::Late { address: address.clone(), timeout };
    let channel =
        tokio::time::timeout(timeout, channel(address, credentials)).await.map_err(late)??;
    let client = Client::new(channel);
    Ok(match &credentials.token {
        Some(token) => client.with_token(token.expose()).expect("a token is printable ASCII"),
        None => client,
    })
}

async fn channel(
    address: &CoordinatorAddress,
    credentials: &Credentials,
) -> Result<Channel, ReachError> {
    let unfit = |source| ReachError::Unfit { address: address.clone(), source };
    let endpoint = match address {
        CoordinatorAddress::Unix(path) => {
            let missing = |source| ReachError::Missing { path: path.into(), source };
            if let Some(user) = stranger(path).map_err(missing)? {
                return Err(ReachError::Stranger { path: path.into(), user });
            }
            // Nothing but its form matters of what is not UTF-8 in a path: connecting says no then.
            Endpoint::from_shared(format!("unix:{}", path.display())).map_err(unfit)?
        }
        CoordinatorAddress::Port(port) => {
            if credentials.tls.is_none() && credentials.token.is_some() && !address.is_here() {
                return Err(ReachError::TokenInTheClear(address.clone()));
            }
            let scheme = if credentials.tls.is_some() { "https" } else { "http" };
            let endpoint = Endpoint::from_shared(format!("{scheme}://{port}")).map_err(unfit)?;
            match &credentials.tls {
                Some(tls) => endpoint.tls_config(tls.clone()).map_err(unfit)?,
                None => endpoint,
            }
        }
    };
    let endpoint = endpoint
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true);
    let connected = endpoint.connect().await;
    connected.map_err(|error| ReachTrouble::of(address, credentials, &error).into())
}

fn read(path: &Path) -> Result<Vec<u8>, AccessError> {
    let failed = |source| AccessError::Read { path: path.into(), source };
    bounded_file::read(path, MAX_CERTIFICATES_BYTES).map_err(failed)
}

// === impl ClientFiles ===

impl ClientFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read or used, or is open to others and should not be.
    pub fn load(&self) -> Result<Credentials, AccessError> {
        let tls = match (&self.authority, &self.identity) {
            (None, None) => None,
            (None, Some(_)) => return Err(AccessError::IdentityAlone),
            (Some(authority), identity) => {
                let pem = read(authority)?;
                if !CertificateDer::pem_slice_iter(&pem).any(|found| found.is_ok()) {
                    return Err(AccessError::NoCertificate(authority.clone()));
                }
                let authority = Certificate::from_pem(pem);
                let tls = ClientTlsConfig::new().ca_certificate(authority);
                let tls = match identity {
                    Some((certificate, key)) => {
                        tls.identity(Identity::from_pem(read(certificate)?, read(key)?))
                    }
                    None => tls,
                };
                // They are checked only for an endpoint, of which nothing else matters here.
                let endpoint = Endpoint::from_static("https://localhost");
                endpoint.tls_config(tls.clone()).map_err(AccessError::Unfit)?;
                Some(tls)
            }
        };
        let token = self.token_file.as_deref().map(Token::read).transpose();
        let token = token.map_err(|error| match error {
            TokenError::Read { path, source } => AccessError::TokenFile { path, source },
            other => AccessError::Token(other),
        })?;
        let (authority, has_identity) = (self.authority.clone(), self.identity.is_some());
        Ok(Credentials { tls, token, authority, has_identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_harness::Scratch;

    fn address(text: &str) -> CoordinatorAddress {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_a_socket_file_a_number_or_a_name() {
        for (text, here) in [
            ("unix:/run/x.sock", true),
            ("127.0.0.1:9440", true),
            ("[::1]:80", true),
            ("localhost:1", true),
            ("192.0.2.1:9440", false),
            ("node-7.lab_a:9440", false),
        ] {
            assert_eq!((address(text).to_string().as_str(), address(text).is_here()), (text, here));
        }
        for bad in ["", "9440", ":9440", "node7", "node7:x", "http://a:1", "a b:1", "unix:"] {
            assert!(bad.parse::<CoordinatorAddress>().is_err(), "{bad}");
        }
    }

    fn outcome(address: &CoordinatorAddress, credentials: &Credentials) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let reached = runtime.block_on(reach(address, credentials, Duration::from_millis(500)));
        reached.unwrap_err().to_string()
    }

    #[test]
    fn a_token_is_not_sent_in_the_clear_and_nobody_is_distinguished_from_silence() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new();
        let token_file = scratch.join("token");
        std::fs::write(&token_file, "a-token-that-cannot-be-guessed").unwrap();
        std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let access = ClientFiles { token_file: Some(token_file), ..ClientFiles::default() };
        let credentials = access.load().unwrap();
        let refused = outcome(&address("192.0.2.1:1"), &credentials);
        assert!(refused.starts_with("the token would go to 192.0.2.1:1 unencrypted"), "{refused}");
        let missing = format!("unix:{}", scratch.join("none").display());
        assert!(outcome(&address(&missing), &credentials).starts_with("no coordinator is at"));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mute = listener.local_addr().unwrap().to_string();
        drop(listener);
        let silent = outcome(&address(&mute), &credentials);
        assert_eq!(silent, format!("no process listens at {mute}; does a coordinator run there?"));
    }

    #[test]
    fn a_certificate_needs_an_authority() {
        let identity = Some(("certificate".into(), "key".into()));
        let access = ClientFiles { identity, ..ClientFiles::default() };
        assert!(matches!(access.load(), Err(AccessError::IdentityAlone)));
        let access = ClientFiles { authority: Some("/nowhere".into()), ..ClientFiles::default() };
        assert!(matches!(access.load(), Err(AccessError::Read { .. })));
        let access = ClientFiles { token_file: Some("/nowhere".into()), ..ClientFiles::default() };
        let refused = access.load().unwrap_err().to_string();
        assert_eq!(refused, "cannot read the token file /nowhere; copy the coordinator's");
        let scratch = Scratch::new();
        let file = scratch.join("key.pem");
        std::fs::write(&file, "-----BEGIN PRIVATE KEY-----\n").unwrap();
        let access = ClientFiles { authority: Some(file.clone()), ..ClientFiles::default() };
        let refused = access.load().unwrap_err().to_string();
        assert!(refused.starts_with(&format!("no certificate in {}", file.display())), "{refused}");
    }
}
