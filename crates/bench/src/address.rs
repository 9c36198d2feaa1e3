//! Allocating and freeing by address, beside the seed's map, lock and rows.

use std::io;

use telltale_runtime::{DeviceDescription, MemoryKind};

use crate::client::runtime_in;
use crate::pinning::Pinned;
use crate::rundir::RunDirectory;
use crate::sample::{Effort, Measurements, interleave, time_ns, time_on_two_threads_ns};
use crate::seed::{BLOCK_STRIDE_BYTES, FIRST_ADDRESS, SeedDevice, Setting, Tracker, heap_bytes};
use crate::table::{Row, Table, Target, Unit};

/// A run of steps over `live` blocks, each freeing a random live block and allocating a random idle
/// one, that ends where it began: it can be replayed without end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The blocks live before the first step and after the last.
    pub live: Vec<u32>,
    /// (freed, allocated), twice as many as there are live blocks.
    pub steps: Vec<[u32; 2]>,
}

impl Script {
    /// A script for `live` blocks, the same for the same numbers.
    pub fn new(live: u32, seed: u64) -> Self {
        let mut random = SplitMix(seed);
        let mut first: Vec<u32> = (0..live).collect();
        let mut second: Vec<u32> = (live..2 * live).collect();
        random.shuffle(&mut first);
        random.shuffle(&mut second);
        let live_blocks = first.clone();
        let mut steps: Vec<[u32; 2]> =
            first.iter().zip(&second).map(|(&freed, &taken)| [freed, taken]).collect();
        random.shuffle(&mut first);
        random.shuffle(&mut second);
        steps.extend(second.iter().zip(&first).map(|(&freed, &taken)| [freed, taken]));
        Self { live: live_blocks, steps }
    }

    /// The same script for blocks whose numbers begin at `first`.
    fn from(&self, first: u32) -> Self {
        let live = self.live.iter().map(|block| block + first).collect();
        let steps = self.steps.iter().map(|step| step.map(|block| block + first)).collect();
        Self { live, steps }
    }
}

/// Sebastiano Vigna's SplitMix64: enough for shuffling, and the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn shuffle(&mut self, values: &mut [u32]) {
        for last in (1..values.len()).rev() {
            let chosen = self.next() % (last as u64 + 1);
            values.swap(last, usize::try_from(chosen).expect("below a slice's length"));
        }
    }
}

/// What one live count is held to.
struct Goal {
    live: u32,
    pair_ns: f64,
    times_better: f64,
}

const GOALS: [Goal; 2] = [
    Goal { live: 1_000, pair_ns: 25.0, times_better: 12.0 },
    Goal { live: 100_000, pair_ns: 35.0, times_better: 20.0 },
];
/// Live counts for the line of how time grows.
const SCALING_LIVE: [u32; 6] = [1_000, 4_000, 16_000, 64_000, 100_000, 256_000];
/// Pairs in one repeat of a full run.
const PAIRS: u64 = 400_000;
/// Live buffers when only the working is shown.
const FEW_LIVE: u32 = 8;
/// The most that one live buffer may cost.
const LIVE_BUFFER_BYTES: f64 = 48.0;

fn rows(effort: Effort, goal: &Goal) -> io::Result<[Row; 2]> {
    let live = if effort == Effort::Once { FEW_LIVE } else { goal.live };
    let script = Script::new(live, 1);
    let run = RunDirectory::create()?;
    let ours = runtime_in(run.path(), false).open_device(DeviceDescription::default());
    // What a thread's first record makes is not the index, and happens once.
    ours.allocate_sized(MemoryKind::Dram, BLOCK_STRIDE_BYTES);
    let ours_per_buffer = heap_per_buffer(live, || {
        script.live.iter().for_each(|&block| allocate(&ours, block));
    });
    let region = SeedDevice::new(Setting::PerPid { rows_before: 0 }).map_err(io::Error::other)?;
    let tracker = Tracker::new(&region);
    region.record_allocation(BLOCK_STRIDE_BYTES);
    let seed_per_buffer = heap_per_buffer(live, || tracker.fill(&script.live));
    let rounds = effort.operations(PAIRS).div_ceil(script.steps.len() as u64);
    let pairs = rounds * script.steps.len() as u64;
    let replayed = |replay: &dyn Fn(&[[u32; 2]])| {
        time_ns(pairs, || {
            for _ in 0..rounds {
                replay(&script.steps);
            }
        })
    };
    let [ours, seed] = interleave(
        effort.repeats(),
        [
            Box::new(|| replayed(&|steps| replay(&ours, steps))),
            Box::new(|| replayed(&|steps| tracker.replay(steps))),
        ],
    );
    let pair = Row {
        what: format!("allocate + free by address, {live} live"),
        unit: Unit::Time,
        ours: Some(ours),
        baseline: Some(seed),
        target: Target {
            at_most: Some(goal.pair_ns),
            times_better: Some(goal.times_better),
            ..Target::default()
        },
    };
    let memory = Row {
        what: format!("memory of one live buffer, {live} live"),
        unit: Unit::Bytes,
        ours: Some(Measurements::new(vec![ours_per_buffer])),
        baseline: Some(Measurements::new(vec![seed_per_buffer])),
        target: Target { at_most: Some(LIVE_BUFFER_BYTES), ..Target::default() },
    };
    Ok([pair, memory])
}

