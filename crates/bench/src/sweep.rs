//! Reading the memory of 8 devices x 100 processes, beside the seed's 800 sequential queries.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::rundir::RunDirectory;
use crate::sample::{Contender, Effort, interleave, time_ns};
use crate::seed::{Collector, DEVICES, Sweep};
use crate::table::{Row, Table, Target, Unit};
use crate::workers::{Service, Worker};

/// Processes in a full or quick run.
const PROCESSES: u64 = 100;
/// Processes when only the working is shown.
const FEW_PROCESSES: u64 = 3;

/// The seed's servers, one process each, with the driver's pid lists that name them.
#[derive(Debug)]
pub struct SeedFleet {
    collector: Collector,
    workers: Vec<Worker>,
    // Declared last: fields drop in order, and the workers' sockets lie in it.
    run: RunDirectory,
}

// === impl SeedFleet ===

impl SeedFleet {
    /// Starts `processes` servers; the n-th (from 1) serves 1,000 n + d bytes for device d.
    ///
    /// # Errors
    /// When a worker cannot be started or a file cannot be written.
    pub fn start(worker: &Path, processes: u64) -> io::Result<Self> {
        let run = RunDirectory::create()?;
        let mut workers = Vec::new();
        for number in 1..=processes {
            let service = Service::Seed { base: 1_000 * number };
            workers.push(Worker::start(worker, run.path(), service, None)?);
        }
        let driver = run.path().join("driver");
        write_pid_lists(&driver, &workers)?;
        let collector = Collector::new(&driver, run.path()).map_err(io::Error::other)?;
        Ok(Self { collector, workers, run })
    }

    /// One sweep by the seed's collector.
    pub fn sweep(&self) -> Sweep {
        self.collector.sweep()
    }

    /// Where the sockets and lists lie.
    pub fn directory(&self) -> &Path {
        self.run.path()
    }

    /// How many servers run.
    pub fn processes(&self) -> usize {
        self.workers.len()
    }
}

/// Every process holds every device, as in the seed's estimate of 800 queries.
fn write_pid_lists(driver: &Path, workers: &[Worker]) -> io::Result<()> {
    let mut list = String::new();
    for worker in workers {
        writeln!(list, "{}", worker.id()).expect("a String takes every write");
    }
    for device in 0..DEVICES {
        let directory = driver.join(device.to_string());
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("pids"), &list)?;
    }
    Ok(())
}

/// Reading all memory once.
///
/// # Errors
/// When the workers cannot be started.
pub fn table(worker: &Path, effort: Effort) -> io::Result<Table> {
    let processes = if effort == Effort::Once { FEW_PROCESSES } else { PROCESSES };
    let fleet = SeedFleet::start(worker, processes)?;
    let sweeps = effort.operations(20);
    let expected = (fleet.processes() * DEVICES) as u64;
    let mut short = 0_u64;
    let seed: Contender<'_> = Box::new(|| {
        time_ns(sweeps, || {
            for _ in 0..sweeps {
                short += u64::from(fleet.sweep().answered != expected);
            }
        })
    });
    let [seed] = interleave(effort.repeats(), [seed]);
    let row = |what: &str, target: Target| Row {
        what: what.to_owned(),
        unit: Unit::Time,
        ours: None,
        baseline: Some(seed.clone()),
        target,
    };
    let millis = |limit: f64| Target { at_most: Some(limit * 1e6), ..Target::default() };
    let running = Target { at_most: Some(50e3), times_better: Some(300.0), ..Target::default() };
    Ok(Table {
        heading: format!(
            "Memory of {DEVICES} devices x {processes} processes; baseline: the seed's {expected} queries"
        ),
        rows: vec![
            row("from a running reader, liveness included", running),
            row("cold, from ledger files", millis(3.0)),
            row("cold, through sockets only", millis(8.0)),
        ],
        remarks: vec![format!("seed's sweeps with a query unanswered: {short}")],
    })
}
