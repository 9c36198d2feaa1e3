//! What processes say by the allocation server's protocol, where nothing better speaks for them.

use telltale_schema::snapshot::{Accounting, ProcessSource, ProcessState};

use super::{Bench, ProcessDraft};
use crate::observation::LegacyObservation;

impl Bench {
    /// Adds what processes say of devices for which no ledger, endpoint or row does.
    pub(super) fn add_legacy(&mut self, observations: Vec<LegacyObservation>) {
        for LegacyObservation { process, devices, faults } in observations {
            if process >= self.processes.len() {
                continue;
            }
            // Out of the list and back, for a claim changes both a process and the devices.
            let mut draft = self.processes.swap_remove(process);
            if draft.process.state == ProcessState::Alive && !draft.accounts_for_itself() {
                let by_row: Vec<usize> = draft.known_devices().collect();
                let uid = draft.process.uid.value().copied();
                let mut claims = devices;
                claims.retain(|claim| {
                    let place = self.device_of(&claim.device, uid);
                    place.is_none_or(|place| !by_row.contains(&place))
                });
                self.add_claims(&mut draft, claims);
                draft.process.faults = faults;
                draft.process.known_by.get_or_insert(ProcessSource::Legacy);
            }
            self.processes.push(draft);
            let last = self.processes.len() - 1;
            self.processes.swap(process, last);
        }
    }
}

impl ProcessDraft {
    /// Devices on which the process's memory is known.
    fn known_devices(&self) -> impl Iterator<Item = usize> {
        let known =
            self.process.devices.iter().filter(|held| held.accounting != Accounting::Unknown);
        known.map(|held| held.device)
    }
}
