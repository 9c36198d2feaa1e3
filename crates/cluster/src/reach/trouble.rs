//! Why a coordinator gives no answer, as a person is told it: what each kind of error of the network,
//! of TLS and of gRPC means, and what helps. Nothing is tried again here.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use telltale_wire::cluster::CallError;
use thiserror::Error;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError};
use tonic::{Code, Status};

use super::{CoordinatorAddress, Credentials};

/// Causes of an error that are looked at.
const MAX_CAUSES: usize = 16;
/// How the TLS library says which alert it was sent. The HTTP/2 library keeps only this text of it.
const ALERT: &str = "received fatal alert: ";
/// What the HTTP/2 library says of a TLS alert, which it reads as the head of a frame.
const TLS_AS_A_FRAME: &str = "frame with invalid size";

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each says what it is as its text, with the address in it")]
pub enum Trouble {
    #[error("nobody listens at {0}; does a coordinator run there?")]
    NobodyListens(CoordinatorAddress),
    #[error("cannot resolve {address}: {why}")]
    Unresolved { address: CoordinatorAddress, why: String },
    #[error("{0} speaks TLS; name its authority with --authority")]
    SpeaksTls(CoordinatorAddress),
    #[error("{address} broke the connection off; perhaps it {perhaps}")]
    BrokeOff { address: CoordinatorAddress, perhaps: &'static str },
    #[error("{0} does not speak TLS; leave out --authority, or give the coordinator a certificate")]
    SpeaksNoTls(CoordinatorAddress),
    #[error("{0} wants a certificate of the caller: --certificate, --key")]
    WantsCertificate(CoordinatorAddress),
    #[error(
        "{0} does not take our certificate; it must be of the authority that the coordinator has for \
         callers, for clients, and valid now"
    )]
    RefusesCertificate(CoordinatorAddress),
    #[error("{address}'s certificate is not of the authority in {file}")]
    OtherAuthority { address: CoordinatorAddress, file: PathBuf },
    #[error("{0}'s certificate has other names; use one of them, or add this one to it")]
    OtherName(CoordinatorAddress),
    #[error("{0}'s certificate is not valid now; renew it, or set the clocks right")]
    NotValidNow(CoordinatorAddress),
    #[error("{0}'s certificate is not fit for a server; make one as docs/cluster-deploy.md says")]
    UnfitCertificate(CoordinatorAddress),
    #[error("the coordinator at {0} refuses this token; copy the coordinator's")]
    WrongToken(CoordinatorAddress),
    #[error("the coordinator at {0} wants its token: --token-file")]
    WantsToken(CoordinatorAddress),
    #[error("no answer from {address}: {why}")]
    Other { address: CoordinatorAddress, why: String },
}

// === impl Trouble ===

impl Trouble {
    /// What an error means that came while connecting.
    pub(super) fn of(
        address: &CoordinatorAddress,
        credentials: &Credentials,
        error: &(dyn Error + 'static),
    ) -> Self {
        let causes = causes(error);
        let known = causes.iter().find_map(|cause| known(address, credentials, *cause));
        known.unwrap_or_else(|| {
            let last = causes.last().map_or_else(|| error.to_string(), ToString::to_string);
            Self::Other { address: address.clone(), why: last }
        })
    }

    /// What a call's error means, where it is not the coordinator's own word about what was asked.
    pub(crate) fn of_call(
        address: &CoordinatorAddress,
        credentials: &Credentials,
        error: &CallError,
    ) -> Option<Self> {
        let CallError::Refused(status) = error else { return None };
        let status: &Status = status;
        match status.code() {
            Code::Unauthenticated if credentials.token.is_some() => {
                Some(Self::WrongToken(address.clone()))
            }
            Code::Unauthenticated => Some(Self::WantsToken(address.clone())),
            // What a coordinator says has no source; what went wrong on the way has.
            _ => status.source().map(|source| match Self::of(address, credentials, source) {
                // The alert with its reason may be lost with the connection.
                Self::Other { .. } if is_port(address) => Self::broke_off(address, credentials),
                trouble => trouble,
            }),
        }
    }

    fn broke_off(address: &CoordinatorAddress, credentials: &Credentials) -> Self {
        let perhaps = match (&credentials.tls, credentials.has_identity) {
            (None, _) => "speaks TLS; name its authority with --authority",
            (Some(_), false) => "wants a certificate of the caller: --certificate, --key",
            (Some(_), true) => "does not take our certificate, or has just ended",
        };
        Self::BrokeOff { address: address.clone(), perhaps }
    }
}

const fn is_port(address: &CoordinatorAddress) -> bool {
    matches!(address, CoordinatorAddress::Port(_))
}

/// An error and its causes, also those that the standard library wraps without naming them.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut all = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next.filter(|_| all.len() < MAX_CAUSES) {
        all.push(cause);
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    all
}

