//! From what the sources saw to devices and processes whose parts add up. Pure: no file, no clock.
//!
//! Per device and kind, processes + unattributed + ghost = total. A process counts once for a
//! device: by its ledger or endpoint, else by its row in a region, else by what it says in the
//! allocation server's protocol, else by what the driver counts for it. What a region's total has
//! beyond its rows, and beyond those who say that they are in it without a row, is unattributed;
//! rows of the dead are ghosts unless their ledgers are still there. No sum wraps, whatever the numbers are.

mod drivers;
mod finish;
mod holders;
mod matching;
mod naming;
mod parts;
mod plausible;
mod regions;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use telltale_ledger::RegionMirror;
use telltale_schema::chip::ChipFacts;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
use telltale_schema::health::Fault;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Device, HeldDevice, HeldKind, HeldUsage, Holder, KindUsage, Process, ProcessSource,
    ProcessState, Telemetry,
};

use crate::limits::{MAX_DEVICE_BYTES, MAX_DEVICES, MAX_DEVICES_NAMED_BY_A_USER};
use crate::observation::{
    Described, DeviceClaim, LegacyObservation, ProcessObservation, RegionObservation,
};
use crate::source::{DeviceReading, DriverMemory};
pub(crate) use matching::region_of;
use parts::{MemoryParts, RegionSums};
use plausible::{capacity_of, implausible};

/// What the sources saw.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// When collecting began.
    pub taken_at: Timestamp,
    /// Whether root collected: then no more can be read as another user.
    pub as_root: bool,
    /// Devices that their drivers show, in the order of display.
    pub devices: Vec<DeviceReading>,
    /// Processes, each once.
    pub processes: Vec<ProcessObservation>,
    /// Regions, each file once.
    pub regions: Vec<RegionObservation>,
    /// What processes say by the allocation server's protocol, each process once.
    pub legacy: Vec<LegacyObservation>,
}

/// Devices and processes that fit each other.
#[derive(Debug, Clone, Default)]
pub struct Reconciled {
    /// Those that drivers show first, then those that only ledgers or regions name.
    pub devices: Vec<Device>,
    /// Processes that hold a device or recorded memory.
    pub processes: Vec<Process>,
    /// What was refused.
    pub refused: Vec<RefusedClaim>,
}

/// Something that a process or a region says and that cannot be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedClaim {
    /// Whose it is, where that is known.
    pub uid: Option<u32>,
    /// The process's name, or what else says so.
    pub subject: String,
    /// What cannot be so.
    pub detail: String,
}

/// Brings observations together.
pub fn reconcile(observations: Observations) -> Reconciled {
    let Observations { taken_at, as_root, devices, processes, regions, legacy } = observations;
    let mut reconciliation = Reconciliation { taken_at, as_root, ..Reconciliation::default() };
    reconciliation.devices.extend(devices.into_iter().map(Draft::of_device));
    for observation in processes {
        reconciliation.add_process(observation);
    }
    reconciliation.add_regions(regions);
    reconciliation.add_legacy(legacy);
    let living = reconciliation.living();
    reconciliation.add_drivers(&living);
    reconciliation.mark_holders(&living);
    finish::finish(reconciliation)
}

/// The work in progress.
#[derive(Default)]
struct Reconciliation {
    taken_at: Timestamp,
    as_root: bool,
    devices: Vec<Draft>,
    processes: Vec<ProcessDraft>,
    refused: Vec<ClaimRefusal>,
    /// How many devices processes of each user have added.
    named: BTreeMap<Option<u32>, usize>,
}

/// What was refused, before its device has the name that the table shows.
struct ClaimRefusal {
    uid: Option<u32>,
    subject: String,
    why: String,
    /// The place of the device that it is about, if it is about one.
    device: Option<usize>,
}

