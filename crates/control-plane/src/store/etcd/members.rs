//! The members of an etcd cluster, asked in turn until one answers.
//!
//! What is asked here may be asked twice without harm: reads, renewals, and writes on conditions that
//! the first one makes untrue.

use std::time::Duration;

use telltale_wire::etcd::Member;
use telltale_wire::etcd::message::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
};
use tonic::transport::Channel;
use tonic::{Code, Status};

/// How long one member may take to answer what every leader must hear in time.
const QUICK: Duration = Duration::from_millis(500);
/// How long one member may take to write.
const PATIENT: Duration = Duration::from_secs(1);

/// Members, and which of them answered last.
#[derive(Debug, Clone)]
pub(super) struct Members {
    all: Vec<Member>,
    preferred: usize,
}

/// Why no member has done what it was asked.
#[derive(Debug)]
pub(super) struct MemberFailure {
    /// What the last one said.
    pub(super) status: Status,
    /// Whether certainly none of them has done it.
    pub(super) certain: bool,
}

// === impl Members ===

impl Members {
    /// The members at the other ends of these channels, of which there is at least one.
    pub(super) fn new(channels: impl Iterator<Item = Channel>) -> Self {
        Self { all: channels.map(Member::new).collect(), preferred: 0 }
    }

    pub(super) async fn range(
        &mut self,
        request: &RangeRequest,
    ) -> Result<RangeResponse, MemberFailure> {
        self.ask(QUICK, |mut member| async move { member.range(request).await }).await
    }

    pub(super) async fn transact(
        &mut self,
        request: &TxnRequest,
    ) -> Result<TxnResponse, MemberFailure> {
        self.ask(PATIENT, |mut member| async move { member.transact(request).await }).await
    }

    pub(super) async fn grant(&mut self, ttl: i64) -> Result<LeaseGrantResponse, MemberFailure> {
        let request = &LeaseGrantRequest { ttl };
        self.ask(QUICK, |mut member| async move { member.grant(request).await }).await
    }

    pub(super) async fn revoke(&mut self, id: i64) -> Result<(), MemberFailure> {
        let request = &LeaseRevokeRequest { id };
        self.ask(QUICK, |mut member| async move { member.revoke(request).await }).await
    }

    pub(super) async fn keep_alive(
        &mut self,
        id: i64,
    ) -> Result<LeaseKeepAliveResponse, MemberFailure> {
        let request = &LeaseKeepAliveRequest { id };
        self.ask(QUICK, |mut member| async move { member.keep_alive(request).await }).await
    }

    /// Asks the member that answered last, then the others, each once.
    async fn ask<T, F: Future<Output = Result<T, Status>>>(
        &mut self,
        timeout: Duration,
        question: impl Fn(Member) -> F,
    ) -> Result<T, MemberFailure> {
        let mut certain = true;
        let mut last = Status::unavailable("it has no members");
        for _ in 0..self.all.len() {
            let preferred = self.preferred;
            let member = self.all.get(preferred).expect("the preferred member is one of them");
            let answer = tokio::time::timeout(timeout, question(member.clone())).await;
            let status = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded("a member did not answer in time"),
            };
            if is_refusal(&status) {
                return Err(MemberFailure { status, certain });
            }
            certain = false;
            last = status;
            self.preferred = (preferred + 1) % self.all.len();
        }
        Err(MemberFailure { status: last, certain })
    }
}

/// Whether a member has checked what it was asked and will not do it, so that others will not either.
fn is_refusal(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Unimplemented
    )
}
