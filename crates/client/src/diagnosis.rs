//! What stands between a caller and the program at a port: what each kind of error of the network, of
//! TLS and of HTTP/2 means. The words for it are the caller's; nothing is tried again here.

use std::error::Error;
use std::io::{self, ErrorKind};

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError};

/// Causes of an error that are checked.
const MAX_CAUSES: usize = 16;
/// How the TLS library says which alert it was sent. The HTTP/2 library keeps only this text of it.
const ALERT: &str = "received fatal alert: ";
/// What the HTTP/2 library says of a TLS alert, which it reads as the head of a frame.
const TLS_AS_A_FRAME: &str = "frame with invalid size";

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Diagnosis {
    /// The port has no listener.
    NoListener,
    /// The name cannot be looked up, for this reason.
    Unresolved(String),
    /// TLS is spoken there, and not by the caller.
    SpeaksTls,
    /// TLS is spoken by the caller, and not there.
    SpeaksNoTls,
    /// Callers are to show a certificate.
    WantsCertificate,
    /// The caller's certificate is not taken.
    RefusesCertificate,
    /// The certificate there is not of the caller's authority.
    OtherAuthority,
    /// The certificate there has other names.
    OtherName,
    /// The certificate there is not valid yet, or not any more.
    NotValidNow,
    /// The certificate there is not one for servers.
    UnfitCertificate,
    /// The connection was broken off without a reason; this may be it, as the end of a sentence about
    /// who did so.
    BrokeOff {
        /// What perhaps is so.
        perhaps: &'static str,
    },
    /// The system does not let the caller connect: no permission, no such socket, no descriptor.
    System(String),
    /// Something else, in the words of its source.
    Other(String),
}

/// What the caller brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// It speaks TLS.
    pub uses_tls: bool,
    /// It has a certificate of its own.
    pub has_certificate: bool,
}

// === impl Diagnosis ===

impl Diagnosis {
    /// What an error means that came while connecting.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static), caller: Caller) -> Self {
        let causes = causes(error);
        let known = causes.iter().find_map(|cause| known(*cause, caller));
        known.unwrap_or_else(|| {
            let last = causes.last().map_or_else(|| error.to_string(), ToString::to_string);
            Self::Other(last)
        })
    }

    /// What an error means that came with a call, at a port. The alert of TLS that has the reason may
    /// be lost with the connection.
    #[must_use]
    pub fn of_call(error: &(dyn Error + 'static), caller: Caller) -> Self {
        match Self::of(error, caller) {
            Self::Other(_) => Self::BrokeOff { perhaps: perhaps(caller) },
            known => known,
        }
    }
}

fn perhaps(caller: Caller) -> &'static str {
    match (caller.uses_tls, caller.has_certificate) {
        (false, _) => {
            "speaks TLS (name its authority with --authority), or is a port for HTTP and not for gRPC"
        }
        (true, false) => "wants a certificate of the caller: --certificate, --key",
        (true, true) => "does not take our certificate, or has just ended",
    }
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

fn known(cause: &(dyn Error + 'static), caller: Caller) -> Option<Diagnosis> {
    if let Some(error) = cause.downcast_ref::<TlsError>() {
        return Some(of_tls(error, caller));
    }
    let text = cause.to_string();
    if let Some((_, alert)) = text.split_once(ALERT) {
        return of_alert(alert, caller);
    }
    if text == "dns error" {
        let why = causes(cause).last().map_or(text, ToString::to_string);
        return Some(Diagnosis::Unresolved(why));
    }
    if !caller.uses_tls && text.contains(TLS_AS_A_FRAME) {
        return Some(Diagnosis::SpeaksTls);
    }
    let error = cause.downcast_ref::<io::Error>().filter(|error| error.get_ref().is_none());
    match error.map(io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => Some(Diagnosis::NoListener),
        Some(ErrorKind::PermissionDenied | ErrorKind::NotFound) => Some(Diagnosis::System(text)),
        Some(_) if error.is_some_and(is_out_of_descriptors) => Some(Diagnosis::System(text)),
        _ if caller.uses_tls && text.contains("tls handshake eof") => Some(Diagnosis::SpeaksNoTls),
        _ => None,
    }
}

/// Whether the process or the system has no descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    let [process, system] = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    error
        .raw_os_error()
        .is_some_and(|code| [process, system].iter().any(|one| one.raw_os_error() == code))
}

fn of_tls(error: &TlsError, caller: Caller) -> Diagnosis {
    match error {
        TlsError::InvalidMessage(_) => Diagnosis::SpeaksNoTls,
        TlsError::AlertReceived(alert) => of_description(*alert, caller),
        TlsError::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Diagnosis::OtherAuthority
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Diagnosis::OtherName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Diagnosis::NotValidNow,
            _ => Diagnosis::UnfitCertificate,
        },
        _ => Diagnosis::Other(String::from("it and this program do not agree on how to speak TLS")),
    }
}

fn of_description(alert: AlertDescription, caller: Caller) -> Diagnosis {
    // Its name is what its debugging text is, and that of the alerts that are only text.
    of_alert(&format!("{alert:?}"), caller)
        .unwrap_or_else(|| Diagnosis::Other(String::from("it refuses our TLS")))
}

/// What an alert means, by its name.
fn of_alert(alert: &str, caller: Caller) -> Option<Diagnosis> {
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
    is_of_one.then_some(match caller.has_certificate {
        true => Diagnosis::RefusesCertificate,
        false => Diagnosis::WantsCertificate,
    })
}
