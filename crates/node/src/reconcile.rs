//! From what the sources saw to devices and processes whose parts add up. Pure: no file, no clock.
//!
//! Per device and kind, processes + unattributed + ghost = total. A process counts once for a
//! device: by its ledger or endpoint, else by its row in a region. What a region's total has
//! beyond its rows, and beyond those who say that they are in it without a row, is unattributed;
//! rows of the dead are ghosts. No sum wraps, whatever the numbers are.

mod finish;
mod matching;
mod parts;

use telltale_schema::chip::{AsicId, BoardId, ChipFacts, ChipIdentity};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Device, HeldDevice, HeldKind, HeldUsage, Holder, KindUsage, Process, ProcessSource,
    ProcessState, RecordingFaults, Telemetry,
};

use crate::observation::{
    DeviceClaim, ProcessObservation, RegionObservation, RowObservation, RowOwner,
};
use crate::tenstorrent::ChipReading;
use parts::{Parts, RegionSums};

/// Devices of one snapshot: what ledgers and regions claim beyond it is refused.
pub const MAX_DEVICES: usize = 1024;

/// More bytes than any device has: such a figure has wrapped below zero or is a lie.
pub const MAX_DEVICE_BYTES: u64 = 1 << 48;

/// More buffers, allocations or failures than a process can have counted: 2^56 of them, one each
/// nanosecond, take two years.
const MAX_PLAUSIBLE_COUNT: u64 = 1 << 56;

/// More bytes than a process can have allocated in all its life, most of which were freed again.
const MAX_PLAUSIBLE_FLOW_BYTES: u64 = 1 << 62;

/// What the sources saw.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// When collecting began.
    pub taken_at: Timestamp,
    /// Chips, in the order in which they are to be shown.
    pub chips: Vec<ChipReading>,
    /// Processes, each once.
    pub processes: Vec<ProcessObservation>,
    /// Regions, each file once.
    pub regions: Vec<RegionObservation>,
}

/// Devices and processes that fit each other.
#[derive(Debug, Clone, Default)]
pub struct Reconciled {
    /// Chips first, then those that only ledgers or regions name.
    pub devices: Vec<Device>,
    /// Processes that hold a device or recorded memory.
    pub processes: Vec<Process>,
    /// What was refused: subject and words.
    pub refused: Vec<(String, String)>,
}

/// Brings observations together.
pub fn reconcile(observations: Observations) -> Reconciled {
    let Observations { taken_at, chips, processes, regions } = observations;
    let mut bench = Bench { taken_at, ..Bench::default() };
    bench.devices.extend(chips.into_iter().map(Draft::of_chip));
    for observation in processes {
        bench.add_process(observation);
    }
    for region in regions {
        bench.add_region(region);
    }
    bench.mark_holders();
    bench.finish()
}

/// The work in progress.
#[derive(Default)]
struct Bench {
    taken_at: Timestamp,
    devices: Vec<Draft>,
    processes: Vec<ProcessDraft>,
    refused: Vec<(String, String)>,
}

/// A device in the making.
struct Draft {
    identity: ChipIdentity,
    facts: Reading<ChipFacts>,
    telemetry: Telemetry,
    holders: Reading<Vec<Holder>>,
    /// Capacities that processes claim; none of them is used when they disagree.
    dram_capacity: Claimed,
    l1_capacity: Claimed,
    parts: Parts,
    regions: RegionSums,
    /// Somebody says something about its memory.
    reported: bool,
}

/// A number that several processes claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Claimed {
    #[default]
    Nobody,
    All(u64),
    Disagreed,
}

/// A process in the making.
struct ProcessDraft {
    process: Process,
    /// Devices for which ledger or endpoint speak, and whether they mirror into a region without
    /// a row that was found.
    claimed: Vec<ClaimedDevice>,
}

struct ClaimedDevice {
    device: usize,
    mirrored: bool,
    row_found: bool,
}

// === impl Claimed ===

impl Claimed {
    fn add(&mut self, claim: Option<u64>) {
        let plausible = claim.filter(|bytes| (1..=MAX_DEVICE_BYTES).contains(bytes));
        *self = match (*self, plausible) {
            (before, None) => before,
            (Self::Nobody, Some(bytes)) => Self::All(bytes),
            (Self::All(before), Some(bytes)) if before == bytes => Self::All(bytes),
            _ => Self::Disagreed,
        };
    }
}

// === impl Draft ===

impl Draft {
    fn of_chip(chip: ChipReading) -> Self {
        let ChipReading { identity, facts, telemetry, holders } = chip;
        Self { facts, telemetry, holders, ..Self::named(identity, "") }
    }

