//! Recording one allocation, beside the seed's version 1 region.

use std::hint::black_box;
use std::io;

use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{DeviceEntry, DeviceSlot, Ledger, LedgerOwner, Recorder};
use telltale_runtime::DeviceDescription;
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;

use crate::client::runtime_in;
use crate::pinning::Pinned;
use crate::rundir::RunDirectory;
use crate::sample::{Contender, Effort, Measurements, interleave, time_ns, time_on_two_threads_ns};
use crate::seed::{SeedDevice, Setting};
use crate::table::{Row, Table, Target, Unit};

/// Pairs in one repeat of a full run: 0.2 s of the seed's slowest form.
const PAIRS: u64 = 400_000;
/// Pairs of ours in one repeat for each of the seed's, so that both take about as long.
const OURS_PER_SEED: u64 = 10;
/// Balanced runs whose remainder is looked at, in a full run.
const BALANCED_RUNS: u64 = 20;
/// Different sizes in the loops, the same as in `call_site.cpp`.
const SIZES: u64 = 64;
const SMALLEST_BYTES: u64 = 2048;

/// A ledger with one device, in a directory of its own.
#[derive(Debug)]
pub struct OneDevice {
    ledger: Ledger,
    slot: DeviceSlot,
    _run: RunDirectory,
}

// === impl OneDevice ===

impl OneDevice {
    /// Makes the ledger of this process in a fresh directory.
    ///
    /// # Errors
    /// When the directory or the ledger cannot be made.
    pub fn new() -> io::Result<Self> {
        let run = RunDirectory::create()?;
        let directory =
            RuntimeDirectory::open(run.path(), Purpose::Writing).map_err(io::Error::other)?;
        let owner =
            LedgerOwner::of_this_process("bench", Timestamp(0)).map_err(io::Error::other)?;
        let ledger = Ledger::create(&directory, owner).map_err(io::Error::other)?;
        let slot = ledger.add_device(&DeviceEntry::default()).map_err(io::Error::other)?;
        Ok(Self { ledger, slot, _run: run })
    }

    /// `pairs` allocations, each followed by its free, by a recorder of the calling thread.
    pub fn record_pairs(&self, pairs: u64) {
        record_pairs(&self.ledger.recorder(), self.slot, pairs);
    }

    /// Live DRAM bytes, as a reader sees them.
    pub fn live_bytes(&self) -> u64 {
        self.ledger.usage().usage.iter().map(|(_, _, usage)| usage.live_bytes).sum()
    }
}

fn record_pairs(recorder: &Recorder, slot: DeviceSlot, pairs: u64) {
    let sizes: [u64; SIZES as usize] = std::array::from_fn(|i| SMALLEST_BYTES * (1 + i as u64));
    for pair in 0..pairs {
        let bytes = sizes[(pair % SIZES) as usize];
        allocated(recorder, slot, bytes);
        freed(recorder, slot, bytes);
    }
}

// Calls, as the seed's are: a runtime records from many places, each once.
#[inline(never)]
fn allocated(recorder: &Recorder, slot: DeviceSlot, bytes: u64) {
    recorder.allocated(slot, MemoryKind::Dram, bytes);
}

#[inline(never)]
fn freed(recorder: &Recorder, slot: DeviceSlot, bytes: u64) {
    recorder.freed(slot, MemoryKind::Dram, bytes);
}

/// The same through the handle that a runtime's author uses.
fn handle_pairs(device: &telltale_runtime::Device, pairs: u64) {
    for pair in 0..pairs {
        let bytes = SMALLEST_BYTES * (1 + pair % SIZES);
        handle_allocated(device, bytes);
        handle_freed(device, bytes);
    }
}

#[inline(never)]
fn handle_allocated(device: &telltale_runtime::Device, bytes: u64) {
    device.allocate_sized(MemoryKind::Dram, bytes);
}

#[inline(never)]
fn handle_freed(device: &telltale_runtime::Device, bytes: u64) {
    device.free_sized(MemoryKind::Dram, bytes);
}

/// The same while switched off, without calls around it: what is left is what a workload pays.
fn off_pairs(device: &telltale_runtime::Device, pairs: u64) {
    for _ in 0..pairs {
        black_box(device).allocate_sized(MemoryKind::Dram, SMALLEST_BYTES);
        black_box(device).free_sized(MemoryKind::Dram, SMALLEST_BYTES);
    }
}

/// A contender that times `pairs` balanced pairs, per record call.
fn pairs<'a>(pairs: u64, body: impl Fn(u64) + 'a) -> Contender<'a> {
    Box::new(move || time_ns(2 * pairs, || body(black_box(pairs))))
}

fn row(what: &str, ours: Option<&Measurements>, baseline: Measurements, target: Target) -> Row {
    let unit = Unit::Time;
    Row { what: what.to_owned(), unit, ours: ours.cloned(), baseline: Some(baseline), target }
}