fn known(
    address: &CoordinatorAddress,
    credentials: &Credentials,
    cause: &(dyn Error + 'static),
) -> Option<Trouble> {
    if let Some(error) = cause.downcast_ref::<TlsError>() {
        return of_tls(address, credentials, error);
    }
    let text = cause.to_string();
    if let Some((_, alert)) = text.split_once(ALERT) {
        return of_alert(address, credentials, alert);
    }
    if text == "dns error" {
        let why = causes(cause).last().map_or(text, ToString::to_string);
        return Some(Trouble::Unresolved { address: address.clone(), why });
    }
    let uses_tls = credentials.tls.is_some();
    if !uses_tls && text.contains(TLS_AS_A_FRAME) {
        return Some(Trouble::SpeaksTls(address.clone()));
    }
    let error = cause.downcast_ref::<io::Error>().filter(|error| error.get_ref().is_none());
    match error.map(io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => Some(Trouble::NobodyListens(address.clone())),
        _ if uses_tls && text.contains("tls handshake eof") => {
            Some(Trouble::SpeaksNoTls(address.clone()))
        }
        _ => None,
    }
}

fn of_tls(
    address: &CoordinatorAddress,
    credentials: &Credentials,
    error: &TlsError,
) -> Option<Trouble> {
    let address = address.clone();
    Some(match error {
        TlsError::InvalidMessage(_) => Trouble::SpeaksNoTls(address),
        TlsError::AlertReceived(alert) => of_description(&address, credentials, *alert),
        TlsError::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                let file = credentials.authority.clone().unwrap_or_default();
                Trouble::OtherAuthority { address, file }
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Trouble::OtherName(address)
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Trouble::NotValidNow(address),
            _ => Trouble::UnfitCertificate(address),
        },
        _ => {
            let why = String::from("it and this program do not agree on how to speak TLS");
            Trouble::Other { address, why }
        }
    })
}

fn of_description(
    address: &CoordinatorAddress,
    credentials: &Credentials,
    alert: AlertDescription,
) -> Trouble {
    // Its name is what its debugging text is, and that of the alerts that are only text.
    of_alert(address, credentials, &format!("{alert:?}")).unwrap_or_else(|| {
        let why = String::from("it refuses our TLS");
        Trouble::Other { address: address.clone(), why }
    })
}

/// What an alert means, by its name.
fn of_alert(
    address: &CoordinatorAddress,
    credentials: &Credentials,
    alert: &str,
) -> Option<Trouble> {
    const OF_CERTIFICATES: [&str; 8] = [
        "AccessDenied",
        "BadCertificate",
        "CertificateExpired",
        "CertificateRequired",
        "CertificateRevoked",
        "CertificateUnknown",
        "DecryptError",
        "UnknownCA",
    ];
    let is_of_one = OF_CERTIFICATES.iter().any(|name| alert.starts_with(name));
    is_of_one.then(|| match credentials.has_identity {
        true => Trouble::RefusesCertificate(address.clone()),
        false => Trouble::WantsCertificate(address.clone()),
    })
}