    /// A device of which only `by` speak.
    fn named(identity: ChipIdentity, by: &str) -> Self {
        let unseen = |what: &str| format!("only {by} name this device; {what}");
        Self {
            identity,
            facts: Reading::absent(Absence::Unknown, unseen("its board is not known")),
            telemetry: Telemetry::absent(Absence::Unknown, &unseen("the driver does not")),
            holders: Reading::absent(Absence::Unknown, unseen("the driver does not")),
            dram_capacity: Claimed::Nobody,
            l1_capacity: Claimed::Nobody,
            parts: Parts::default(),
            regions: RegionSums::default(),
            reported: false,
        }
    }
}

// === impl Bench ===

impl Bench {
    fn add_process(&mut self, observation: ProcessObservation) {
        let ProcessObservation { mut process, memory } = observation;
        process.devices.clear();
        process.known_by = memory.as_ref().map(|claim| claim.source);
        let mut draft = ProcessDraft { process, claimed: Vec::new() };
        for claim in memory.into_iter().flat_map(|claim| claim.devices) {
            self.add_claim(&mut draft, claim);
        }
        self.processes.push(draft);
    }

    fn add_claim(&mut self, draft: &mut ProcessDraft, claim: DeviceClaim) {
        let Some(index) = self.device_of(&claim.chip) else {
            self.refuse(&draft.process.name, "names more devices than a machine can have");
            return;
        };
        let counts = draft.process.state != ProcessState::Dead;
        let device = &mut self.devices[index];
        if counts {
            device.reported = true;
            device.dram_capacity.add(claim.dram_capacity_bytes);
            device.l1_capacity.add(claim.l1_capacity_bytes);
            if let (Reading::Absent { .. }, Some(facts)) = (&device.facts, claim.facts) {
                device.facts = Reading::new(facts, self.taken_at);
            }
        }
        let mut implausible = false;
        for KindUsage { kind, usage } in claim.kinds {
            if !is_plausible(&usage) {
                implausible = true;
                continue;
            }
            let usage = HeldUsage::Recorded(usage);
            if counts {
                device.parts.add_process(kind, &usage);
            }
            put(&mut draft.process, index, kind, usage);
        }
        if implausible {
            self.refuse(
                &draft.process.name,
                "claims more memory than a device can have, or impossible counts",
            );
        }
        held(&mut draft.process, index).accounting = Accounting::Recorded;
        match draft.claimed.iter_mut().find(|claimed| claimed.device == index) {
            Some(claimed) => claimed.mirrored |= claim.mirrored && counts,
            None => draft.claimed.push(ClaimedDevice {
                device: index,
                mirrored: claim.mirrored && counts,
                row_found: false,
            }),
        }
    }

    /// The place of the device that `chip` is, made if need be and possible.
    fn device_of(&mut self, chip: &ChipIdentity) -> Option<usize> {
        let known =
            self.devices.iter().position(|draft| matching::same_chip(&draft.identity, chip));
        if known.is_some() || self.devices.len() >= MAX_DEVICES {
            return known;
        }
        let mut draft = Draft::named(chip.clone(), "ledgers");
        if let Some(facts) = ChipFacts::of_board(chip.board_type) {
            draft.facts = Reading::new(facts, self.taken_at);
        }
        self.devices.push(draft);
        Some(self.devices.len() - 1)
    }

    fn add_region(&mut self, region: RegionObservation) {
        let known = self
            .devices
            .iter()
            .position(|draft| matching::region_of(&draft.identity).any(|id| id == region.name_id));
        let index = match known {
            Some(index) => index,
            None if self.devices.len() >= MAX_DEVICES => {
                self.refuse("regions", "name more devices than a machine can have");
                return;
            }
            None => {
                self.devices.push(Draft::named(identity_of(&region), "regions"));
                self.devices.len() - 1
            }
        };
        self.devices[index].reported = true;
        for (kind, bytes) in region.totals {
            if bytes > MAX_DEVICE_BYTES {
                self.refuse("regions", "a total is more than a device can have");
            } else {
                self.devices[index].regions.add_total(kind, bytes);
            }
        }
        for row in region.rows {
            self.add_row(index, row);
        }
    }

    fn add_row(&mut self, index: usize, mut row: RowObservation) {
        let before = row.kinds.len();
        row.kinds.retain(|(_, bytes)| *bytes <= MAX_DEVICE_BYTES);
        if row.kinds.len() < before {
            self.refuse("regions", "a row is more than a device can have");
        }
        let device = &mut self.devices[index];
        for (kind, bytes) in &row.kinds {
            device.regions.add_row(*kind, *bytes);
        }
        let living = |draft: &&mut ProcessDraft| draft.process.state != ProcessState::Dead;
        match row.owner {
            RowOwner::Observed(place) => match self.processes.get_mut(place).filter(living) {
                Some(draft) => draft.take_row(index, &row, &mut device.parts),
                None => device.parts.add_ghost(&row.kinds),
            },
            RowOwner::Hidden => {
                let mut draft = ProcessDraft { process: hidden(&row), claimed: Vec::new() };
                draft.take_row(index, &row, &mut device.parts);
                self.processes.push(draft);
            }
            RowOwner::Nobody => device.parts.add_ghost(&row.kinds),
        }
    }

