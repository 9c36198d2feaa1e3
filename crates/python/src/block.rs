//! What a block of code costs in device memory, by this process's own ledgers: their values before
//! it and after it, and their peaks, which are taken where a block begins and ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_ledger::{
    DeviceEntry, FileNumber, LedgerReader, OwnPeaks, POSTING_THRESHOLD_BYTES,
    identity_of_this_process,
};
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::process::ProcessIdentity;

/// A device as the process names it, and a kind of its memory.
type Place = (String, MemoryKind);
/// A ledger among those that were opened.
type LedgerNumber = u64;

/// What the process has where.
#[derive(Debug, Clone, Default)]
struct Usages {
    /// Bytes in use, by the ledger that counts for the device.
    live: BTreeMap<Place, u64>,
    /// What each ledger has counted. Those of a device that is opened again start at 0 in another
    /// ledger, so that differences are taken ledger by ledger.
    counted: BTreeMap<(Place, LedgerNumber), MemoryUsage>,
}

/// The blocks of this process that have begun and not ended: the native half of `telltale.track`.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct MemoryBlocks {
    /// A child of `fork` must not use what its parent has: it makes another.
    pid: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begun: u64,
    open: BTreeMap<u64, OpenBlock>,
    /// Kept while a block is open: of a ledger that is removed meanwhile, the values are still
    /// there.
    ledgers: Vec<OwnLedger>,
    /// How many were opened.
    opened: LedgerNumber,
}

/// A block that has begun.
struct OpenBlock {
    before: Usages,
    /// The most bytes in use so far.
    peaks: BTreeMap<Place, u64>,
}

/// A ledger of this process, by whichever runtime.
struct OwnLedger {
    number: LedgerNumber,
    file: FileNumber,
    reader: LedgerReader,
    /// None where peaks cannot be taken: then a block has the larger of its ends.
    peaks: Option<OwnPeaks>,
}

/// What a block cost in one kind of memory of a device.
#[pyclass(frozen, get_all, module = "telltale")]
pub(crate) struct BlockMemory {
    /// The device, as the process names it.
    device: String,
    /// The kind.
    kind: &'static str,
    /// Bytes in use when it began.
    before: u64,
    /// Bytes in use when it ended.
    after: u64,
    /// The most bytes in use at a time.
    peak: u64,
    /// How much more the peak may have been.
    peak_uncertainty: u64,
    /// Bytes of the allocations within.
    allocated: u64,
    /// Allocations within.
    allocations: u64,
    /// Allocations within that failed.
    failed: u64,
}

#[pymethods]
impl BlockMemory {
    /// Bytes in use after it and not before it; negative where it freed more.
    #[getter]
    fn kept(&self) -> i64 {
        self.after.wrapping_sub(self.before).cast_signed()
    }

    fn __repr__(&self) -> String {
        let Self { device, kind, before, after, peak, .. } = self;
        format!("<BlockMemory {kind} of {device}: {before} bytes, then {after}, peak {peak}>")
    }
}

#[pymethods]
impl MemoryBlocks {
    #[new]
    fn new() -> Self {
        Self { pid: std::process::id(), state: Mutex::default() }
    }

    /// A block begins; the number that ends it.
    fn begin(&self, py: Python<'_>) -> u64 {
        py.detach(|| {
            let Some(mut state) = self.lock() else { return 0 };
            let before = state.turn();
            let peaks = before.live.clone();
            state.begun += 1;
            let number = state.begun;
            state.open.insert(number, OpenBlock { before, peaks });
            number
        })
    }

    /// A block ends; what it cost, or `None` where the process records no memory.
    fn end(&self, py: Python<'_>, number: u64) -> Option<Vec<BlockMemory>> {
        py.detach(|| {
            let mut state = self.lock()?;
            let after = state.turn();
            let block = state.open.remove(&number)?;
            let uncertainty = state.uncertainty();
            let is_recorded = !state.ledgers.is_empty();
            if state.open.is_empty() {
                state.ledgers.clear();
            }
            is_recorded.then(|| block.costs(&after, uncertainty))
        })
    }
}

