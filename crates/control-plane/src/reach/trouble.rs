//! Why a coordinator gives no answer, in words: what is in the way to it, what its own
//! refusals mean, and what helps. Nothing is tried again here.

use std::error::Error;
use std::path::PathBuf;

use telltale_client::diagnosis::{Caller, Diagnosis};
use telltale_wire::cluster::CallError;
use thiserror::Error;
use tonic::{Code, Status};

use super::{CoordinatorAddress, Credentials};

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each says what it is as its text, with the address in it")]
pub enum ReachTrouble {
    #[error("no process listens at {0}; does a coordinator run there?")]
    NoListener(CoordinatorAddress),
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

// === impl ReachTrouble ===

impl ReachTrouble {
    /// What an error means that came while connecting.
    pub(super) fn of(
        address: &CoordinatorAddress,
        credentials: &Credentials,
        error: &(dyn Error + 'static),
    ) -> Self {
        to(address, credentials, Diagnosis::of(error, caller(credentials)))
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
            _ => status.source().map(|source| {
                let diagnosis = Diagnosis::of_call(source, caller(credentials));
                to(address, credentials, diagnosis)
            }),
        }
    }
}

const fn caller(credentials: &Credentials) -> Caller {
    Caller { uses_tls: credentials.tls.is_some(), has_certificate: credentials.has_identity }
}

/// What is in the way to a coordinator.
fn to(
    address: &CoordinatorAddress,
    credentials: &Credentials,
    diagnosis: Diagnosis,
) -> ReachTrouble {
    let address = address.clone();
    let is_socket = matches!(address, CoordinatorAddress::Unix(_));
    match diagnosis {
        // A coordinator closes its socket to users that it does not serve, before a word is spoken.
        Diagnosis::BrokeOff { .. } | Diagnosis::Other(_) if is_socket => {
            let perhaps = "serves its own user and root alone, or has just ended";
            ReachTrouble::BrokeOff { address, perhaps }
        }
        Diagnosis::NoListener => ReachTrouble::NoListener(address),
        Diagnosis::Unresolved(why) => ReachTrouble::Unresolved { address, why },
        Diagnosis::SpeaksTls => ReachTrouble::SpeaksTls(address),
        Diagnosis::SpeaksNoTls => ReachTrouble::SpeaksNoTls(address),
        Diagnosis::WantsCertificate => ReachTrouble::WantsCertificate(address),
        Diagnosis::RefusesCertificate => ReachTrouble::RefusesCertificate(address),
        Diagnosis::OtherAuthority => {
            let file = credentials.authority.clone().unwrap_or_default();
            ReachTrouble::OtherAuthority { address, file }
        }
        Diagnosis::OtherName => ReachTrouble::OtherName(address),
        Diagnosis::NotValidNow => ReachTrouble::NotValidNow(address),
        Diagnosis::UnfitCertificate => ReachTrouble::UnfitCertificate(address),
        Diagnosis::BrokeOff { perhaps } => ReachTrouble::BrokeOff { address, perhaps },
        Diagnosis::System(why) | Diagnosis::Other(why) => ReachTrouble::Other { address, why },
    }
}