    /// Ties the driver's holders to processes.
    fn mark_holders(&mut self) {
        for (index, device) in self.devices.iter_mut().enumerate() {
            let Reading::Value { value: holders, .. } = &mut device.holders else { continue };
            for holder in holders {
                let Some(pid) = holder.pid else { continue };
                let draft = self.processes.iter_mut().find(|draft| {
                    draft.process.pid == Some(pid) && draft.process.state == ProcessState::Alive
                });
                if let Some(draft) = draft {
                    let accounts = draft.accounts_for_itself();
                    let held = held(&mut draft.process, index);
                    held.open_descriptors = holder.open_descriptors;
                    if accounts && held.accounting == Accounting::Unknown {
                        held.accounting = Accounting::OpenOnly;
                    }
                    holder.memory_known = held.accounting != Accounting::Unknown;
                }
            }
        }
    }

    fn refuse(&mut self, subject: &str, words: &str) {
        self.refused.push((subject.to_owned(), words.to_owned()));
    }
}

// === impl ProcessDraft ===

impl ProcessDraft {
    /// Takes a row of a region for its own, unless ledger or endpoint speak for that device.
    fn take_row(&mut self, index: usize, row: &RowObservation, parts: &mut Parts) {
        if let Some(claimed) = self.claimed.iter_mut().find(|claimed| claimed.device == index) {
            claimed.row_found = true;
            return;
        }
        held(&mut self.process, index).accounting = Accounting::BytesOnly;
        for (kind, bytes) in &row.kinds {
            let usage = HeldUsage::BytesOnly { live_bytes: *bytes };
            parts.add_process(*kind, &usage);
            if *bytes > 0 {
                put(&mut self.process, index, *kind, usage);
            }
        }
        self.process.known_by.get_or_insert(ProcessSource::Region);
    }

    /// Whether the process says what it has, and so what it has not.
    fn accounts_for_itself(&self) -> bool {
        matches!(self.process.known_by, Some(ProcessSource::Ledger | ProcessSource::Endpoint))
    }
}

/// Whether a process can have counted this; what has wrapped below zero is not.
fn is_plausible(usage: &MemoryUsage) -> bool {
    let MemoryUsage {
        live_bytes,
        live_buffers,
        peak_bytes,
        allocations,
        allocated_bytes,
        failed_allocations,
    } = *usage;
    let counts = [live_buffers, allocations, failed_allocations];
    live_bytes.max(peak_bytes) <= MAX_DEVICE_BYTES
        && allocated_bytes <= MAX_PLAUSIBLE_FLOW_BYTES
        && counts.into_iter().all(|count| count <= MAX_PLAUSIBLE_COUNT)
}

/// The process's entry for the device at `index`.
fn held(process: &mut Process, index: usize) -> &mut HeldDevice {
    let place = match process.devices.iter().position(|held| held.device == index) {
        Some(place) => place,
        None => {
            process.devices.push(HeldDevice { device: index, ..HeldDevice::default() });
            process.devices.len() - 1
        }
    };
    &mut process.devices[place]
}

/// Adds `usage` to what the process has of a kind on a device.
fn put(process: &mut Process, index: usize, kind: MemoryKind, usage: HeldUsage) {
    let kinds = &mut held(process, index).kinds;
    match kinds.iter_mut().find(|one| one.kind == kind) {
        None => kinds.push(HeldKind { kind, usage }),
        Some(one) => one.usage = one.usage.plus(usage),
    }
}

/// What a region's name tells of its chip.
fn identity_of(region: &RegionObservation) -> ChipIdentity {
    match region.board_serial {
        Some(serial) => {
            let [.., location] = region.name_id.to_be_bytes();
            let board_id = BoardId(serial);
            let board_type = board_id.board_type();
            ChipIdentity {
                board_id: Some(board_id),
                board_type,
                location,
                ..ChipIdentity::default()
            }
        }
        None => ChipIdentity { asic_id: Some(AsicId(region.name_id)), ..ChipIdentity::default() },
    }
}

/// The process behind a row whose pid means nothing here.
fn hidden(row: &RowObservation) -> Process {
    Process {
        identity: None,
        pid: None,
        namespace_pid: Some(row.pid),
        name: row.name.clone(),
        command: Reading::absent(Absence::Hidden, ""),
        uid: Reading::absent(Absence::Hidden, ""),
        user: Reading::absent(Absence::Hidden, ""),
        container: None,
        state: ProcessState::Hidden,
        known_by: None,
        uptime_seconds: Reading::absent(Absence::Hidden, ""),
        devices: Vec::new(),
        faults: RecordingFaults::default(),
        metrics: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
