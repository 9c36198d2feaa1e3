//! The store of several coordinators: one of them leads, by a lease of etcd, and what it decides is
//! written on the condition that it still leads and that nothing else was decided.
//!
//! A term is the revision at which etcd made the leader's key, so it only grows. A leader renews its
//! lease well before it runs out, and stops leading when its own clock says that it could have.

mod actor;
mod keys;
mod lease;
mod members;

use std::error::Error as _;
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::decode::StateError;
use members::Members;

pub(super) use actor::run;

/// Members that may be named.
pub const MAX_MEMBERS: usize = 16;
/// The shortest lease. etcd makes shorter ones longer, at its usual heartbeat.
pub const LEAST_LEASE: Duration = Duration::from_secs(2);
/// The longest lease.
pub const LONGEST_LEASE: Duration = Duration::from_secs(60);
/// Bytes of the address that a leader reports.
const MAX_ADDRESS_BYTES: usize = 512;
/// Bytes of the prefix of all keys.
const MAX_PREFIX_BYTES: usize = 512;
/// How long it may take to reach a member.
const CONNECTING: Duration = Duration::from_millis(500);

/// How an etcd cluster is reached, as a person writes it.
#[derive(Debug, Clone)]
pub struct EtcdPlan {
    /// Its members, as `http://HOST:PORT` or `https://HOST:PORT`.
    pub members: Vec<String>,
    /// What all keys begin with. One job, one prefix.
    pub prefix: String,
    /// Where agents and other coordinators reach this coordinator.
    pub address: String,
    /// How long leadership lasts without being renewed, in whole seconds.
    pub lease: Duration,
    /// What TLS takes; needed for `https`.
    pub tls: Option<EtcdTls>,
}

/// What TLS to etcd takes, as PEM.
#[derive(Clone)]
pub struct EtcdTls {
    /// The certificates that the members' have to descend from.
    pub authorities: Vec<u8>,
    /// This coordinator's certificate and its key, where etcd asks for one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not be in a log.
        formatter.debug_struct("EtcdTls").field("identity", &self.identity.is_some()).finish()
    }
}

/// An etcd cluster that can be asked.
#[derive(Debug, Clone)]
pub struct EtcdSettings {
    endpoints: Vec<Endpoint>,
    prefix: String,
    address: String,
    lease: Duration,
}

/// Why an etcd cluster cannot be asked as it was written.
#[derive(Debug, thiserror::Error)]
pub enum EtcdSettingsError {
    /// No members, or too many.
    #[error("{count} members of etcd are named; 1 to {MAX_MEMBERS} can be")]
    Members {
        /// How many.
        count: usize,
    },
    /// A member's address is none.
    #[error("{member:?} is no member of etcd; write http://HOST:PORT or https://HOST:PORT")]
    Member {
        /// What was written.
        member: String,
        /// What is wrong with it; none where it begins with neither scheme.
        #[source]
        source: Option<tonic::transport::Error>,
    },
    /// `https` without certificates, or certificates without `https`.
    #[error("member {member} is written as {scheme}, and certificates are {given}")]
    Scheme {
        /// The member.
        member: String,
        /// Its scheme.
        scheme: &'static str,
        /// Whether there are any.
        given: &'static str,
    },
    /// The certificates cannot be used.
    #[error("the certificates for etcd cannot be used; they must be PEM")]
    Tls(#[source] tonic::transport::Error),
    /// The lease is too short or too long.
    #[error("the lease must last whole seconds, 2 to 60")]
    Lease,
    /// The prefix or the address is empty, too long, or has control characters.
    #[error("the {what} must have 1 to 512 printable ASCII characters")]
    Text {
        /// Which.
        what: &'static str,
    },
}

/// What is wrong with etcd.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// It is out of reach, or refuses. What the last member said is no source: its text is that of gRPC,
    /// with what is said here once more.
    #[error("etcd could not {step}: {}; {}", said(status), remedy(status))]
    Refused {
        /// What was asked.
        step: &'static str,
        /// What the last member said.
        status: Box<tonic::Status>,
    },
    /// What is stored makes no sense.
    #[error("what etcd holds at {key} cannot be used; another program may have written it")]
    Stored {
        /// Where.
        key: String,
        /// Why.
        #[source]
        source: StateError,
    },
    /// An answer is not one to the question.
    #[error("etcd's answer to {step} lacks a part; is it etcd, of version 3.4 or newer?")]
    Answer {
        /// What was asked.
        step: &'static str,
    },
    /// The lease was not renewed in time.
    #[error("the lease in etcd was not renewed in time, so this coordinator leads no longer")]
    Expired,
    /// The lease is gone.
    #[error("etcd has ended the lease, so this coordinator leads no longer")]
    Gone,
}