/// A device in the making.
struct Draft {
    identity: DeviceIdentity,
    /// A driver shows it.
    is_shown: bool,
    /// The number by which alone processes know it.
    logical_id: Option<u32>,
    facts: Reading<ChipFacts>,
    telemetry: Telemetry,
    holders: Reading<Vec<Holder>>,
    faults: Vec<Fault>,
    /// Capacities that processes claim; none of them is used when they disagree.
    dram_capacity: Claimed,
    l1_capacity: Claimed,
    /// What the device's driver counts.
    driver: Option<DriverMemory>,
    parts: MemoryParts,
    regions: RegionSums,
    /// A source reports its memory.
    reported: bool,
}

/// A number that several processes claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Claimed {
    #[default]
    Unclaimed,
    All(u64),
    Disagreed,
}

/// A process in the making.
struct ProcessDraft {
    process: Process,
    /// Devices for which ledger or endpoint speak.
    claimed: Vec<ClaimedDevice>,
    /// Devices that samples of its metrics are about.
    measured: Arc<[Described]>,
}

struct ClaimedDevice {
    device: usize,
    /// How the process is in a region of the device, as it says.
    mirror: RegionMirror,
    /// A row there is its own.
    row_found: bool,
}

// === impl Claimed ===

impl Claimed {
    /// Takes a capacity that a process claims. `table` has what the board has, where it is known.
    fn add(&mut self, claim: Option<u64>, table: Option<u64>) {
        *self = match (*self, capacity_of(claim, table)) {
            (before, None) => before,
            (Self::Unclaimed, Some(bytes)) => Self::All(bytes),
            (Self::All(before), Some(bytes)) if before == bytes => Self::All(bytes),
            _ => Self::Disagreed,
        };
    }
}

// === impl Draft ===

impl Draft {
    fn of_device(device: DeviceReading) -> Self {
        let DeviceReading { identity, facts, telemetry, holders, memory, faults } = device;
        Self {
            identity,
            is_shown: true,
            facts,
            telemetry,
            holders,
            faults,
            driver: memory,
            ..Self::named(Described::default(), "")
        }
    }

    /// A device of which only `by` speak.
    fn named(device: Described, by: &str) -> Self {
        let logical_id = device.logical_id.filter(|_| device.is_nameless());
        let unseen = |what: &str| format!("only {by} name this device; {what}");
        Self {
            identity: device.chip.into(),
            is_shown: false,
            logical_id,
            facts: Reading::absent(Absence::Unknown, unseen("its board is not known")),
            telemetry: Telemetry::absent(Absence::Unknown, &unseen("the driver does not")),
            holders: Reading::absent(Absence::Unknown, unseen("the driver does not")),
            faults: Vec::new(),
            dram_capacity: Claimed::Unclaimed,
            l1_capacity: Claimed::Unclaimed,
            driver: None,
            parts: MemoryParts::default(),
            regions: RegionSums::default(),
            reported: false,
        }
    }

    /// It as descriptions are compared with.
    fn known(&self) -> matching::KnownDevice<'_> {
        let Self { identity, is_shown, logical_id, .. } = self;
        matching::KnownDevice { identity, is_shown: *is_shown, logical_id: *logical_id }
    }

    /// Takes from a believed claim what it says of the device itself.
    fn describe(&mut self, claim: &DeviceClaim, now: Timestamp) {
        self.reported = true;
        let table = self.facts.value();
        let (dram, l1) =
            (table.map(|it| it.dram_capacity_bytes), table.map(ChipFacts::l1_capacity_bytes));
        self.dram_capacity.add(claim.dram_capacity_bytes, dram);
        self.l1_capacity.add(claim.l1_capacity_bytes, l1);
        // A chip whose board cannot be read, as during a reset, is what its processes say.
        let of_board = || ChipFacts::of_board(claim.device.chip.board_type);
        if let (Reading::Absent { .. }, Some(facts)) = (&self.facts, claim.facts.or_else(of_board))
        {
            self.facts = Reading::new(facts, now);
        }
    }

    /// The most that anybody can have of a kind on this device.
    fn most_bytes(&self, kind: MemoryKind) -> u64 {
        match (kind.space(), self.dram_bytes()) {
            (MemorySpace::Dram, Some(bytes)) => bytes.min(MAX_DEVICE_BYTES),
            _ => MAX_DEVICE_BYTES,
        }
    }

    /// The device's DRAM, as far as its driver or the table of boards shows.
    fn dram_bytes(&self) -> Option<u64> {
        let counted = self.driver.as_ref().and_then(|driver| driver.capacity_bytes.value());
        counted.copied().or_else(|| Some(self.facts.value()?.dram_capacity_bytes))
    }
}