/// One thread: ours, and the seed with process rows at three places of its table and in cheaper forms.
fn one_thread(effort: Effort) -> io::Result<Vec<Row>> {
    let seed = |setting| SeedDevice::new(setting).map_err(io::Error::other);
    let ours = OneDevice::new()?;
    let recorder = ours.ledger.recorder();
    let first = seed(Setting::PerPid { rows_before: 0 })?;
    let middle = seed(Setting::PerPid { rows_before: 31 })?;
    let last = seed(Setting::PerPid { rows_before: 63 })?;
    let totals = seed(Setting::Totals)?;
    let off = seed(Setting::Off)?;
    let run = RunDirectory::create()?;
    let handle = runtime_in(run.path(), false).open_device(DeviceDescription::default());
    let handle_off = runtime_in(run.path(), true).open_device(DeviceDescription::default());
    let count = effort.operations(PAIRS);
    let [ours, handle, handle_off, first, middle, last, totals, known, off] = interleave(
        effort.repeats(),
        [
            pairs(OURS_PER_SEED * count, |n| record_pairs(&recorder, ours.slot, n)),
            pairs(OURS_PER_SEED * count, |n| handle_pairs(&handle, n)),
            pairs(OURS_PER_SEED * count, |n| off_pairs(&handle_off, n)),
            pairs(count, |n| first.record_pairs(n)),
            pairs(count, |n| middle.record_pairs(n)),
            pairs(count, |n| last.record_pairs(n)),
            pairs(count, |n| totals.record_pairs(n)),
            pairs(count, |n| first.record_pairs_known_pid(n)),
            pairs(OURS_PER_SEED * count, |n| off.record_pairs(n)),
        ],
    );
    let goal = Target { at_most: Some(8.0), times_better: Some(8.0), ..Target::default() };
    let (none, nothing) = (Target::default(), Target { at_most: Some(1.0), ..Target::default() });
    Ok(vec![
        row("record, original's process row first", Some(&ours), first.clone(), goal),
        row("record by the runtime's device handle, size known", Some(&handle), first, goal),
        row("record, original's process row 31", Some(&ours), middle, none),
        row("record, original's process row 63 (last)", Some(&ours), last, none),
        row("record, original without process rows", Some(&ours), totals, none),
        row("record, original's row first and pid known", Some(&ours), known, none),
        row("switched off", Some(&handle_off), off, nothing),
    ])
}

/// What is left after runs in which every allocation was freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// Our live bytes after each run.
    pub ours_bytes: Vec<u64>,
    /// The bytes of the seed's process row after each run.
    pub row_bytes: Vec<u64>,
    /// The seed's shared total after each run.
    pub total_bytes: Vec<u64>,
}

/// Runs balanced pairs on two threads `runs` times, each on a fresh ledger and a fresh region.
///
/// # Errors
/// When a ledger or region cannot be made.
pub fn balance(runs: u64, pairs: u64) -> io::Result<Balance> {
    let (ours_bytes, row_bytes, total_bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut balance = Balance { ours_bytes, row_bytes, total_bytes };
    for _ in 0..runs {
        let ours = OneDevice::new()?;
        time_on_two_threads_ns(2 * pairs, |_| ours.record_pairs(pairs));
        balance.ours_bytes.push(ours.live_bytes());
        let seed = SeedDevice::new(Setting::PerPid { rows_before: 0 }).map_err(io::Error::other)?;
        // Claims the row before the threads start, so that they cannot claim one each.
        seed.record_pairs(1);
        time_on_two_threads_ns(2 * pairs, |_| seed.record_pairs(pairs));
        balance.row_bytes.extend(seed.row().map(|row| row.bytes));
        balance.total_bytes.push(seed.total_bytes());
    }
    Ok(balance)
}

fn two_threads(effort: Effort) -> io::Result<[Row; 2]> {
    let ours = OneDevice::new()?;
    let run = RunDirectory::create()?;
    let handle = runtime_in(run.path(), false).open_device(DeviceDescription::default());
    let seed = SeedDevice::new(Setting::PerPid { rows_before: 0 }).map_err(io::Error::other)?;
    let count = effort.operations(PAIRS);
    let ours_count = OURS_PER_SEED * count;
    let [ours, handle, seed] = interleave(
        effort.repeats(),
        [
            on_two_threads(ours_count, |pairs| ours.record_pairs(pairs)),
            on_two_threads(ours_count, |pairs| handle_pairs(&handle, pairs)),
            on_two_threads(count, |pairs| seed.record_pairs(pairs)),
        ],
    );
    let goal = Target { at_most: Some(20.0), times_better: Some(6.0), ..Target::default() };
    Ok([
        row("record, two threads at once", Some(&ours), seed.clone(), goal),
        row("record by the device handle, two threads at once", Some(&handle), seed, goal),
    ])
}

/// A contender that times `pairs` balanced pairs on each of two threads, per record call.
fn on_two_threads<'a>(pairs: u64, body: impl Fn(u64) + Sync + 'a) -> Contender<'a> {
    Box::new(move || time_on_two_threads_ns(2 * pairs, |_| body(black_box(pairs))))
}

fn remark(name: &str, left_over: &[u64]) -> String {
    let wrong = left_over.iter().filter(|&&bytes| bytes != 0).count();
    let worst = left_over.iter().max().copied().unwrap_or(0);
    let runs = left_over.len();
    format!("{name}: {wrong} of {runs} balanced two-thread runs end non-zero, worst {worst} bytes")
}

/// Recording one allocation (or one free), per call.
///
/// # Errors
/// When a ledger or region cannot be made.
pub fn table(effort: Effort) -> io::Result<Table> {
    let mut rows = {
        // Pinning is what makes a repeat repeat; a machine that refuses it still gives numbers.
        let _pinned = Pinned::to(0);
        one_thread(effort)?
    };
    rows.extend(two_threads(effort)?);
    let balance = balance(effort.operations(BALANCED_RUNS), effort.operations(PAIRS))?;
    Ok(Table {
        heading:
            "Record one allocation or free; baseline: the original's region as its call site uses it"
                .to_owned(),
        rows,
        remarks: vec![
            remark("ours", &balance.ours_bytes),
            remark("original's process row", &balance.row_bytes),
            remark("original's shared total", &balance.total_bytes),
        ],
    })
}
