//! What drivers count for each process, where nothing better speaks for the process.

use telltale_schema::snapshot::{Accounting, HeldUsage, ProcessSource, ProcessState};

use super::{Bench, Draft, held, put};
use crate::hardware::DriverUsage;

impl Bench {
    /// Adds what drivers count to the processes that do not say themselves what they have on the
    /// device: a ledger knows more, and nothing is counted twice.
    pub(super) fn add_drivers(&mut self) {
        for index in 0..self.devices.len() {
            let Some(driver) = &mut self.devices[index].driver else { continue };
            for usage in std::mem::take(&mut driver.processes) {
                self.add_usage(index, &usage);
            }
        }
    }

    fn add_usage(&mut self, index: usize, usage: &DriverUsage) {
        let is_it = |process: &telltale_schema::snapshot::Process| {
            process.pid == Some(usage.pid) && process.state == ProcessState::Alive
        };
        let Some(draft) = self.processes.iter_mut().find(|draft| is_it(&draft.process)) else {
            return;
        };
        if draft.claimed.iter().any(|claimed| claimed.device == index) {
            return;
        }
        let device = &mut self.devices[index];
        held(&mut draft.process, index).accounting = Accounting::BytesOnly;
        for (kind, bytes) in &usage.kinds {
            let bytes = HeldUsage::BytesOnly { live_bytes: (*bytes).min(device.most_bytes(*kind)) };
            device.parts.add_process(*kind, &bytes);
            if bytes.live_bytes() > 0 {
                put(&mut draft.process, index, *kind, bytes);
            }
        }
        draft.process.known_by.get_or_insert(ProcessSource::Driver);
    }
}

impl Draft {
    /// What the driver says is in use of the device's own memory.
    pub(super) fn counted_bytes(&self) -> Option<u64> {
        self.driver.as_ref().and_then(|driver| driver.used_bytes.value().copied())
    }
}