impl MemoryBlocks {
    /// None in a child, whose parent may have held the lock.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        let is_own = self.pid == std::process::id();
        is_own.then(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Takes all peaks, for the blocks that are open; what there is now.
    fn turn(&mut self) -> Usages {
        self.search();
        for ledger in &mut self.ledgers {
            // One that cannot be read keeps its last values.
            let _ = ledger.reader.read();
        }
        self.ledgers.sort_by_key(OwnLedger::is_preloaded);
        let now = usages(&self.ledgers);
        let taken = taken(&self.ledgers);
        for block in self.open.values_mut() {
            for (place, bytes) in taken.iter().chain(&now.live) {
                let most = block.peaks.entry(place.clone()).or_default();
                *most = (*bytes).max(*most);
            }
        }
        now
    }

    /// Opens the ledgers that are new: a device may have been opened.
    fn search(&mut self) {
        let Ok(own) = identity_of_this_process() else { return };
        let environment = DirectoryEnvironment::of_this_process();
        let directories = RuntimeDirectory::for_reading(None, None, &environment);
        for directory in directories.into_iter().flatten() {
            let Ok(listing) = directory.list() else { continue };
            for entry in listing.ledgers.iter().filter(|entry| entry.pid == own.pid) {
                // Opening one costs more than asking whether it is open already.
                let Ok(status) = directory.entry_status(&entry.name) else { continue };
                let file = FileNumber { device: status.device, inode: status.inode };
                if self.ledgers.iter().any(|it| it.file == file) {
                    continue;
                }
                let number = self.opened;
                if let Some(found) = OwnLedger::open(&directory, &entry.name, own, number) {
                    self.opened += 1;
                    // The newest first: one that was removed may have had the same devices.
                    self.ledgers.insert(0, found);
                }
            }
        }
    }

    /// How much less than the truth a peak may be: several threads keep a little to themselves.
    fn uncertainty(&self) -> u64 {
        let several = self.ledgers.iter().map(|ledger| ledger.reader.last().shards);
        let several = several.filter(|shards| *shards > 1).map(u64::from).max().unwrap_or(0);
        several * POSTING_THRESHOLD_BYTES
    }
}

impl OwnLedger {
    fn open(
        directory: &RuntimeDirectory,
        name: &str,
        own: ProcessIdentity,
        number: LedgerNumber,
    ) -> Option<Self> {
        let reader = LedgerReader::open_at(directory, name).ok()?;
        let file = reader.file().ok()?;
        let is_own = *reader.owner() == own;
        let peaks = || OwnPeaks::open_at(directory, name).ok();
        is_own.then(|| Self { number, file, reader, peaks: peaks() })
    }

    /// Whether it is the one of a preloaded library. It comes last: what the program says itself of
    /// a device counts (docs/decisions/0070-two-ledgers.md).
    fn is_preloaded(&self) -> bool {
        self.reader.last().devices.iter().any(|device| device.is_host)
    }
}

impl OpenBlock {
    /// What there was in each place.
    fn costs(&self, after: &Usages, peak_uncertainty: u64) -> Vec<BlockMemory> {
        let counted = after.counted.keys().map(|(place, _)| place);
        let mut places: Vec<&Place> =
            self.before.live.keys().chain(after.live.keys()).chain(counted).collect();
        places.sort_unstable();
        places.dedup();
        let cost = |place: &Place| {
            let bytes = |live: &BTreeMap<Place, u64>| live.get(place).copied().unwrap_or(0);
            let within = self.counted_within(after, place);
            BlockMemory {
                device: place.0.clone(),
                kind: place.1.name(),
                before: bytes(&self.before.live),
                after: bytes(&after.live),
                peak: bytes(&self.peaks),
                peak_uncertainty,
                allocated: within.allocated_bytes,
                allocations: within.allocations,
                failed: within.failed_allocations,
            }
        };
        places.into_iter().map(cost).collect()
    }

