//! Who has a device open: the driver lists no processes, but a runtime keeps `/dev/neuronN` open for
//! as long as it uses the device. How much memory it has there is not reported.

use std::collections::BTreeMap;

use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::Holder;

use super::super::descriptors::{Walk, Walked};
use crate::report::SourceReport;

/// How a device's node begins.
const NODE: &str = "/dev/neuron";
/// Pairs of a device and a process that are kept.
const MAX_OPENERS: usize = 16 * 1024;

/// What a check of all processes found.
pub(super) struct Openers {
    walked: Walked,
    /// Open descriptors by device and pid.
    descriptors: BTreeMap<(u32, u32), u32>,
    dropped: usize,
}

// === impl Openers ===

impl Openers {
    pub(super) fn scan(walk: &Walk) -> Self {
        let (mut descriptors, mut dropped) = (BTreeMap::new(), 0);
        let walked = walk.run(|opened| {
            let Some(device) = number(opened.node) else { return };
            let is_new = !descriptors.contains_key(&(device, opened.pid));
            if is_new && descriptors.len() >= MAX_OPENERS {
                dropped += 1;
                return;
            }
            let count: &mut u32 = descriptors.entry((device, opened.pid)).or_default();
            *count = count.saturating_add(1);
        });
        Self { walked, descriptors, dropped }
    }

    /// Says what the scan left out.
    pub(super) fn complain(&self, report: &mut SourceReport) {
        self.walked.complain("processes", report);
        if self.dropped > 0 {
            let detail = format!("{} more processes than are kept", self.dropped);
            report.error("processes", Absence::Failed, detail);
        }
    }

    /// Who has a device open.
    pub(super) fn of(&self, device: u32) -> Reading<Vec<Holder>> {
        let own = self.descriptors.range((device, 0)..=(device, u32::MAX));
        let holders: Vec<Holder> = own
            .map(|((_, pid), count)| Holder {
                pid: Some(*pid),
                open_descriptors: *count,
                memory_known: false,
            })
            .collect();
        if holders.is_empty() && self.walked.closed {
            let detail = "processes of other users cannot be looked at; run as root";
            return Reading::absent(Absence::Permission, detail);
        }
        Reading::new(holders, self.walked.at)
    }
}

/// The number of a device's node, of what a descriptor's link leads to.
pub(super) fn node_of(target: &str) -> Option<&str> {
    let digits = target.strip_prefix(NODE)?;
    number(digits).is_some_and(|number| number.to_string() == digits).then_some(digits)
}

fn number(digits: &str) -> Option<u32> {
    digits.parse().ok()
}
