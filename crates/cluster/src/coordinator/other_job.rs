//! Whether what is stored is the job that was asked for.
//!
//! A job's workers a node cannot change while it has a state, since its ranks follow from them. What to do
//! about that is a person's decision.

use thiserror::Error;

use crate::epoch::Epoch;
use crate::policy::Job;
use crate::stored::{Phase, StoredState};

/// Another job is stored than the one asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "job {:?} with {} nodes of {} workers is stored, in epoch {epoch}, and job {:?} with {} nodes of {} \
     was asked for; go on with it by --job {:?} --nodes {} --workers {}, keep another job elsewhere \
     (another --journal, or with etcd another --job), or, when no other coordinator runs, end the \
     stored job and begin this one with --reset-job",
    stored.name, stored.slots, stored.workers.get(), asked.name, asked.slots, asked.workers.get(),
    stored.name, stored.slots, stored.workers.get()
)]
pub struct OtherJob {
    /// What is stored.
    pub stored: Job,
    /// Its epoch.
    pub epoch: Epoch,
    /// What was asked for.
    pub asked: Job,
}

/// Checks that a state is one that `asked` may go on with: of the same name, with as many workers a
/// node, and with no more nodes. A job of which nothing ever ran, or nothing since it was reset, takes
/// any form.
///
/// # Errors
/// When it is not.
pub fn check_stored(asked: &Job, state: &StoredState) -> Result<(), OtherJob> {
    // Who stored nothing of its name was an earlier version.
    let name = state.job.as_ref().unwrap_or(&asked.name).clone();
    let slots = state.map.slot_count();
    let stored = Job { name, slots, workers: state.map.workers_per_node() };
    // With fewer nodes it grows, once spares have come.
    let fits = Job { slots, ..asked.clone() } == stored && slots <= asked.slots;
    if fits || state.phase == Phase::Forming {
        return Ok(());
    }
    Err(OtherJob { stored, epoch: state.epoch, asked: asked.clone() })
}
