//! The memory of devices by process, and the colour that a process keeps in every pane.

use std::collections::HashMap;

use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Process, ProcessState, Snapshot};

use super::machines::Machines;
use super::row::Who;
use super::theme::{HUES, Role};

/// What each device's memory is made of.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// The colours of the processes in the last snapshot.
    hues: HashMap<Who, u8>,
    /// The processes of each device, by its id, in the order in which they were started.
    parts: HashMap<String, Vec<Part>>,
}

/// What one process has on a device.
#[derive(Debug, Clone, Copy)]
struct Part {
    hue: u8,
    bytes: [Option<u64>; MemorySpace::ALL.len()],
}

// === impl Stacks ===

impl Stacks {
    /// Takes note of what is shown. A process keeps its colour; others get the least used ones, in the order in which
    /// they were started, so that two views of one machine mostly agree.
    pub(super) fn update(&mut self, snapshot: &Snapshot, machines: &Machines) {
        let mut living: Vec<(Who, &Process)> = (0..)
            .zip(&snapshot.processes)
            .filter(|(_, process)| process.state != ProcessState::Dead)
            .map(|(place, process)| (Who::of(process, place, machines), process))
            .collect();
        living.sort_by_key(|(_, process)| {
            (process.identity.map(|identity| identity.start_time_ticks), process.pid)
        });
        let mut kept = HashMap::new();
        let mut uses = [0usize; HUES as usize];
        for (who, _) in &living {
            if let Some(hue) = self.hues.get(who) {
                kept.insert(*who, *hue);
                uses[usize::from(*hue)] += 1;
            }
        }
        for (who, _) in &living {
            kept.entry(*who).or_insert_with(|| {
                let least = (0..HUES).min_by_key(|hue| uses[usize::from(*hue)]).unwrap_or(0);
                uses[usize::from(least)] += 1;
                least
            });
        }
        self.hues = kept;
        self.parts.clear();
        for (who, process) in &living {
            for held in &process.devices {
                let Some(device) = snapshot.devices.get(held.device) else { continue };
                let bytes = MemorySpace::ALL.map(|space| held.live_bytes(space));
                let part = Part { hue: self.hues[who], bytes };
                self.parts.entry(device.id.clone()).or_default().push(part);
            }
        }
    }

    /// The colour of a process.
    pub(super) fn role(&self, who: Who) -> Role {
        self.hues.get(&who).map_or(Role::Plain, |hue| Role::Hue(*hue))
    }

    /// What the bytes in use of a device's space are made of: each process's, then what no process accounts for.
    pub(super) fn parts(&self, device: &str, space: MemorySpace, used: u64) -> Vec<(u64, Role)> {
        let at = MemorySpace::ALL.iter().position(|it| *it == space).unwrap_or(0);
        let of_processes = self.parts.get(device).into_iter().flatten();
        let mut parts: Vec<(u64, Role)> = of_processes
            .filter_map(|part| {
                Some((part.bytes[at].filter(|bytes| *bytes > 0)?, Role::Hue(part.hue)))
            })
            .collect();
        let known = parts.iter().fold(0u64, |sum, (bytes, _)| sum.saturating_add(*bytes));
        if used > known {
            parts.push((used - known, Role::Bar));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use telltale_schema::chip::ChipIdentity;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::fleet::{FLEET_VERSION, Fleet};
    use telltale_schema::snapshot::{Accounting, Device, HeldDevice, HeldSpace};

    use super::super::machines;
    use super::*;

    const DRAM: MemorySpace = MemorySpace::Dram;

    /// A device, and processes of these pids with as many bytes there.
    fn snapshot(pids: &[u32]) -> Snapshot {
        let device = Device::unread("0", ChipIdentity::default());
        let process = |pid: &u32| {
            let space = HeldSpace { space: DRAM, live_bytes: u64::from(*pid), live_buffers: None };
            let accounting = Accounting::Recorded;
            let held = HeldDevice { accounting, spaces: vec![space], ..HeldDevice::default() };
            let state = ProcessState::Alive;
            Process { pid: Some(*pid), state, devices: vec![held], ..Process::hidden(None, "") }
        };
        let nothing = Fleet { fleet_version: FLEET_VERSION, taken_at: Timestamp(1), hosts: vec![] };
        let (empty, _) = machines::together(&nothing, None);
        Snapshot { devices: vec![device], processes: pids.iter().map(process).collect(), ..empty }
    }

    #[test]
    fn a_process_keeps_its_colour_and_parts_add_up() {
        let machines = Machines::only("");
        let mut stacks = Stacks::default();
        stacks.update(&snapshot(&[3, 1, 2]), &machines);
        let before = stacks.parts("0", DRAM, 10);
        let hues = [0, 1, 2].map(Role::Hue);
        assert_eq!(before, [(1, hues[0]), (2, hues[1]), (3, hues[2]), (4, Role::Bar)]);
        // One has ended and another is there: the others stay as they are.
        stacks.update(&snapshot(&[4, 3, 2]), &machines);
        let after = stacks.parts("0", DRAM, 9);
        assert_eq!(after, [(2, hues[1]), (3, hues[2]), (4, hues[0])]);
        // Sixteen processes have each colour twice.
        stacks.update(&snapshot(&(1..=16).collect::<Vec<_>>()), &machines);
        for hue in 0..HUES {
            let uses = stacks.parts("0", DRAM, 0);
            assert_eq!(uses.iter().filter(|(_, role)| *role == Role::Hue(hue)).count(), 2);
        }
        assert_eq!(stacks.parts("1", DRAM, 5), [(5, Role::Bar)]);
    }
}
