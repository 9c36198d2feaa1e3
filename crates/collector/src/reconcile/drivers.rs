//! What drivers count for each process, where nothing better speaks for the process.

use std::collections::HashMap;

use telltale_schema::snapshot::{Accounting, HeldUsage, ProcessSource};

use super::{Draft, Reconciliation, held, put};
use crate::source::DriverUsage;

impl Reconciliation {
    /// Adds what drivers count to the processes that do not say themselves what they have on the
    /// device: a ledger knows more, and nothing is counted twice.
    pub(super) fn add_drivers(&mut self, living: &HashMap<u32, usize>) {
        for index in 0..self.devices.len() {
            let Some(driver) = &mut self.devices[index].driver else { continue };
            for usage in std::mem::take(&mut driver.processes) {
                if let Some(place) = living.get(&usage.pid) {
                    self.add_usage(index, *place, &usage);
                }
            }
        }
    }

    /// The part of the device at `index` that a process has, where the device is divided and the
    /// driver says so: the process names the device by its PCI address, which all parts share.
    pub(super) fn part_of(&self, index: usize, pid: Option<u32>) -> usize {
        let whole = &self.devices[index].identity;
        let (Some(whole), Some(pid)) = (whole.other(), pid) else { return index };
        let has_it = |draft: &Draft| {
            let parent = draft.identity.other().and_then(|other| other.parent.as_ref());
            let holders = draft.holders.value().map_or(&[][..], Vec::as_slice);
            parent == Some(&whole.name) && holders.iter().any(|holder| holder.pid == Some(pid))
        };
        self.devices.iter().position(has_it).unwrap_or(index)
    }

    fn add_usage(&mut self, index: usize, place: usize, usage: &DriverUsage) {
        let draft = &mut self.processes[place];
        if usage.busy_ratio.is_some() {
            held(&mut draft.process, index).busy_ratio = usage.busy_ratio;
        }
        // A driver that counts how busy a process is need not count its memory.
        if usage.busy_ratio.is_some() && usage.kinds.is_empty() {
            return;
        }
        if draft.claimed.iter().any(|claimed| claimed.device == index) {
            return;
        }
        let device = &mut self.devices[index];
        let held = held(&mut draft.process, index);
        (held.accounting, held.refused) = (Accounting::BytesOnly, None);
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

#[cfg(test)]
mod tests {
    use telltale_schema::chip::ChipIdentity;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::device::{DeviceClass, OtherIdentity};
    use telltale_schema::memory::{MemoryKind, MemoryUsage};
    use telltale_schema::reading::Reading;
    use telltale_schema::snapshot::{Holder, KindUsage, Process, ProcessSource, ProcessState};

    use crate::observation::{DeviceClaim, MemoryClaim, ProcessObservation};
    use crate::reconcile::{Observations, reconcile};
    use crate::source::{DeviceReading, DriverMemory, DriverUsage};

    const PCI: &str = "0000:41:00.0";

    fn device(name: &str, used: u64, users: &[(u32, u64)]) -> DeviceReading {
        let class = if name == PCI { DeviceClass::Gpu } else { DeviceClass::Partition };
        let identity = OtherIdentity {
            pci: PCI.parse().ok(),
            parent: (name != PCI).then(|| PCI.to_owned()),
            ..OtherIdentity::new(name, "nvidia", class)
        };
        let holder = |pid| Holder { pid: Some(pid), open_descriptors: 1, memory_known: false };
        let usage = |(pid, bytes): &(u32, u64)| DriverUsage {
            pid: *pid,
            kinds: vec![(MemoryKind::Dram, *bytes)],
            busy_ratio: None,
        };
        DeviceReading {
            holders: Reading::new(users.iter().map(|user| holder(user.0)).collect(), Timestamp(1)),
            memory: Some(DriverMemory {
                used_bytes: Reading::new(used, Timestamp(1)),
                capacity_bytes: Reading::new(1000, Timestamp(1)),
                processes: users.iter().map(usage).collect(),
            }),
            ..DeviceReading::new(identity)
        }
    }

    fn recording(pid: u32, live_bytes: u64) -> ProcessObservation {
        let mut process = Process::hidden(None, "train");
        (process.pid, process.state) = (Some(pid), ProcessState::Alive);
        let usage = MemoryUsage { live_bytes, live_buffers: 1, ..MemoryUsage::default() };
        let claim = DeviceClaim {
            device: ChipIdentity { pci: PCI.parse().ok(), ..ChipIdentity::default() }.into(),
            kinds: vec![KindUsage { kind: MemoryKind::Dram, usage }],
            ..DeviceClaim::default()
        };
        let memory = Some(MemoryClaim { source: ProcessSource::Ledger, devices: vec![claim] });
        ProcessObservation { memory, ..ProcessObservation::bare(process) }
    }

    #[test]
    fn a_ledger_of_a_divided_device_is_of_the_part_that_its_process_has() {
        let parts = [device("0000:41:00.0/1", 500, &[(7, 90)]), device("0000:41:00.0/2", 0, &[])];
        let devices = [vec![device(PCI, 300, &[])], parts.to_vec()].concat();
        let processes = vec![recording(7, 80), recording(8, 20)];
        let input = Observations { devices, processes, ..Observations::default() };
        let result = reconcile(input);
        let sums = result.devices.iter().map(|device| {
            let parts = device.kind(MemoryKind::Dram);
            parts.map(|it| (it.total_bytes, it.processes_bytes, it.unattributed_bytes))
        });
        // Process 8's place is unknown, so it stays with the whole.
        let expected = [Some((300, 20, 280)), Some((500, 80, 420))];
        assert_eq!(sums.take(2).collect::<Vec<_>>(), expected);
        let held: Vec<usize> =
            result.processes.iter().flat_map(|one| &one.devices).map(|held| held.device).collect();
        assert_eq!(held, [1, 0]);
    }
}
