//! Why there is no connection and no answer: the step, the cause and what to do.

use std::error::Error;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::Duration;

use telltale_wire::call::TokenTextError;
use telltale_wire::telemetry::decode::AnswerError;
use tonic::{Code, Status};

use crate::address::ServiceAddress;
use crate::diagnosis::Diagnosis;

/// Why there is no connection to a service. Where a text names an option of the program `telltale`, such
/// as `--authority`, [`Tls`](crate::Tls) and [`Connector`](crate::Connector) have a method for the same.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// This machine has no directory in which a service could have its socket.
    #[error("no service runs here: there is no runtime directory; start one with `telltale serve`")]
    NoDirectory,
    /// Nothing is at the path.
    #[error("no service at {path}; start one with `telltale serve`")]
    Missing {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The socket belongs to someone who could lie.
    #[error(
        "{path} belongs to user {uid}, who is neither root, nor you, nor the owner of the directory"
    )]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// No answer at a socket.
    #[error("no service answers at {path}; start one with `telltale serve`")]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: tonic::transport::Error,
    },
    /// The path cannot be written as a gRPC address.
    #[error("the path {path} is no address for gRPC; use one of printable ASCII characters")]
    UnfitPath {
        /// The socket.
        path: PathBuf,
    },
    /// Something is in the way to a port.
    #[error("{}", words(.address, .diagnosis))]
    Port {
        /// The port.
        address: ServiceAddress,
        /// What.
        diagnosis: Diagnosis,
    },
    /// The port, or the certificates, cannot be used as they were given.
    #[error("{address} cannot be called")]
    Unfit {
        /// The port.
        address: ServiceAddress,
        /// What is wrong with it.
        #[source]
        source: tonic::transport::Error,
    },
    /// A socket file has no TLS.
    #[error("TLS is for ports; {0} is a socket file")]
    TlsOnSocket(ServiceAddress),
    /// The text is no token.
    #[error(transparent)]
    Token(#[from] TokenTextError),
    /// Anyone on the network could read the token.
    #[error(
        "the token would be sent to {0} for anyone on the network to read; use TLS (--authority)"
    )]
    TokenInTheClear(ServiceAddress),
    /// It took too long.
    #[error("{address} did not answer within {} s", .timeout.as_secs_f64())]
    Late {
        /// Where.
        address: ServiceAddress,
        /// How long it had.
        timeout: Duration,
    },
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The service refused, or its socket broke off.
    #[error("the service did not answer the call: {}", .0.message())]
    Refused(#[source] Box<Status>),
    /// What was in the way to a port is known only since the first call: with TLS, a service says then
    /// that it does not take its caller.
    #[error(transparent)]
    Connection(Box<ConnectError>),
    /// What came is no answer.
    #[error("the service's answer cannot be used")]
    Answer(#[from] AnswerError),
    /// It took too long.
    #[error("the service did not answer within {} s; ask for less, or give it more time", .0.as_secs_f64())]
    Late(Duration),
}

// === impl ConnectError ===

impl ConnectError {
    /// Whether nothing at all is at the path.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether a socket is at the path and no process listens on it: a service that was killed leaves it.
    #[must_use]
    pub fn is_left_behind(&self) -> bool {
        let Self::Silent { path, source } = self else { return false };
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
        let causes = std::iter::successors(source.source(), |error| (*error).source());
        let mut of_the_system = causes.filter_map(<dyn Error>::downcast_ref::<io::Error>);
        is_socket && of_the_system.any(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

// === impl CallError ===

impl CallError {
    /// Whether the service could not make sense of the request.
    #[must_use]
    pub fn is_of_the_request(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code() == Code::InvalidArgument)
    }

    /// Whether the service stops, or has broken off: only what the transport found has causes.
    #[must_use]
    pub fn is_of_an_ended_service(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            Self::Refused(status) => {
                status.code() == Code::Unavailable || status.source().is_some()
            }
            Self::Answer(_) | Self::Late(_) => false,
        }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

/// What `--grpc` of a service there may be: it takes addresses and no names.
fn listening(at: &ServiceAddress) -> String {
    let at = at.to_string();
    if at.parse::<std::net::SocketAddr>().is_ok() { at } else { String::from("ADDRESS:PORT") }
}

/// What is in the way, and what helps.
fn words(at: &ServiceAddress, diagnosis: &Diagnosis) -> String {
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
