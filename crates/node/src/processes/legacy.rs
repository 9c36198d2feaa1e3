//! Processes that report by the allocation server's protocol: found by who is connected, which the
//! kernel tells.

use telltale_schema::clock::Timestamp;

use super::{Found, Processes, described};
use crate::legacy::{LegacyFigures, LegacyProcess};
use crate::observation::{LegacyObservation, ProcessObservation};

impl Processes {
    /// What the legacy socket did; none where there is none.
    pub(crate) fn legacy_figures(&self) -> Option<LegacyFigures> {
        self.places.legacy.figures()
    }

    /// Adds what is reported, and processes that nothing else told of. `pids` are those of the
    /// processes that were found alive, in their order.
    pub(super) fn read_legacy(
        &mut self,
        found: &mut Found,
        pids: &mut Vec<Option<u32>>,
        now: (Timestamp, u64),
    ) {
        for reported in self.places.legacy.processes() {
            let LegacyProcess { pid, start_time_ticks, devices, faults } = reported;
            let descriptions = &mut self.descriptions;
            // One that has ended since, or whose pid another has by now, is left out.
            let Some(description) =
                described(descriptions, pid, start_time_ticks, &self.procfs, now)
            else {
                continue;
            };
            let known = pids.iter().position(|other| *other == Some(pid));
            let process = known.unwrap_or_else(|| {
                let process = description.process(pid, None, now.0);
                found.processes.push(ProcessObservation::bare(process));
                pids.push(Some(pid));
                found.processes.len() - 1
            });
            found.legacy.push(LegacyObservation { process, devices, faults });
        }
    }
}
