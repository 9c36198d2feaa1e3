//! The way to a service wherever it is: a socket file of this machine, or a port, with TLS or without.

use std::error::Error as _;
use std::path::PathBuf;

use telltale_server::diagnosis::{Caller, Diagnosis};
use telltale_server::door::{TlsError, read_pem};
use telltale_server::listen::Remote;
use telltale_wire::telemetry::Client;
use tonic::Status;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::connect::{ConnectError, channel};

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
pub struct PreparedTls {
    config: ClientTlsConfig,
    has_certificate: bool,
}

/// Why there is no way to a service.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// No server, or no trusted one, is at the socket.
    #[error(transparent)]
    Socket(#[from] ConnectError),
    /// Something is in the way to the port.
    #[error("{}", words(.endpoint, .diagnosis))]
    Port {
        /// The port.
        endpoint: Remote,
        /// What.
        diagnosis: Diagnosis,
    },
    /// The port cannot be called as it was given.
    #[error("{endpoint} cannot be called")]
    Unfit {
        /// The port.
        endpoint: Remote,
        /// What is wrong with it.
        #[source]
        source: tonic::transport::Error,
    },
    /// A file for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
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
    pub fn prepare(&self) -> Result<PreparedTls, TlsError> {
        let authority = Certificate::from_pem(read_pem(&self.authority)?);
        let mut config = ClientTlsConfig::new().ca_certificate(authority);
        if let Some((certificate, key)) = &self.identity {
            config = config.identity(Identity::from_pem(read_pem(certificate)?, read_pem(key)?));
        }
        Ok(PreparedTls { config, has_certificate: self.identity.is_some() })
    }
}

/// A client of the service at `remote`, by TLS where that is given: a port alone takes it. Needs a
/// tokio runtime with I/O and time; how long it may take, its caller decides.
///
/// # Errors
/// When there is no answer, or none to be trusted.
pub async fn reach(remote: &Remote, tls: Option<&PreparedTls>) -> Result<Client, ReachError> {
    Ok(Client::new(way(remote, tls).await?))
}

/// The connection of [`reach`].
pub(super) async fn way(remote: &Remote, tls: Option<&PreparedTls>) -> Result<Channel, ReachError> {
    match (remote, tls) {
        (Remote::Unix(path), None) => Ok(channel(path).await?),
        (Remote::Unix(_), Some(_)) => Err(ReachError::TlsOnSocket(remote.clone())),
        (Remote::Port(port), tls) => {
            let unfit = |source| ReachError::Unfit { endpoint: remote.clone(), source };
            let scheme = if tls.is_some() { "https" } else { "http" };
            let address = format!("{scheme}://{port}");
            let mut endpoint = Endpoint::from_shared(address).map_err(unfit)?;
            if let Some(PreparedTls { config, .. }) = tls {
                endpoint = endpoint.tls_config(config.clone()).map_err(unfit)?;
            }
            endpoint.connect().await.map_err(|error| ReachError::Port {
                endpoint: remote.clone(),
                diagnosis: Diagnosis::of(&error, caller(tls)),
            })
        }
    }
}

/// What was in the way of a call over a connection that there was, where the service itself did not
/// refuse it. With TLS, a service says only then that it does not take its caller.
#[must_use]
pub fn in_the_way(
    remote: &Remote,
    tls: Option<&PreparedTls>,
    status: &Status,
) -> Option<ReachError> {
    // What a service says has no source; what went wrong on the way has.
    let source = status.source().filter(|_| matches!(remote, Remote::Port(_)))?;
    let diagnosis = Diagnosis::of_call(source, caller(tls));
    Some(ReachError::Port { endpoint: remote.clone(), diagnosis })
}

fn caller(tls: Option<&PreparedTls>) -> Caller {
    Caller { uses_tls: tls.is_some(), has_certificate: tls.is_some_and(|tls| tls.has_certificate) }
}

/// What `--grpc` of a service there may be: it takes addresses and no names.
fn listening(at: &Remote) -> String {
    let at = at.to_string();
    if at.parse::<std::net::SocketAddr>().is_ok() { at } else { String::from("ADDRESS:PORT") }
}

/// What is in the way, and what helps.
fn words(at: &Remote, diagnosis: &Diagnosis) -> String {
    match diagnosis {
        Diagnosis::NoListener => format!(
            "no service answers at {at}: no process listens there; start one with \
             `telltale serve --grpc {}`, or name its port",
            listening(at)
        ),
        Diagnosis::Unresolved(why) => format!("cannot resolve {at}: {why}"),
        Diagnosis::SpeaksTls => format!("{at} speaks TLS; name its authority with --authority"),
        Diagnosis::SpeaksNoTls => format!(
            "{at} does not speak TLS; leave out --authority, or give the service a certificate \
             (grpc.certificate)"
        ),
        Diagnosis::WantsCertificate => {
            format!("{at} wants a certificate of the caller: --certificate, --key")
        }
        Diagnosis::RefusesCertificate => format!(
            "{at} does not take our certificate; it must be of the authority that the service has \
             for clients (grpc.client_authority), for clients, and valid now"
        ),
        Diagnosis::OtherAuthority => format!(
            "{at}'s certificate is not of the authority that --authority names; name the one that \
             signed it"
        ),
        Diagnosis::OtherName => {
            format!("{at}'s certificate has other names; use one of them, or add this one to it")
        }
        Diagnosis::NotValidNow => {
            format!("{at}'s certificate is not valid now; renew it, or set the clocks right")
        }
        Diagnosis::UnfitCertificate => format!(
            "{at}'s certificate is not fit for a server; make one whose use is serverAuth, or any"
        ),
        Diagnosis::BrokeOff { perhaps } => {
            format!("{at} broke the connection off; perhaps it {perhaps}")
        }
        Diagnosis::System(why) | Diagnosis::Other(why) => {
            format!("no service answers at {at}: {why}")
        }
    }
}