// === impl Reconciliation ===

impl Reconciliation {
    fn add_process(&mut self, observation: ProcessObservation) {
        let ProcessObservation { mut process, memory, measured } = observation;
        process.devices.clear();
        process.known_by = memory.as_ref().map(|claim| claim.source);
        let claims = memory.map_or_else(Vec::new, |claim| claim.devices);
        process.devices.reserve_exact(claims.len());
        let claimed = Vec::with_capacity(claims.len());
        let mut draft = ProcessDraft { process, claimed, measured };
        self.add_claims(&mut draft, claims);
        self.processes.push(draft);
    }

    /// Adds what a process says. It may describe one device twice, in different ways or by two
    /// connections: that is one claim, which is believed whole or not at all.
    fn add_claims(&mut self, draft: &mut ProcessDraft, claims: Vec<DeviceClaim>) {
        let mut by_device: Vec<(usize, DeviceClaim)> = Vec::with_capacity(claims.len());
        for claim in claims {
            let Some(index) = self.place_of(draft, &claim) else { continue };
            match by_device.iter_mut().find(|(known, _)| *known == index) {
                Some((_, first)) => first.add(claim),
                None => by_device.push((index, claim)),
            }
        }
        for (index, claim) in by_device {
            self.add_claim(draft, index, claim);
        }
    }

    /// The place of the device that a claim is about; none where there can be no more devices.
    fn place_of(&mut self, draft: &ProcessDraft, claim: &DeviceClaim) -> Option<usize> {
        let uid = draft.process.uid.value().copied();
        let device = if claim.is_host { self.host() } else { self.device_of(&claim.device, uid) };
        if device.is_none() {
            self.refuse(uid, &draft.process.name, "names more devices than a machine can have");
        }
        Some(self.part_of(device?, draft.process.pid))
    }

    /// Adds all that a process says of the device at `index`.
    fn add_claim(&mut self, draft: &mut ProcessDraft, index: usize, claim: DeviceClaim) {
        let counts = draft.process.state != ProcessState::Dead;
        if let Some(why) = implausible(&claim.kinds, self.devices[index].dram_bytes()) {
            self.refuse_claim(draft, index, why);
            return;
        }
        if counts {
            self.devices[index].describe(&claim, self.taken_at);
        }
        let parts = &mut self.devices[index].parts;
        // Most of a snapshot is these: none of them may have unused capacity.
        held(&mut draft.process, index).kinds.reserve_exact(claim.kinds.len());
        for KindUsage { kind, usage } in claim.kinds {
            let usage = HeldUsage::Recorded(usage);
            if counts {
                parts.add_process(kind, &usage);
            }
            put(&mut draft.process, index, kind, usage);
        }
        held(&mut draft.process, index).accounting = Accounting::Recorded;
        let mirror = claim.mirror;
        draft.claimed.push(ClaimedDevice { device: index, mirror, row_found: false });
    }

    /// Believes nothing of what the process says of a device, and says why.
    fn refuse_claim(&mut self, draft: &mut ProcessDraft, index: usize, why: String) {
        let pid = draft.process.pid.or(draft.process.namespace_pid);
        let who = pid.map(|pid| format!("pid {pid} ")).unwrap_or_default();
        let subject = format!("{who}({})", draft.process.name);
        let uid = draft.process.uid.value().copied();
        self.refused.push(ClaimRefusal { uid, subject, why: why.clone(), device: Some(index) });
        held(&mut draft.process, index).refused = Some(why);
    }

