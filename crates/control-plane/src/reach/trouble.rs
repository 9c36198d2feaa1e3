//! Why a coordinator gives no answer, as a person is told it: what is in the way to it, what its own
//! refusals mean, and what helps. Nothing is tried again here.

use std::error::Error;
use std::path::PathBuf;

use telltale_server::obstacle::{Caller, Obstacle};
use telltale_wire::cluster::CallError;
use thiserror::Error;
use tonic::{Code, Status};

use super::{CoordinatorAddress, Credentials};

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each says what it is as its text, with the address in it")]
pub enum ReachTrouble {
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

// === impl ReachTrouble ===

impl ReachTrouble {
    /// What an error means that came while connecting.
    pub(super) fn of(
        address: &CoordinatorAddress,
        credentials: &Credentials,
        error: &(dyn Error + 'static),
    ) -> Self {
        to(address, credentials, Obstacle::of(error, caller(credentials)))
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
                let caller = caller(credentials);
                let obstacle = match is_port(address) {
                    true => Obstacle::of_call(source, caller),
                    false => Obstacle::of(source, caller),
                };
                to(address, credentials, obstacle)
            }),
        }
    }
}

const fn is_port(address: &CoordinatorAddress) -> bool {
    matches!(address, CoordinatorAddress::Port(_))
}

const fn caller(credentials: &Credentials) -> Caller {
    Caller { uses_tls: credentials.tls.is_some(), has_certificate: credentials.has_identity }
}

/// What is in the way to a coordinator.
fn to(address: &CoordinatorAddress, credentials: &Credentials, obstacle: Obstacle) -> ReachTrouble {
    let address = address.clone();
    match obstacle {
        Obstacle::NobodyListens => ReachTrouble::NobodyListens(address),
        Obstacle::Unresolved(why) => ReachTrouble::Unresolved { address, why },
        Obstacle::SpeaksTls => ReachTrouble::SpeaksTls(address),
        Obstacle::SpeaksNoTls => ReachTrouble::SpeaksNoTls(address),
        Obstacle::WantsCertificate => ReachTrouble::WantsCertificate(address),
        Obstacle::RefusesCertificate => ReachTrouble::RefusesCertificate(address),
        Obstacle::OtherAuthority => {
            let file = credentials.authority.clone().unwrap_or_default();
            ReachTrouble::OtherAuthority { address, file }
        }
        Obstacle::OtherName => ReachTrouble::OtherName(address),
        Obstacle::NotValidNow => ReachTrouble::NotValidNow(address),
        Obstacle::UnfitCertificate => ReachTrouble::UnfitCertificate(address),
        Obstacle::BrokeOff { perhaps } => ReachTrouble::BrokeOff { address, perhaps },
        Obstacle::Other(why) => ReachTrouble::Other { address, why },
    }
}
