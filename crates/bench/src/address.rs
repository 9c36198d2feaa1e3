//! Allocating and freeing by address, beside the seed's map, lock and rows.

use crate::pinning::Pinned;
use crate::sample::{Contender, Effort, Figures, interleave, time_ns};
use crate::seed::{Device, SeedError, Setting, Tracker, heap_bytes};
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
/// Pairs in one repeat of a full run.
const PAIRS: u64 = 400_000;
/// Live buffers when only the working is shown.
const FEW_LIVE: u32 = 8;
/// The most that one live buffer may cost.
const LIVE_BUFFER_BYTES: f64 = 48.0;

fn rows(effort: Effort, goal: &Goal) -> Result<[Row; 2], SeedError> {
    let live = if effort == Effort::Once { FEW_LIVE } else { goal.live };
    let script = Script::new(live, 1);
    let device = Device::new(Setting::PerPid { rows_before: 0 })?;
    let heap_before = heap_bytes();
    let tracker = Tracker::new(&device);
    tracker.fill(&script.live);
    let heap_per_buffer = heap_bytes().saturating_sub(heap_before) as f64 / f64::from(live);

    let rounds = effort.operations(PAIRS).div_ceil(script.steps.len() as u64);
    let pairs = rounds * script.steps.len() as u64;
    let seed: Contender<'_> = Box::new(|| {
        time_ns(pairs, || {
            for _ in 0..rounds {
                tracker.replay(&script.steps);
            }
        })
    });
    let [seed] = interleave(effort.repeats(), [seed]);
    let pair = Row {
        what: format!("allocate + free by address, {live} live"),
        unit: Unit::Time,
        ours: None,
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
        ours: None,
        baseline: Some(Figures::new(vec![heap_per_buffer])),
        target: Target { at_most: Some(LIVE_BUFFER_BYTES), ..Target::default() },
    };
    Ok([pair, memory])
}

/// Allocate and free by address, per pair.
///
/// # Errors
/// When a region cannot be made.
pub fn table(effort: Effort) -> Result<Table, SeedError> {
    // Pinning is what makes a repeat repeat; a machine that refuses it still gives figures.
    let _pinned = Pinned::to(0);
    let mut all = Vec::new();
    for goal in &GOALS {
        all.extend(rows(effort, goal)?);
    }
    Ok(Table {
        heading:
            "Allocate and free by address, random victims; baseline: the seed's map, lock and rows"
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
