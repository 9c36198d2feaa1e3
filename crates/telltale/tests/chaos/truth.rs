//! What must be so of every snapshot, and what must be so of one of a machine at rest.

use telltale_emulator::Emulator;
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{Device, ProcessState, Snapshot};

/// Whether all sums of a snapshot are the sums of their parts.
pub(crate) fn adds_up(snapshot: &Snapshot) -> Result<(), String> {
    for (place, device) in snapshot.devices.iter().enumerate() {
        for parts in &device.kinds {
            let sum = parts.processes_bytes + parts.unattributed_bytes + parts.ghost_bytes;
            let of_processes = living_bytes(snapshot, place, parts.kind);
            if sum != parts.total_bytes || of_processes != parts.processes_bytes {
                return Err(format!(
                    "{} of {}: living processes have {of_processes}, and it says {parts:?}",
                    parts.kind.name(),
                    device.id
                ));
            }
        }
        spaces_add_up(device)?;
    }
    Ok(())
}

fn living_bytes(snapshot: &Snapshot, place: usize, kind: MemoryKind) -> u64 {
    let living = snapshot.processes.iter().filter(|one| one.state != ProcessState::Dead);
    let held = living.flat_map(|one| &one.devices).filter(|held| held.device == place);
    let kinds = held.flat_map(|held| &held.kinds).filter(|one| one.kind == kind);
    kinds.map(|one| one.usage.live_bytes()).sum()
}

fn spaces_add_up(device: &Device) -> Result<(), String> {
    for usage in &device.spaces {
        let Some(used) = usage.used_bytes.value() else { continue };
        let kinds = device.kinds.iter().filter(|one| one.kind.space() == usage.space);
        let sum: u64 = kinds.map(|one| one.total_bytes).sum();
        let capacity = usage.capacity_bytes.value();
        if sum != *used || capacity.is_some_and(|capacity| used > capacity) {
            let space = usage.space.name();
            return Err(format!("{space} of {}: kinds come to {sum}: {usage:?}", device.id));
        }
    }
    Ok(())
}

/// Each value of the snapshot against the emulator's own.
#[track_caller]
pub(crate) fn is_the_truth(emulator: &Emulator, snapshot: &Snapshot, when: &str) {
    adds_up(snapshot).unwrap_or_else(|wrong| panic!("{when}: {wrong}"));
    let chips = emulator.usage();
    assert_eq!(snapshot.devices.len(), chips.len(), "{when}: {:?}", snapshot.sources);
    for chip in &chips {
        let id = chip.description.identity.display_id();
        let place = snapshot.devices.iter().position(|device| device.id == id);
        let place = place.unwrap_or_else(|| panic!("{when}: chip {id} is not in the snapshot"));
        for kind in MemoryKind::ALL {
            let truth = chip.total.of(kind);
            let shown = snapshot.devices[place].kind(kind);
            let total = shown.map_or(0, |parts| parts.total_bytes);
            let what = format!("{when}: {} of {id}", kind.name());
            let holders: Vec<_> =
                chip.processes.iter().map(|(pid, usage)| (pid, usage.of(kind))).collect();
            let sources = &snapshot.sources;
            assert_eq!(total, truth.requested_bytes, "{what}: {holders:?}, {sources:?}");
            assert_eq!(shown.map_or(Some(0), |parts| parts.live_buffers), Some(truth.buffers));
            for (pid, usage) in &chip.processes {
                let shown = shown_bytes(snapshot, place, kind, *pid);
                assert_eq!(shown, usage.of(kind).requested_bytes, "{what}, process {pid}");
            }
        }
    }
}

/// Whether the values of a process that stands still are the emulator's own.
pub(crate) fn knows(pid: u32, emulator: &Emulator, snapshot: &Snapshot) -> bool {
    emulator.usage().iter().all(|chip| {
        let id = chip.description.identity.display_id();
        let place = snapshot.devices.iter().position(|device| device.id == id);
        let mut own = chip.processes.iter().filter(|(holder, _)| *holder == pid);
        own.all(|(_, usage)| {
            let shown = |kind| place.map_or(0, |place| shown_bytes(snapshot, place, kind, pid));
            usage.kinds().all(|(kind, truth)| shown(kind) == truth.requested_bytes)
        })
    })
}

/// What a snapshot says that a process has of a kind on a device.
fn shown_bytes(snapshot: &Snapshot, place: usize, kind: MemoryKind, pid: u32) -> u64 {
    let of_pid = snapshot.processes.iter().filter(|one| one.pid == Some(pid));
    let held = of_pid.flat_map(|one| &one.devices).filter(|held| held.device == place);
    let kinds = held.flat_map(|held| &held.kinds).filter(|one| one.kind == kind);
    kinds.map(|one| one.usage.live_bytes()).sum()
}
