//! The processes that are read: the seed's servers, and as many workloads of ours.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use telltale_schema::memory::MemoryKind;

use super::Sweep;
use crate::rundir::RunDirectory;
use crate::seed::{Collector, DEVICES};
use crate::workers::{WorkerProcess, WorkerService};

/// What a process of ours holds beside DRAM: with it, the four values that the seed's answer has.
pub const OTHER_KINDS: [MemoryKind; 3] =
    [MemoryKind::L1, MemoryKind::Cb, MemoryKind::KernelApplication];

/// Both kinds of processes, in two directories, with the driver's pid lists that the seed reads.
#[derive(Debug)]
pub struct Fleet {
    collector: Collector,
    // Dropped before the directories that their files lie in.
    seed: Vec<WorkerProcess>,
    ours: Vec<WorkerProcess>,
    seed_run: RunDirectory,
    ours_run: RunDirectory,
    root: RunDirectory,
}

// === impl Fleet ===

impl Fleet {
    /// Starts `processes` of each kind; the n-th (from 1) holds 1,000 n + d bytes on device d.
    ///
    /// # Errors
    /// When a worker cannot be started or a file cannot be written.
    pub fn start(worker: &Path, processes: u64) -> io::Result<Self> {
        let (seed_run, ours_run) = (RunDirectory::create()?, RunDirectory::create()?);
        let root = RunDirectory::create()?;
        let start =
            |run: &RunDirectory, service| WorkerProcess::start(worker, run.path(), service, None);
        let base = |number: u64| 1_000 * number;
        let seed: Vec<WorkerProcess> = (1..=processes)
            .map(|n| start(&seed_run, WorkerService::Seed { base: base(n) }))
            .collect::<io::Result<_>>()?;
        let ours: Vec<WorkerProcess> = (1..=processes)
            .map(|n| start(&ours_run, WorkerService::Ours { base: base(n) }))
            .collect::<io::Result<_>>()?;
        let driver = seed_run.path().join("driver");
        write_pid_lists(&driver, &seed)?;
        let collector = Collector::new(&driver, seed_run.path()).map_err(io::Error::other)?;
        Ok(Self { collector, seed, ours, seed_run, ours_run, root })
    }

    /// One sweep by the seed's collector.
    pub fn seed_sweep(&self) -> Sweep {
        self.collector.sweep()
    }

    /// Where our ledgers lie.
    pub fn directory(&self) -> &Path {
        self.ours_run.path()
    }

    /// The root of a machine without chips: only processes are read.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// All directories.
    pub fn directories(&self) -> [&Path; 3] {
        [self.seed_run.path(), self.ours_run.path(), self.root()]
    }

    /// Our processes.
    pub fn ours(&mut self) -> &mut Vec<WorkerProcess> {
        &mut self.ours
    }

    /// What a right sweep of either kind finds.
    pub fn expected(&self) -> Sweep {
        let count = self.seed.len() as u64;
        let bases = 1_000 * count * (count + 1) / 2;
        let dram_bytes = std::array::from_fn(|device| bases + count * device as u64);
        Sweep { answered: count * DEVICES as u64, dram_bytes }
    }
}

/// Every process holds every device, as in the seed's estimate of 800 queries.
fn write_pid_lists(driver: &Path, workers: &[WorkerProcess]) -> io::Result<()> {
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
