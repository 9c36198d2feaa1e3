//! Who holds a device: the processes that have memory on it or have it open.

use std::cmp::Reverse;

use super::{HeldDevice, Holder, Process, ProcessState, Snapshot};

/// The holders of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct Holders<'a> {
    /// Those that the snapshot has a process of, with what they have there. The one with most memory comes first.
    pub known: Vec<(&'a Process, &'a HeldDevice)>,
    /// How many more have it open, of which the reader may not know more or which a filter left out.
    pub others: usize,
}

// === impl Snapshot ===

impl Snapshot {
    /// Who holds the device at this place of [`Snapshot::devices`]; processes that ended hold nothing.
    pub fn holders(&self, device: usize) -> Holders<'_> {
        let mut known: Vec<(&Process, &HeldDevice)> = self
            .processes
            .iter()
            .filter(|process| process.state != ProcessState::Dead)
            .filter_map(|process| {
                let held = process.devices.iter().find(|held| held.device == device)?;
                Some((process, held))
            })
            .collect();
        known.sort_by_key(|(process, held)| (Reverse(rank(held)), process.pid));
        let open = known.iter().filter(|(_, held)| held.open_descriptors > 0).count();
        // One without a pid whose memory is known is a process with a row of a region, without descriptors.
        let is_other = |holder: &&Holder| holder.pid.is_some() || !holder.memory_known;
        let listed = self.devices.get(device).and_then(|device| device.holders.value());
        let listed = listed.map_or(0, |holders| holders.iter().filter(is_other).count());
        let others = listed.saturating_sub(open);
        Holders { known, others }
    }
}

/// What comes first: some memory, then an unknown amount of it, then none.
fn rank(held: &HeldDevice) -> (u8, u64) {
    match held.total_bytes() {
        Some(0) => (0, 0),
        None => (1, 0),
        Some(bytes) => (2, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::ChipIdentity;
    use crate::clock::Timestamp;
    use crate::memory::MemorySpace;
    use crate::reading::Reading;
    use crate::snapshot::{Accounting, Device, HeldSpace};

    fn process(pid: u32, bytes: Option<u64>, open_descriptors: u32) -> Process {
        let space =
            |live_bytes| HeldSpace { space: MemorySpace::Dram, live_bytes, live_buffers: None };
        let accounting = bytes.map_or(Accounting::Unknown, |_| Accounting::Recorded);
        let held = HeldDevice {
            device: 0,
            open_descriptors,
            accounting,
            spaces: bytes.map(space).into_iter().collect(),
            ..HeldDevice::default()
        };
        Process {
            pid: Some(pid),
            state: ProcessState::Alive,
            devices: vec![held],
            ..Process::hidden(None, "x")
        }
    }

    fn device(open: &[Option<u32>]) -> Device {
        let holder = |pid: &Option<u32>| Holder {
            pid: *pid,
            open_descriptors: 1,
            memory_known: pid.is_some(),
        };
        Device {
            holders: Reading::new(open.iter().map(holder).collect(), Timestamp(0)),
            ..Device::unread("0", ChipIdentity::default())
        }
    }

    fn snapshot(devices: Vec<Device>, processes: Vec<Process>) -> Snapshot {
        Snapshot { devices, processes, ..Snapshot::empty(Timestamp(0)) }
    }

    #[test]
    fn the_one_with_most_memory_comes_first_and_no_other_is_forgotten() {
        let dead = Process { state: ProcessState::Dead, ..process(6, Some(1 << 30), 0) };
        let processes = vec![
            process(1, Some(0), 1),
            process(2, None, 1),
            process(3, Some(5), 1),
            process(4, Some(7), 0),
            process(5, Some(7), 0),
            dead,
        ];
        let open = [Some(1), Some(2), Some(3), None, Some(9)];
        let snapshot = snapshot(vec![device(&open), device(&[])], processes);
        let holders = snapshot.holders(0);
        let pids: Vec<_> = holders.known.iter().filter_map(|(process, _)| process.pid).collect();
        assert_eq!((pids, holders.others), (vec![4, 5, 3, 2, 1], 2));
        assert_eq!(snapshot.holders(1), Holders { known: vec![], others: 0 });
    }

    #[test]
    fn a_hidden_process_with_a_row_of_a_region_counts_once() {
        let worker = Process { pid: None, ..process(0, Some(7), 0) };
        let mut device = device(&[]);
        let holder = |memory_known| Holder { pid: None, open_descriptors: 1, memory_known };
        device.holders = Reading::new(vec![holder(true), holder(false)], Timestamp(0));
        let holders = snapshot(vec![device], vec![worker]);
        let holders = holders.holders(0);
        assert_eq!((holders.known.len(), holders.others), (1, 1));
    }
}
