//! The last step: drafts become devices and processes, in a stable order.

use telltale_schema::chip::FactSource;
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, Holder, KindMemory, Process, SpaceUsage};

use super::{Claimed, Draft, Reconciled, Reconciliation, naming};

/// Computes what is left, sorts, and lets go of processes that hold nothing.
pub(super) fn finish(mut reconciliation: Reconciliation) -> Reconciled {
    subtract_mirrored(&mut reconciliation);
    let now = reconciliation.taken_at;
    let unreported: Vec<Reading<u64>> = reconciliation
        .devices
        .iter()
        .map(|draft| {
            let gateway = gateway_holders(&reconciliation.devices, draft);
            unreported(gateway.unwrap_or(&draft.holders), now, reconciliation.as_root)
        })
        .collect();
    let ids = naming::ids(&reconciliation.devices);
    naming::name_measured(&mut reconciliation, &ids);
    let refused = std::mem::take(&mut reconciliation.refused)
        .into_iter()
        .map(|one| one.named(&ids))
        .collect();
    let drafts = std::mem::take(&mut reconciliation.devices);
    let devices = drafts
        .into_iter()
        .zip(unreported)
        .zip(ids)
        .map(|((draft, unreported), id)| device(draft, id, &unreported, now))
        .collect();
    let mut processes: Vec<Process> = reconciliation
        .processes
        .into_iter()
        .map(|draft| draft.process)
        .filter(|process| !process.devices.is_empty() || process.known_by.is_some())
        .collect();
    for process in &mut processes {
        process.devices.sort_by_key(|held| held.device);
        for held in &mut process.devices {
            held.kinds.sort_by_key(|one| one.kind);
            held.add_up();
        }
    }
    processes.sort_by_key(|process| {
        let identity = process.identity;
        (process.pid.is_none(), process.pid, process.namespace_pid, identity)
    });
    Reconciled { devices, processes, refused }
}

/// Takes from the regions' remainder what living processes say is theirs in it.
fn subtract_mirrored(reconciliation: &mut Reconciliation) {
    for draft in &reconciliation.processes {
        for claimed in draft.in_totals_without_row() {
            let held = draft.process.devices.iter().find(|held| held.device == claimed.device);
            for one in held.into_iter().flat_map(|held| &held.kinds) {
                let regions = &mut reconciliation.devices[claimed.device].regions;
                regions.add_mirrored(one.kind, one.usage.live_bytes());
            }
        }
    }
}

/// The holders of the chip through which `draft` is reached, for a remote chip.
fn gateway_holders<'a>(devices: &'a [Draft], draft: &Draft) -> Option<&'a Reading<Vec<Holder>>> {
    let remote = draft.identity.chip().filter(|chip| chip.remote)?;
    let is_it = |draft: &&Draft| {
        draft.identity.chip().is_some_and(|chip| {
            !chip.remote && chip.board_id == remote.board_id && chip.asic_id == remote.asic_id
        })
    };
    let gateway = devices.iter().find(is_it)?;
    Some(&gateway.holders)
}

fn device(draft: Draft, id: String, unreported: &Reading<u64>, now: Timestamp) -> Device {
    let kinds = draft.parts.kinds(&draft.regions, draft.counted_bytes());
    let spaces = MemorySpace::ALL
        .into_iter()
        .filter_map(|space| space_usage(space, &draft, &kinds, unreported, now))
        .collect();
    Device {
        id,
        identity: draft.identity,
        facts: draft.facts,
        telemetry: draft.telemetry,
        spaces,
        kinds,
        holders: draft.holders,
        faults: draft.faults,
        health_not_kept: false,
    }
}

