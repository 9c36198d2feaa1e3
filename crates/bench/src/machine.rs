//! An emulated machine with workloads on it: what `telltale smi` is timed on.

use std::io;
use std::path::Path;
use std::time::Duration;

use telltale_emulator::{DeviceClient, Emulator, EmulatorOptions, MachineKind};
use telltale_node::{CollectOptions, Collector};
use telltale_runtime::{Device, DeviceDescription, Options, Runtime};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{ProcessSource, Snapshot};

use crate::rundir::RunDirectory;
use crate::workers::{Service, Worker};

/// Chips of the machine: a Wormhole Galaxy.
pub const CHIPS: usize = 32;
/// Chips that one workload has open.
const CHIPS_OF_ONE: usize = 2;
/// What a workload holds on each of its chips: kind, buffers, bytes of each.
const HELD: [(MemoryKind, u64, u64); 6] = [
    (MemoryKind::Dram, 64, 1 << 20),
    (MemoryKind::Trace, 1, 4 << 20),
    (MemoryKind::L1, 32, 2048),
    (MemoryKind::L1Small, 8, 1024),
    (MemoryKind::Cb, 16, 4096),
    (MemoryKind::KernelApplication, 8, 2048),
];
/// The emulator's values do not move while commands are timed: its writing would be timed too.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// A machine and its workloads, each a process of its own; all are gone when this is dropped.
#[derive(Debug)]
pub struct BusyMachine {
    // Dropped in this order: workloads, machine, directory.
    workloads: Vec<Worker>,
    _machine: Worker,
    run: RunDirectory,
}

// === impl BusyMachine ===

impl BusyMachine {
    /// Starts the machine and `workloads` processes, each of which has two chips open.
    ///
    /// # Errors
    /// When a process cannot be started, or a collector does not see what was started.
    pub fn start(worker: &Path, workloads: u64) -> io::Result<Self> {
        let run = RunDirectory::create()?;
        let start = |service| Worker::start(worker, run.path(), service, None);
        let machine = start(Service::Machine)?;
        let workloads: Vec<Worker> = (0..workloads)
            .map(|number| start(Service::Workload { number }))
            .collect::<io::Result<_>>()?;
        let busy = Self { workloads, _machine: machine, run };
        if !busy.is_seen_in(&busy.snapshot()?) {
            return Err(io::Error::other("a snapshot does not show what was started"));
        }
        Ok(busy)
    }

    /// The machine's root, for `--root`.
    pub fn root(&self) -> &Path {
        self.run.path()
    }

    /// How many workloads there are.
    pub fn workloads(&self) -> usize {
        self.workloads.len()
    }

    /// One look at the machine, as `telltale smi` makes it.
    ///
    /// # Errors
    /// When the root cannot be opened.
    pub fn snapshot(&self) -> io::Result<Snapshot> {
        let options = CollectOptions { root: self.root().to_owned(), ..CollectOptions::default() };
        Ok(Collector::new(options).map_err(io::Error::other)?.collect())
    }

    /// Whether all chips and all workloads are in a snapshot, each workload by its ledger and with
    /// everything it holds.
    fn is_seen_in(&self, snapshot: &Snapshot) -> bool {
        let held: u64 = HELD.iter().map(|(_, buffers, bytes)| buffers * bytes).sum();
        let whole = snapshot.processes.iter().filter(|process| {
            let kinds = process.devices.iter().flat_map(|device| &device.kinds);
            let live: u64 = kinds.map(|kind| kind.usage.live_bytes()).sum();
            process.known_by == Some(ProcessSource::Ledger) && live == CHIPS_OF_ONE as u64 * held
        });
        let counts = (snapshot.devices.len(), snapshot.processes.len(), whole.count());
        !snapshot.has_errors() && counts == (CHIPS, self.workloads(), self.workloads())
    }
}

/// The machine itself. For the worker.
///
/// # Errors
/// When it cannot be made there.
pub fn emulate(root: &Path) -> io::Result<Emulator> {
    let options = EmulatorOptions { tick: NEVER, ..EmulatorOptions::default() };
    Emulator::start(root, MachineKind::GalaxyWormhole, options).map_err(io::Error::other)
}

/// Opens the two chips of the workload with this number and takes memory of several kinds on them.
/// Dropping what this gives closes them. For the worker.
///
/// # Errors
/// When the machine is not there or has no memory left.
pub fn hold(root: &Path, number: u64) -> io::Result<Vec<(DeviceClient, Device)>> {
    let mut options = Options::from_variables("bench", |_| None);
    options.root = Some(root.to_owned());
    let runtime = Runtime::start(options);
    let pairs = (CHIPS / CHIPS_OF_ONE) as u64;
    let first = u32::try_from(number % pairs).map_err(io::Error::other)? * CHIPS_OF_ONE as u32;
    let open = |ordinal| {
        let client = DeviceClient::open(root, ordinal).map_err(io::Error::other)?;
        let found = client.chips().first().ok_or_else(|| io::Error::other("no chip"))?;
        let device = runtime.open_device(DeviceDescription {
            identity: found.identity.clone(),
            logical_id: ordinal,
            facts: Some(found.facts),
        });
        for (kind, buffers, bytes) in HELD {
            for _ in 0..buffers {
                let address = client.allocate(0, kind, bytes).map_err(io::Error::other)?;
                device.allocate(kind, address, bytes);
            }
        }
        Ok((client, device))
    };
    (first..first + CHIPS_OF_ONE as u32).map(open).collect()
}
