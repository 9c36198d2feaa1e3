//! Nodes that come late to collectives though they are not the cause: they may have waited for a transfer.
//!
//! A transfer that was measured alone and is slow says so, and a group of transfers that others held up. Where
//! what is usual for the latter is not known yet, nothing speaks for or against the node; and later it may be
//! learned with the fault in it. So a node that is late by then is not named as long as it stays late.

use std::collections::BTreeSet;

use crate::detection::finding::DetectorFinding;
use crate::detection::matrix::Matrix;
use crate::detection::suspicion::Culprit;

/// Nodes that have been late since nothing was known of their transfers.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldBack(BTreeSet<u32>);

impl HeldBack {
    /// Takes those out of the late who may have waited: `slow` is what was measured alone, `held_up` what was not.
    pub(super) fn take_out(
        &mut self,
        late: &mut Vec<DetectorFinding>,
        slow: &[DetectorFinding],
        held_up: &[DetectorFinding],
        matrix: &Matrix,
    ) {
        let before = std::mem::take(&mut self.0);
        late.retain(|one| {
            let [Culprit::Node(node)] = one.culprits[..] else { return true };
            if before.contains(&node) || matrix.learns_held_up(node) {
                self.0.insert(node);
                return false;
            }
            let has_waited = slow.iter().any(|slow| slow.has_slowed(node, matrix))
                || held_up.iter().any(|slow| slow.holds(one));
            !has_waited
        });
    }

    /// A new epoch begins.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}
