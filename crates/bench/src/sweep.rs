//! A look at 8 devices x 100 processes, beside the seed's 800 sequential queries: first the whole
//! of it, as `smi` and the service take it, then its memory alone.

mod bare;
mod fleet;
mod node;
mod whole;

use std::io;
use std::path::Path;

use crate::machine::{BusyMachine, Size};
use crate::sample::{Effort, interleave, time_ns};
use crate::seed::DEVICES;
use crate::table::{Row, Table, Target, Unit};

pub use bare::Bare;
pub use fleet::{Fleet, OTHER_KINDS};
pub use node::{RunningCollector, cold, through_sockets};
pub use whole::WholeSnapshot;

/// What one sweep found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sweep {
    /// Answers: one for each process and device.
    pub answered: u64,
    /// DRAM bytes of each device, summed over the processes.
    pub dram_bytes: [u64; DEVICES],
}

/// Processes in a full or quick run.
const PROCESSES: u64 = 100;
/// Processes when only the working is shown.
const FEW_PROCESSES: u64 = 3;

/// Reading all memory once.
///
/// # Errors
/// When the workers cannot be started, or what is read first is not what they hold.
pub fn table(worker: &Path, effort: Effort) -> io::Result<Table> {
    let processes = if effort == Effort::Once { FEW_PROCESSES } else { PROCESSES };
    let busy = BusyMachine::start(worker, Size::Eight, processes)?;
    let [mut snapshot, mut snapshot_between] =
        [WholeSnapshot::new(&busy, true)?, WholeSnapshot::new(&busy, false)?];
    let fleet = Fleet::start(worker, processes)?;
    let (root, directory) = (fleet.root(), fleet.directory());
    let mut running = RunningCollector::new(root, directory)?;
    let mut bare = Bare::new(directory)?;
    let expected = fleet.expected();
    let mut wrong = [0_u64; 5];
    let [wrong_seed, wrong_running, wrong_bare, wrong_cold, wrong_sockets] = &mut wrong;
    let (seed_sweeps, running_sweeps) = (effort.operations(5), effort.operations(10_000));
    let (cold_sweeps, socket_sweeps) = (effort.operations(100), effort.operations(50));
    let snapshots = effort.operations(200);
    let [snapshot, snapshot_between, seed, running, bare, cold, sockets] = interleave(
        effort.repeats(),
        [
            Box::new(|| snapshot.time(snapshots)),
            Box::new(|| snapshot_between.time(snapshots)),
            contender(seed_sweeps, expected, wrong_seed, || Ok(fleet.seed_sweep())),
            contender(running_sweeps, expected, wrong_running, || Ok(running.sweep())),
            contender(running_sweeps, expected, wrong_bare, || bare.sweep()),
            contender(cold_sweeps, expected, wrong_cold, || cold(root, directory)),
            contender(socket_sweeps, expected, wrong_sockets, || through_sockets(root, directory)),
        ],
    );
    let row = |what: &str, ours, target: Target| Row {
        what: what.to_owned(),
        unit: Unit::Time,
        ours,
        baseline: Some(seed.clone()),
        target,
    };
    let millis = |limit: f64| Target { at_most: Some(limit * 1e6), ..Target::default() };
    let goal = Target { at_most: Some(50e3), times_better: Some(300.0), ..Target::default() };
    Ok(Table {
        heading: format!(
            "{DEVICES} devices x {processes} processes; baseline: the original's {} queries for memory",
            expected.answered
        ),
        rows: vec![
            row("a whole snapshot, sensors included", Some(snapshot), millis(3.0)),
            row("a whole snapshot, sensors as read before", Some(snapshot_between), millis(1.0)),
            row("memory alone, from a running reader", Some(running), goal),
            row("the same, the ledger crate's part alone", Some(bare), Target::default()),
            row("memory alone, cold, from ledger files", Some(cold), millis(3.0)),
            row("memory alone, cold, through sockets only", Some(sockets), millis(8.0)),
        ],
        remarks: vec![format!(
            "sweeps whose sums were not exact: the original's {}, running {}, bare {}, cold {}, sockets {}",
            wrong[0], wrong[1], wrong[2], wrong[3], wrong[4]
        )],
    })
}

/// Times `sweeps` sweeps, per sweep, and counts those that do not find what they should.
fn contender<'a>(
    sweeps: u64,
    expected: Sweep,
    wrong: &'a mut u64,
    mut sweep: impl FnMut() -> io::Result<Sweep> + 'a,
) -> crate::sample::Contender<'a> {
    Box::new(move || {
        time_ns(sweeps, || {
            for _ in 0..sweeps {
                *wrong += u64::from(sweep().ok() != Some(expected));
            }
        })
    })
}
