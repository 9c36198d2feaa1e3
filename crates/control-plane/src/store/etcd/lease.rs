//! A lease that is held: renewed well before it runs out, and not relied on for as long as it lasts.

use std::time::Duration;

use super::EtcdError;
use super::members::Members;
use crate::store::authority::{Authority, LeaseMoment};

/// A lease is renewed this many times while it lasts.
const RENEWALS: u32 = 4;
/// How long after a renewal that failed the next is tried.
const RETRY: Duration = Duration::from_millis(50);

/// A lease that etcd has given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) id: i64,
    /// Until when it may be relied on, by this machine's clock.
    pub(super) until: LeaseMoment,
}

impl Lease {
    /// Asks for a lease.
    pub(super) async fn grant(members: &mut Members, length: Duration) -> Result<Self, EtcdError> {
        let asked = LeaseMoment::now();
        let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
        let granted = members.grant(seconds).await.map_err(|failure| EtcdError::Refused {
            step: "give a lease",
            status: Box::new(failure.status),
        })?;
        let until = reliable(asked, granted.ttl);
        let until = until.ok_or(EtcdError::Answer { step: "give a lease" })?;
        Ok(Self { id: granted.id, until })
    }

    /// Renews the lease and extends the authority with it; returns when it is lost.
    pub(super) async fn hold(
        self,
        mut members: Members,
        length: Duration,
        authority: Authority,
    ) -> EtcdError {
        let mut pause = length / RENEWALS;
        loop {
            tokio::time::sleep(pause.min(authority.remaining())).await;
            let remaining = authority.remaining();
            if remaining.is_zero() {
                return EtcdError::Expired;
            }
            let asked = LeaseMoment::now();
            // The clock that says when it ends is not the one that timers go by.
            let renewed = tokio::time::timeout(remaining, members.keep_alive(self.id)).await;
            pause = match renewed {
                Ok(Ok(answer)) if answer.id != self.id || answer.ttl <= 0 => {
                    return EtcdError::Gone;
                }
                Ok(Ok(answer)) => {
                    if let Some(until) = reliable(asked, answer.ttl)
                        && authority.holds()
                    {
                        authority.extend(until);
                    }
                    length / RENEWALS
                }
                Ok(Err(_)) | Err(_) => RETRY,
            };
        }
    }
}

/// Until when a lease may be relied on that lasts `ttl` seconds from some time after it was `asked`
/// for: a tenth less, for clocks that differ.
fn reliable(asked: LeaseMoment, ttl: i64) -> Option<LeaseMoment> {
    let length = Duration::from_secs(u64::try_from(ttl).ok().filter(|seconds| *seconds > 0)?);
    Some(asked.after(length - length / 10))
}
