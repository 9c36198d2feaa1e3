//! What ranks do in a training step, operation by operation: what a report carries of it.
//!
//! Plain data. The agent keeps a bounded log ([`log`]); detection makes steps of it.

pub mod log;

use std::sync::Arc;

use crate::group::GroupId;
use crate::latency::{Collective, Direction, SizeBucket};
use crate::rank::Rank;

/// Operations that one report may hold.
pub const MAX_OPERATIONS_PER_REPORT: usize = telltale_wire::limits::cluster::MAX_OPERATIONS;
/// Different names of computations, and process groups, that one report may hold.
pub const MAX_NAMES_PER_REPORT: usize = telltale_wire::limits::cluster::MAX_SPAN_NAMES;
/// See there.
pub const MAX_GROUPS_PER_REPORT: usize = telltale_wire::limits::cluster::MAX_OPERATION_GROUPS;
/// Bytes of the name of a computation; what is longer is refused.
pub const MAX_SPAN_NAME_BYTES: usize = 64;

/// An operation that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedOperation {
    /// Whose.
    pub rank: Rank,
    /// In which training step of its rank.
    pub step: u64,
    /// What it did.
    pub work: Work,
    /// When it began, in microseconds of a clock of its host that only grows.
    pub start_us: i64,
    /// How long it took.
    pub duration_us: u64,
}

/// What an operation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Nothing: its rank has ended the step.
    StepEnd,
    /// It computed, under this name.
    Compute(Arc<str>),
    /// It passed something to or from another rank.
    Transfer {
        /// Which way.
        direction: Direction,
        /// The other rank, in the whole job.
        peer: Rank,
        /// The process group.
        group: GroupId,
        /// How large.
        bucket: SizeBucket,
    },
    /// It took part in a collective.
    Collective {
        /// Which.
        collective: Collective,
        /// The process group.
        group: GroupId,
        /// How many ranks it has.
        members: u32,
        /// How large.
        bucket: SizeBucket,
    },
}

/// The operations of one report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operations {
    /// In the order in which they were reported; at most [`MAX_OPERATIONS_PER_REPORT`].
    pub list: Vec<FinishedOperation>,
    /// How many operations of this node the epoch had before these, reported or lost; `None` where there are none,
    /// and from an agent that does not count them.
    pub before: Option<u64>,
}