/// What a member said, and what lies at the bottom of it where none was reached. What is between the two
/// says the same in words of gRPC.
fn said(status: &tonic::Status) -> String {
    let root = std::iter::successors(status.source(), |cause| (*cause).source()).last();
    match root.map(ToString::to_string).filter(|root| !status.message().contains(root)) {
        Some(root) => format!("{}: {root}", status.message()),
        None => status.message().to_owned(),
    }
}

/// What to do about an answer; etcd's texts are those of its `rpctypes/error.go`.
fn remedy(status: &tonic::Status) -> &'static str {
    use tonic::Code;
    match status.code() {
        Code::ResourceExhausted => {
            "compact its history, defragment it, and disarm the alarm (etcdctl), or raise its quota"
        }
        Code::InvalidArgument => "where a request is too large, raise its --max-request-bytes",
        Code::PermissionDenied | Code::Unauthenticated => {
            "give the coordinator a certificate whose name may write its prefix"
        }
        _ => "look at its members (etcdctl endpoint health)",
    }
}

// === impl EtcdSettings ===

impl EtcdSettings {
    /// Checks a plan; nothing is connected to.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn new(plan: &EtcdPlan) -> Result<Self, EtcdSettingsError> {
        let count = plan.members.len();
        if count == 0 || count > MAX_MEMBERS {
            return Err(EtcdSettingsError::Members { count });
        }
        let whole_seconds = plan.lease.subsec_nanos() == 0;
        if !whole_seconds || plan.lease < LEAST_LEASE || plan.lease > LONGEST_LEASE {
            return Err(EtcdSettingsError::Lease);
        }
        for (what, text, most) in [
            ("prefix", &plan.prefix, MAX_PREFIX_BYTES),
            ("address", &plan.address, MAX_ADDRESS_BYTES),
        ] {
            if !is_printable(text, most) {
                return Err(EtcdSettingsError::Text { what });
            }
        }
        let members = plan.members.iter();
        let endpoints = members.map(|member| endpoint(member, plan.tls.as_ref()));
        Ok(Self {
            endpoints: endpoints.collect::<Result<_, _>>()?,
            prefix: plan.prefix.trim_end_matches('/').to_owned(),
            address: plan.address.clone(),
            lease: plan.lease,
        })
    }

    fn members(&self) -> Members {
        Members::new(self.endpoints.iter().map(Endpoint::connect_lazy))
    }
}

fn is_printable(text: &str, most_bytes: usize) -> bool {
    (1..=most_bytes).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn endpoint(member: &str, tls: Option<&EtcdTls>) -> Result<Endpoint, EtcdSettingsError> {
    let (scheme, secure) = if member.starts_with("https://") {
        ("https", true)
    } else if member.starts_with("http://") {
        ("http", false)
    } else {
        return Err(EtcdSettingsError::Member { member: member.to_owned(), source: None });
    };
    if secure != tls.is_some() {
        let given = if secure { "not given" } else { "given" };
        return Err(EtcdSettingsError::Scheme { member: member.to_owned(), scheme, given });
    }
    let endpoint = Endpoint::from_shared(member.to_owned()).map_err(|source| {
        EtcdSettingsError::Member { member: member.to_owned(), source: Some(source) }
    })?;
    let endpoint = endpoint.connect_timeout(CONNECTING).tcp_nodelay(true);
    let Some(tls) = tls else { return Ok(endpoint) };
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.authorities));
    if let Some((certificate, key)) = &tls.identity {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    endpoint.tls_config(config).map_err(EtcdSettingsError::Tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(members: &[&str]) -> EtcdPlan {
        EtcdPlan {
            members: members.iter().map(ToString::to_string).collect(),
            prefix: "/telltale/job".into(),
            address: "host:4321".into(),
            lease: LEAST_LEASE,
            tls: None,
        }
    }

    #[tokio::test]
    async fn what_cannot_work_is_refused_before_anything_is_connected_to() {
        let good = plan(&["http://127.0.0.1:2379"]);
        assert!(EtcdSettings::new(&good).is_ok());
        let tls = EtcdTls { authorities: Vec::new(), identity: None };
        let cases = [
            (plan(&[]), "0 members"),
            (plan(&["http://a:1"; 17]), "17 members"),
            (plan(&["127.0.0.1:2379"]), "write http://HOST:PORT"),
            (plan(&["http://a b"]), "write http://HOST:PORT"),
            (plan(&["https://a:1"]), "not given"),
            (EtcdPlan { tls: Some(tls), ..good.clone() }, "written as http"),
            (EtcdPlan { lease: Duration::from_millis(2500), ..good.clone() }, "whole seconds"),
            (EtcdPlan { lease: Duration::from_secs(1), ..good.clone() }, "2 to 60"),
            (EtcdPlan { prefix: String::new(), ..good.clone() }, "the prefix"),
            (EtcdPlan { address: "a\nb".into(), ..good }, "the address"),
        ];
        for (plan, expected) in cases {
            let error = EtcdSettings::new(&plan).unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} has no {expected:?}");
        }
    }
}
