//! The numbers that distinguish old from new: epochs of the job, terms of its leaders, revisions of the
//! stored state.

use std::fmt;
use std::num::NonZeroU64;

/// One life of the job between two restarts. Reports, acknowledgements, maps of ranks and ports
/// carry it, and whatever carries another than the current one is not acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch in which nothing has run yet.
    pub const NONE_RAN: Self = Self(0);

    /// The last that a message may name: no job comes near it, and readers of JSON hold it exactly.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The epoch with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The epoch that follows.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Tells a job from another of the same name: drawn by the driver, and stored with the job's first decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobIdentity(NonZeroU64);

impl JobIdentity {
    /// The identity with this number.
    #[must_use]
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for JobIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// Which version of the stored state something was decided on. A store accepts a decision only when
/// it still has this revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// Nothing was ever stored.
    pub const EMPTY: Self = Self(0);

    /// The revision with this number, as the store gave it.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// One leadership of one coordinator: larger than every one before, as the election gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(u64);

impl Term {
    /// The term with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Term {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