/// Use and capacity of a space; host memory only where a process uses some, and L1 of other vendors'
/// devices, which have none of that name.
fn space_usage(
    space: MemorySpace,
    draft: &Draft,
    kinds: &[KindMemory],
    unreported: &Reading<u64>,
    now: Timestamp,
) -> Option<SpaceUsage> {
    let mut of_space = kinds.iter().filter(|one| one.kind.space() == space).peekable();
    let is_chip = draft.identity.chip().is_some();
    let always = space == MemorySpace::Dram || (space == MemorySpace::L1 && is_chip);
    if !always && of_space.peek().is_none() {
        return None;
    }
    let sum = of_space.fold(0u64, |sum, one| sum.saturating_add(one.total_bytes));
    let counted = draft.driver.as_ref().map(|driver| &driver.used_bytes);
    let used_bytes = match counted.filter(|_| space == MemorySpace::Dram) {
        Some(Reading::Value { at, .. }) => Reading::new(sum, *at),
        Some(absent) if !draft.reported => absent.clone(),
        _ if draft.reported => Reading::new(sum, now),
        // Its driver counts what each process has of the host's memory.
        _ if draft.driver.is_some() && space == MemorySpace::Host => Reading::new(sum, now),
        _ => unreported.clone(),
    };
    let (capacity_bytes, capacity_source) = capacity(space, draft, now);
    Some(SpaceUsage { space, used_bytes, capacity_bytes, capacity_source })
}

/// Use of a device without a report: unknown if a process holds it whose memory is not
/// known, otherwise none.
fn unreported(holders: &Reading<Vec<Holder>>, now: Timestamp, as_root: bool) -> Reading<u64> {
    match holders {
        Reading::Value { value, .. } => {
            let silent: Vec<&Holder> = value.iter().filter(|one| !one.memory_known).collect();
            match silent.first() {
                None => Reading::new(0, now),
                Some(first) => {
                    Reading::absent(Absence::Unknown, unknown_use(first, silent.len() - 1, as_root))
                }
            }
        }
        Reading::Absent { absent, detail } => Reading::absent(*absent, detail.clone()),
    }
}

/// What a device with silent holders says, and what makes their memory known. Which of these it takes cannot be
/// known here, but root can read as much as any other user.
fn unknown_use(first: &Holder, more: usize, as_root: bool) -> String {
    let remedy = match as_root {
        true => "start it with the Telltale recorder",
        false => "run as its user or as root, or start it with the Telltale recorder",
    };
    let first = match first.pid {
        Some(pid) => format!("pid {pid}"),
        None => "a process outside our PID namespace".to_owned(),
    };
    match more {
        0 => format!("held by {first}, whose memory cannot be read from here; {remedy}"),
        more => {
            format!(
                "held by {first} and {more} more, whose memory cannot be read from here; {remedy}"
            )
        }
    }
}

fn capacity(
    space: MemorySpace,
    draft: &Draft,
    now: Timestamp,
) -> (Reading<u64>, Option<FactSource>) {
    if let (MemorySpace::Dram, Some(driver)) = (space, &draft.driver) {
        let source = driver.capacity_bytes.value().map(|_| FactSource::Driver);
        return (driver.capacity_bytes.clone(), source);
    }
    let table = draft.facts.value();
    let (claimed, known) = match space {
        MemorySpace::Dram => (draft.dram_capacity, table.map(|facts| facts.dram_capacity_bytes)),
        MemorySpace::L1 => (draft.l1_capacity, table.map(|facts| facts.l1_capacity_bytes())),
        MemorySpace::Host => (Claimed::Unclaimed, None),
    };
    match (claimed, known, table) {
        (Claimed::All(bytes), _, _) => (Reading::new(bytes, now), Some(FactSource::Ledger)),
        (_, Some(bytes), Some(facts)) => (Reading::new(bytes, now), Some(facts.source)),
        (Claimed::Disagreed, _, _) => {
            let words = "its processes disagree about the capacity";
            (Reading::absent(Absence::Implausible, words), None)
        }
        _ => match draft.facts.absence() {
            Some((reason, detail)) if reason != Absence::Unknown => {
                (Reading::absent(reason, detail), None)
            }
            _ => (Reading::absent(Absence::Unknown, "this board is not known"), None),
        },
    }
}
