//! A store that knows less than the agents: emptied, or an older copy, beside a job that runs.
//!
//! Coordinators are stopped for it and started again, as an operator does. They must decide nothing, and no node that
//! works is to notice, until the newest state is back.

use std::time::Duration;

use telltale_cluster::coordinator::OperatorOrder;

use super::troubles::Trouble;
use super::{World, WorldEvent};
use crate::store::StoreCopy;

/// When the job is restarted, so that there is an older copy; and when the store is replaced.
const STEPS: [Duration; 3] =
    [Duration::from_secs(8), Duration::from_secs(9), Duration::from_secs(18)];

/// What the operator has kept.
#[derive(Debug, Default)]
pub(super) struct Copies {
    older: Option<StoreCopy>,
    newest: Option<StoreCopy>,
}

impl World {
    pub(super) fn plan_stale_store(&mut self) {
        let back = self.scenario.troubled.saturating_sub(Duration::from_millis(1));
        for at in STEPS.into_iter().chain([back]) {
            self.after(at, WorldEvent::Trouble(Trouble::StoreIsReplaced));
        }
    }

    /// Does the next step: a copy, another epoch, the store replaced, and put back.
    pub(super) fn replace_store(&mut self) {
        if self.copies.older.is_none() {
            self.copies.older = Some(self.store.copy());
            return;
        }
        if self.now.0 < STEPS[2] {
            self.command(OperatorOrder::Restart);
            return;
        }
        match self.copies.newest.take() {
            None => {
                self.copies.newest = Some(self.store.copy());
                let older = self.copies.older.clone().unwrap_or_default();
                let copy = if self.random.happens(0.5) { older } else { StoreCopy::default() };
                self.store.replace(copy);
            }
            Some(newest) => {
                let mut coordinators =
                    self.replicas.iter().filter_map(|replica| replica.coordinator.as_ref());
                let is_seen = coordinators.any(|one| one.behind().is_some());
                self.safety.store_was_behind(self.now, is_seen);
                self.store.replace(newest);
            }
        }
        for replica in 0..self.replicas.len() {
            let back_after = self.some_time(3);
            self.replica_crashes(replica, back_after);
        }
    }
}
