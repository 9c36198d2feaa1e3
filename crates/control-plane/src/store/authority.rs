//! Until when a coordinator may lead, by its own clock.
//!
//! The clock goes on while the machine sleeps (`CLOCK_BOOTTIME`, clock_gettime(2)), as the clock of
//! the one that gave the lease does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use telltale_cluster::epoch::Term;

const NEVER_NS: u64 = 0;
const FOR_EVER_NS: u64 = u64::MAX;

/// Says whether this coordinator may lead at this moment.
#[derive(Debug, Clone, Default)]
pub struct Authority {
    shared: Arc<AuthorityShared>,
}

#[derive(Debug, Default)]
struct AuthorityShared {
    /// The term of the leadership that began last.
    term: AtomicU64,
    until_ns: AtomicU64,
}

/// A moment on the clock of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeaseMoment(u64);

impl LeaseMoment {
    /// Now.
    pub(super) fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let rest_ns = u64::try_from(now.tv_nsec).unwrap_or_default();
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(rest_ns))
    }

    /// The moment `duration` later.
    pub(super) fn after(self, duration: Duration) -> Self {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(duration_ns))
    }
}

impl Authority {
    /// Whether it may lead. False from the moment on at which another coordinator could.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Whether it may lead in this term, and not in a later one that its task has not heard of yet.
    #[must_use]
    pub fn holds_in(&self, term: Term) -> bool {
        // The end is read first: a later term's end is only there once the term is.
        self.holds() && self.shared.term.load(Ordering::Acquire) == term.number()
    }

    /// How long it may lead, if nothing else happens.
    pub(super) fn remaining(&self) -> Duration {
        let until_ns = self.shared.until_ns.load(Ordering::Acquire);
        Duration::from_nanos(until_ns.saturating_sub(LeaseMoment::now().0))
    }

    /// A leadership begins. It may lead once that is extended.
    pub(super) fn begin(&self, term: Term) {
        self.end();
        self.shared.term.store(term.number(), Ordering::Release);
    }

    /// It may lead until this moment.
    pub(super) fn extend(&self, until: LeaseMoment) {
        self.shared.until_ns.store(until.0, Ordering::Release);
    }

    /// It may lead until it gives that up.
    pub(super) fn extend_for_ever(&self) {
        self.shared.until_ns.store(FOR_EVER_NS, Ordering::Release);
    }

    /// It may not lead.
    pub(super) fn end(&self) {
        self.shared.until_ns.store(NEVER_NS, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_by_itself() {
        let authority = Authority::default();
        assert!(!authority.holds());
        authority.extend(LeaseMoment::now().after(Duration::from_secs(60)));
        assert!(authority.holds());
        authority.extend(LeaseMoment::now());
        assert!(!authority.holds());
        authority.begin(Term::new(7));
        assert!(!authority.holds_in(Term::new(7)));
        authority.extend_for_ever();
        assert!(authority.clone().holds());
        assert!(authority.holds_in(Term::new(7)) && !authority.holds_in(Term::new(6)));
        authority.end();
        assert!(!authority.holds());
    }
}