/// Two threads at once, each with its own `live` buffers of one device. There is no goal for it.
fn two_threads(effort: Effort, live: u32) -> io::Result<Row> {
    let live = if effort == Effort::Once { FEW_LIVE } else { live };
    let script = Script::new(live, 1);
    let scripts = [script.from(0), script.from(2 * live)];
    let run = RunDirectory::create()?;
    let ours = runtime_in(run.path(), false).open_device(DeviceDescription::default());
    let region = SeedDevice::new(Setting::PerPid { rows_before: 0 }).map_err(io::Error::other)?;
    let tracker = Tracker::new(&region);
    for script in &scripts {
        script.live.iter().for_each(|&block| allocate(&ours, block));
        tracker.fill(&script.live);
    }
    let rounds = effort.operations(PAIRS).div_ceil(script.steps.len() as u64);
    let pairs = rounds * script.steps.len() as u64;
    let replayed = |replay: &(dyn Fn(&[[u32; 2]]) + Sync)| {
        time_on_two_threads_ns(pairs, |thread| {
            for _ in 0..rounds {
                replay(&scripts[thread].steps);
            }
        })
    };
    let [ours, seed] = interleave(
        effort.repeats(),
        [
            Box::new(|| replayed(&|steps| replay(&ours, steps))),
            Box::new(|| replayed(&|steps| tracker.replay(steps))),
        ],
    );
    Ok(Row {
        what: format!("the same, {live} live each, two threads"),
        unit: Unit::Time,
        ours: Some(ours),
        baseline: Some(seed),
        target: Target::default(),
    })
}

/// How a pair's time grows with the live buffers, which shows where the index leaves a cache. There
/// is no goal for it.
fn scaling(effort: Effort, live: u32) -> io::Result<Row> {
    let live = if effort == Effort::Once { FEW_LIVE } else { live };
    let script = Script::new(live, 1);
    let run = RunDirectory::create()?;
    let ours = runtime_in(run.path(), false).open_device(DeviceDescription::default());
    script.live.iter().for_each(|&block| allocate(&ours, block));
    let rounds = effort.operations(PAIRS).div_ceil(script.steps.len() as u64);
    let pairs = rounds * script.steps.len() as u64;
    let replayed = || time_ns(pairs, || (0..rounds).for_each(|_| replay(&ours, &script.steps)));
    let [ours] = interleave(effort.repeats(), [Box::new(replayed)]);
    Ok(Row {
        what: format!("ours alone, {live} live"),
        unit: Unit::Time,
        ours: Some(ours),
        baseline: None,
        target: Target::default(),
    })
}

/// The bytes of malloc that `fill` took for each of `live` buffers.
fn heap_per_buffer(live: u32, fill: impl FnOnce()) -> f64 {
    let before = heap_bytes();
    fill();
    heap_bytes().saturating_sub(before) as f64 / f64::from(live)
}

fn replay(device: &telltale_runtime::Device, steps: &[[u32; 2]]) {
    for &[freed, taken] in steps {
        free(device, freed);
        allocate(device, taken);
    }
}

// Calls, as the seed's are: a runtime records from many places, each once.
#[inline(never)]
fn allocate(device: &telltale_runtime::Device, block: u32) {
    let bytes = BLOCK_STRIDE_BYTES * (1 + u64::from(block % 64));
    device.allocate(MemoryKind::Dram, address_of(block), bytes);
}

#[inline(never)]
fn free(device: &telltale_runtime::Device, block: u32) {
    device.free(MemoryKind::Dram, address_of(block));
}

fn address_of(block: u32) -> u64 {
    FIRST_ADDRESS + BLOCK_STRIDE_BYTES * u64::from(block)
}

/// Allocate and free by address, per pair.
///
/// # Errors
/// When a region or a directory cannot be made.
pub fn table(effort: Effort) -> io::Result<Table> {
    let mut all = Vec::new();
    for goal in &GOALS {
        {
            // Pinning is what makes a repeat repeat; a machine that refuses it still gives numbers.
            let _pinned = Pinned::to(0);
            all.extend(rows(effort, goal)?);
        }
        all.push(two_threads(effort, goal.live)?);
    }
    let _pinned = Pinned::to(0);
    for live in SCALING_LIVE {
        all.push(scaling(effort, live)?);
    }
    Ok(Table {
        heading:
            "Allocate and free by address, random victims; baseline: the original's map, lock and rows"
                .to_owned(),
        rows: all,
        remarks: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::Script;
    use std::collections::HashSet;

    #[test]
    fn a_script_frees_only_what_lives_and_ends_where_it_began() {
        for live in [1, 2, 8, 1_000] {
            let script = Script::new(live, 7);
            let start: HashSet<u32> = script.live.iter().copied().collect();
            assert_eq!(start.len(), live as usize);
            let mut now = start.clone();
            for [freed, taken] in &script.steps {
                assert!(now.remove(freed), "{freed} lives");
                assert!(now.insert(*taken), "{taken} is idle");
            }
            assert_eq!(now, start);
        }
    }
}
