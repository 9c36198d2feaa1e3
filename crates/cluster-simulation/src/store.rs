//! The store that both coordinators share: one state, one revision, one lease.

use std::time::Duration;

use telltale_cluster::epoch::{Revision, Term};
use telltale_cluster::stored::{Decision, DecisionNumber, StoreOutcome, StoredState};

use crate::clock::TrueTime;

/// How long the leader's lease lasts without being renewed.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// How the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StoreTrouble {
    /// Not at all.
    #[default]
    None,
    /// Its disk is full: it refuses to write.
    Full,
    /// It writes, and breaks before it says so.
    Torn,
}

/// The store.
#[derive(Debug, Default)]
pub(crate) struct Store {
    state: Option<StoredState>,
    revision: u64,
    /// The decision that was stored last.
    last: Option<(Term, DecisionNumber)>,
    lease: Option<Lease>,
    terms: u64,
    /// How it fails at present.
    pub(crate) trouble: StoreTrouble,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    replica: usize,
    term: Term,
    until: TrueTime,
}

/// A state and its revision.
pub(crate) type StoreCopy = (Option<StoredState>, u64);

/// What a coordinator that holds the lease receives.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    /// Its term.
    pub(crate) term: Term,
    /// What is stored.
    pub(crate) stored: Option<(StoredState, Revision)>,
}

impl Store {
    /// Gives or renews the lease, unless another coordinator has it.
    pub(crate) fn campaign(
        &mut self,
        now: TrueTime,
        replica: usize,
        renews: Option<Term>,
    ) -> Option<Grant> {
        let held = self.lease.filter(|lease| lease.until > now);
        let term = match held {
            Some(lease) if lease.replica == replica && renews == Some(lease.term) => lease.term,
            // Its own lease of an earlier life must run out too.
            Some(_) => return None,
            None if renews.is_some() => return None,
            None => {
                self.terms += 1;
                Term::new(self.terms)
            }
        };
        self.lease = Some(Lease { replica, term, until: now.after(LEASE) });
        let stored = self.state.clone().map(|state| (state, Revision::new(self.revision)));
        Some(Grant { term, stored })
    }

    /// Ends a lease.
    pub(crate) fn resign(&mut self, term: Term) {
        self.lease = self.lease.filter(|lease| lease.term != term);
    }

    /// Who has the lease.
    #[must_use]
    pub(crate) fn leader(&self, now: TrueTime) -> Option<(usize, Term)> {
        self.lease.filter(|lease| lease.until > now).map(|lease| (lease.replica, lease.term))
    }

    /// Stores a decision if the revision is the one it was made for. The second value says whether the
    /// state was changed, whatever the coordinator receives.
    pub(crate) fn put(&mut self, decision: &Decision, any_revision: bool) -> (StoreOutcome, bool) {
        let identity = Some((decision.term, decision.number));
        if self.last == identity {
            return (StoreOutcome::Stored(Revision::new(self.revision)), false);
        }
        if self.trouble == StoreTrouble::Full {
            return (StoreOutcome::Failed, false);
        }
        if decision.expected != Revision::new(self.revision) && !any_revision {
            return (StoreOutcome::Conflict, false);
        }
        self.revision += 1;
        self.last = identity;
        self.state = Some(decision.state.clone());
        if self.trouble == StoreTrouble::Torn {
            return (StoreOutcome::Unknown, true);
        }
        (StoreOutcome::Stored(Revision::new(self.revision)), true)
    }

    /// What is there, to be put back later.
    pub(crate) fn copy(&self) -> StoreCopy {
        (self.state.clone(), self.revision)
    }

    /// An operator puts a copy in the place of what is there, or an empty store. Terms count on.
    pub(crate) fn replace(&mut self, copy: StoreCopy) {
        (self.state, self.revision) = copy;
        (self.last, self.lease) = (None, None);
    }

    /// What is stored.
    #[must_use]
    pub(crate) const fn state(&self) -> Option<&StoredState> {
        self.state.as_ref()
    }
}
