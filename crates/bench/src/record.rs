//! Recording one allocation, beside the seed's version 1 region.

use std::hint::black_box;

use crate::pinning::Pinned;
use crate::sample::{Contender, Effort, Figures, interleave, time_ns, time_on_two_threads_ns};
use crate::seed::{Device, SeedError, Setting};
use crate::table::{Row, Table, Target, Unit};

/// Pairs in one repeat of a full run: 0.2 s of the seed's slowest form.
const PAIRS: u64 = 400_000;
/// Balanced runs whose final row is looked at, in a full run.
const BALANCED_RUNS: u64 = 20;

/// Times `pairs` balanced pairs, per record call.
fn pairs_ns(pairs: u64, body: impl FnOnce(u64)) -> f64 {
    time_ns(2 * pairs, || body(black_box(pairs)))
}

fn seed_figures(effort: Effort, device: &Device) -> Figures {
    let pairs = effort.operations(PAIRS);
    let seed: Contender<'_> = Box::new(|| pairs_ns(pairs, |n| device.record_pairs(n)));
    let [seed] = interleave(effort.repeats(), [seed]);
    seed
}

fn row(what: &str, baseline: Figures, target: Target) -> Row {
    Row { what: what.to_owned(), unit: Unit::Time, ours: None, baseline: Some(baseline), target }
}

/// One thread: the seed with process rows, at three places in its table, and its cheaper forms.
fn one_thread(effort: Effort) -> Result<Vec<Row>, SeedError> {
    let target = Target { at_most: Some(8.0), times_better: Some(8.0), ..Target::default() };
    let per_pid = |rows_before| Device::new(Setting::PerPid { rows_before });
    let mut rows = Vec::new();
    rows.push(row("record, seed's process row first", seed_figures(effort, &per_pid(0)?), target));
    for (what, rows_before) in
        [("record, seed's process row 31", 31), ("record, seed's process row 63 (last)", 63)]
    {
        rows.push(row(what, seed_figures(effort, &per_pid(rows_before)?), Target::default()));
    }
    let totals = Device::new(Setting::Totals)?;
    rows.push(row(
        "record, seed without process rows",
        seed_figures(effort, &totals),
        Target::default(),
    ));

    let known = per_pid(0)?;
    let pairs = effort.operations(PAIRS);
    let known: Contender<'_> = Box::new(|| pairs_ns(pairs, |n| known.record_pairs_known_pid(n)));
    let [known] = interleave(effort.repeats(), [known]);
    rows.push(row("record, seed's row first and pid known", known, Target::default()));

    let off = Device::new(Setting::Off)?;
    let target = Target { at_most: Some(1.0), ..Target::default() };
    rows.push(row("switched off", seed_figures(effort, &off), target));
    Ok(rows)
}

/// What is left in the seed's row and total after runs in which every allocation was freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// The row's bytes after each run.
    pub row_bytes: Vec<u64>,
    /// The shared total's bytes after each run.
    pub total_bytes: Vec<u64>,
}

/// Runs balanced pairs on two threads `runs` times, each on a fresh region.
///
/// # Errors
/// When a region cannot be made.
pub fn seed_balance(runs: u64, pairs: u64) -> Result<Balance, SeedError> {
    let mut balance = Balance { row_bytes: Vec::new(), total_bytes: Vec::new() };
    for _ in 0..runs {
        let device = Device::new(Setting::PerPid { rows_before: 0 })?;
        // Claims the row before the threads start, so that they cannot claim one each.
        device.record_pairs(1);
        time_on_two_threads_ns(2 * pairs, |_| device.record_pairs(pairs));
        balance.row_bytes.extend(device.row().map(|row| row.bytes));
        balance.total_bytes.push(device.total_bytes());
    }
    Ok(balance)
}

fn two_threads(effort: Effort) -> Result<Row, SeedError> {
    let device = Device::new(Setting::PerPid { rows_before: 0 })?;
    let pairs = effort.operations(PAIRS);
    let seed: Contender<'_> =
        Box::new(|| time_on_two_threads_ns(2 * pairs, |_| device.record_pairs(black_box(pairs))));
    let [seed] = interleave(effort.repeats(), [seed]);
    let target = Target { at_most: Some(20.0), times_better: Some(6.0), ..Target::default() };
    Ok(row("record, two threads at once", seed, target))
}

fn balance_remark(name: &str, left_over: &[u64]) -> String {
    let wrong = left_over.iter().filter(|&&bytes| bytes != 0).count();
    let worst = left_over.iter().max().copied().unwrap_or(0);
    let runs = left_over.len();
    format!("{name}: {wrong} of {runs} balanced two-thread runs end non-zero, worst {worst} bytes")
}

/// Recording one allocation (or one free), per call.
///
/// # Errors
/// When a region cannot be made.
pub fn table(effort: Effort) -> Result<Table, SeedError> {
    let mut rows = {
        // Pinning is what makes a repeat repeat; a machine that refuses it still gives figures.
        let _pinned = Pinned::to(0);
        one_thread(effort)?
    };
    rows.push(two_threads(effort)?);
    let balance = seed_balance(effort.operations(BALANCED_RUNS), effort.operations(PAIRS))?;
    Ok(Table {
        heading:
            "Record one allocation or free; baseline: the seed's region as its call site uses it"
                .to_owned(),
        rows,
        remarks: vec![
            balance_remark("seed's process row", &balance.row_bytes),
            balance_remark("seed's shared total", &balance.total_bytes),
        ],
    })
}