    /// What all ledgers have counted of a place since it began.
    fn counted_within(&self, after: &Usages, place: &Place) -> MemoryUsage {
        let mut sum = MemoryUsage::default();
        let of_place = (place.clone(), LedgerNumber::MIN)..=(place.clone(), LedgerNumber::MAX);
        for (ledger, last) in after.counted.range(of_place) {
            let first = self.before.counted.get(ledger).copied().unwrap_or_default();
            let within = MemoryUsage {
                allocations: last.allocations.saturating_sub(first.allocations),
                allocated_bytes: last.allocated_bytes.saturating_sub(first.allocated_bytes),
                failed_allocations: last
                    .failed_allocations
                    .saturating_sub(first.failed_allocations),
                ..MemoryUsage::default()
            };
            add(&mut sum, &within);
        }
        sum
    }
}

/// How a ledger's devices are named.
struct Names {
    /// By slot; none where the device is another's to count: what the program says itself hides the
    /// preloaded library.
    counted: Vec<Option<String>>,
    /// The same without devices that a newer ledger has: their bytes in use are there.
    live: Vec<Option<String>>,
}

/// How each ledger's devices are named. The newest is first, and preloaded ones are last.
fn names(ledgers: &[OwnLedger]) -> Vec<Names> {
    let own = ledgers.iter().filter(|ledger| !ledger.is_preloaded());
    let own: Vec<String> =
        own.flat_map(|ledger| ledger.reader.last().devices.iter().map(name)).collect();
    let mut newer: Vec<String> = Vec::new();
    let of_ledger = |ledger: &OwnLedger| {
        let all: Vec<String> = ledger.reader.last().devices.iter().map(name).collect();
        let except = |hidden: &[String]| {
            let left = all.iter().map(|name| (!hidden.contains(name)).then(|| name.clone()));
            left.collect()
        };
        let counted = if ledger.is_preloaded() { except(&own) } else { except(&[]) };
        let live = except(&newer);
        newer.extend(all);
        Names { counted, live }
    };
    ledgers.iter().map(of_ledger).collect()
}

/// What is in the ledgers.
fn usages(ledgers: &[OwnLedger]) -> Usages {
    let mut usages = Usages::default();
    for (ledger, names) in ledgers.iter().zip(names(ledgers)) {
        for (slot, kind, usage) in &ledger.reader.last().usage {
            if let Some(Some(device)) = names.live.get(slot.index()) {
                let live = usages.live.entry((device.clone(), *kind)).or_default();
                *live = live.saturating_add(usage.live_bytes);
            }
            if let Some(Some(device)) = names.counted.get(slot.index()) {
                let place = ((device.clone(), *kind), ledger.number);
                add(usages.counted.entry(place).or_default(), usage);
            }
        }
    }
    usages
}

/// The peaks since the last turn: of a device in several ledgers, which were open one after the
/// other, the largest.
fn taken(ledgers: &[OwnLedger]) -> BTreeMap<Place, u64> {
    let mut peaks = BTreeMap::new();
    for (ledger, names) in ledgers.iter().zip(names(ledgers)) {
        let mut own: BTreeMap<Place, u64> = BTreeMap::new();
        for (slot, kind, peak) in ledger.peaks.iter().flat_map(OwnPeaks::take) {
            if let Some(Some(device)) = names.counted.get(slot.index()) {
                let sum = own.entry((device.clone(), kind)).or_default();
                *sum = sum.saturating_add(peak);
            }
        }
        for (place, peak) in own {
            let most = peaks.entry(place).or_default();
            *most = peak.max(*most);
        }
    }
    peaks
}

/// Two slots of one device have one account.
fn add(sum: &mut MemoryUsage, usage: &MemoryUsage) {
    sum.allocations = sum.allocations.saturating_add(usage.allocations);
    sum.allocated_bytes = sum.allocated_bytes.saturating_add(usage.allocated_bytes);
    sum.failed_allocations = sum.failed_allocations.saturating_add(usage.failed_allocations);
}

/// How the process names a device: by its identity, else by its number.
fn name(device: &DeviceEntry) -> String {
    let identity = &device.identity;
    let is_known = identity.asic_id.is_some() || identity.board_id.is_some();
    match () {
        () if device.is_host => String::from("host"),
        () if is_known || identity.pci.is_some() || identity.galaxy.is_some() => {
            identity.display_id()
        }
        () => format!("device {}", device.logical_id),
    }
}