    /// The place of the device that is described, if it is known.
    fn known_device(&self, device: &Described) -> Option<usize> {
        let known: Vec<matching::KnownDevice<'_>> = self.devices.iter().map(Draft::known).collect();
        matching::find(&known, device)
    }

    /// The place of the device that is described, made if need be and possible for a process of
    /// user `uid`.
    fn device_of(&mut self, device: &Described, uid: Option<u32>) -> Option<usize> {
        let known = self.known_device(device);
        if known.is_some() || self.devices.len() >= MAX_DEVICES {
            return known;
        }
        let named = self.named.entry(uid).or_default();
        if *named >= MAX_DEVICES_NAMED_BY_A_USER {
            return None;
        }
        *named += 1;
        let mut draft = Draft::named(device.clone(), "ledgers");
        if let Some(facts) = ChipFacts::of_board(device.chip.board_type) {
            draft.facts = Reading::new(facts, self.taken_at);
        }
        self.devices.push(draft);
        Some(self.devices.len() - 1)
    }

    /// The place of the machine itself, made where its own source was not asked.
    fn host(&mut self) -> Option<usize> {
        let known = self.devices.iter().position(|draft| draft.identity.is_host());
        if known.is_some() || self.devices.len() >= MAX_DEVICES {
            return known;
        }
        let mut draft = Draft::named(Described::default(), "ledgers");
        draft.identity = OtherIdentity::new("host", "host", DeviceClass::Host).into();
        self.devices.push(draft);
        Some(self.devices.len() - 1)
    }

    /// Adds what processes say by the allocation server's protocol of devices for which no ledger,
    /// endpoint or row does.
    fn add_legacy(&mut self, observations: Vec<LegacyObservation>) {
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

    /// The places of the processes that live, by pid: drivers name each of a hundred thousand.
    fn living(&self) -> HashMap<u32, usize> {
        let mut places = HashMap::with_capacity(self.processes.len());
        // One that `/proc` hides may have ended, and its pid be another's.
        for state in [ProcessState::Alive, ProcessState::Hidden] {
            for (place, ProcessDraft { process, .. }) in self.processes.iter().enumerate() {
                if let (Some(pid), true) = (process.pid, process.state == state) {
                    places.entry(pid).or_insert(place);
                }
            }
        }
        places
    }

    fn refuse(&mut self, uid: Option<u32>, subject: &str, words: &str) {
        let (subject, why) = (subject.to_owned(), words.to_owned());
        self.refused.push(ClaimRefusal { uid, subject, why, device: None });
    }
}

// === impl ClaimRefusal ===

impl ClaimRefusal {
    /// It with the name that its device has in the table.
    fn named(self, ids: &[String]) -> RefusedClaim {
        let Self { uid, subject, why, device } = self;
        let detail = match device {
            Some(device) => format!("{why}, on device {}; none of it is counted", ids[device]),
            None => why,
        };
        RefusedClaim { uid, subject, detail }
    }
}

// === impl ProcessDraft ===

impl ProcessDraft {
    /// A process that says nothing itself.
    fn bare(process: Process) -> Self {
        Self { process, claimed: Vec::new(), measured: Arc::default() }
    }

    /// Whether the process says what it has, and so what it has not.
    fn accounts_for_itself(&self) -> bool {
        matches!(self.process.known_by, Some(ProcessSource::Ledger | ProcessSource::Endpoint))
    }

    /// Devices on which the process's memory is known.
    fn known_devices(&self) -> impl Iterator<Item = usize> {
        let known =
            self.process.devices.iter().filter(|held| held.accounting != Accounting::Unknown);
        known.map(|held| held.device)
    }
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

#[cfg(test)]
mod tests;
