//! Emulated machines with workloads on them: what `telltale smi` and the service are timed on.

use std::io;
use std::path::Path;
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{DeviceClient, Emulator, EmulatorOptions, MachineKind};
use telltale_runtime::{Device, DeviceDescription, Options, Runtime};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{ProcessSource, Snapshot};

use crate::rundir::RunDirectory;
use crate::workers::{WorkerProcess, WorkerService};

/// A machine, and how much of it a workload has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A Wormhole Galaxy: 32 chips, of which a workload has two open.
    Galaxy,
    /// A T3000: 8 chips, four of them without a PCI link, and all open in each workload.
    Eight,
}

/// What a workload holds on a chip: kind, buffers, bytes of each.
type Held = (MemoryKind, u64, u64);
/// What one of the Galaxy holds on each of its chips.
const HELD: [Held; 6] = [
    (MemoryKind::Dram, 64, 1 << 20),
    (MemoryKind::Trace, 1, 4 << 20),
    (MemoryKind::L1, 32, 2048),
    (MemoryKind::L1Small, 8, 1024),
    (MemoryKind::Cb, 16, 4096),
    (MemoryKind::KernelApplication, 8, 2048),
];
/// As many kinds, where a hundred workloads share each chip.
const HELD_BY_MANY: [Held; 6] = [
    (MemoryKind::Dram, 64, 1 << 20),
    (MemoryKind::Trace, 1, 4 << 20),
    (MemoryKind::L1, 2, 2048),
    (MemoryKind::L1Small, 1, 1024),
    (MemoryKind::Cb, 1, 1024),
    (MemoryKind::KernelApplication, 1, 1024),
];
/// The emulator's values do not move while commands are timed: its writing would be timed too.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// A machine and its workloads, each a process of its own; all are gone when this is dropped.
#[derive(Debug)]
pub struct BusyMachine {
    size: Size,
    // Dropped in this order: workloads, machine, directory.
    workloads: Vec<WorkerProcess>,
    _machine: WorkerProcess,
    run: RunDirectory,
}

// === impl Size ===

impl Size {
    /// Chips of the machine.
    pub fn chips(self) -> usize {
        match self {
            Self::Galaxy => 32,
            Self::Eight => 8,
        }
    }

    /// Chips that one workload has open.
    fn chips_of_one(self) -> usize {
        match self {
            Self::Galaxy => 2,
            Self::Eight => 8,
        }
    }

    /// The devices that the workload with this number opens, one for each PCI link.
    fn links_of(self, number: u64) -> std::ops::Range<u32> {
        match self {
            Self::Galaxy => {
                let first = u32::try_from(number % 16).expect("less than 16") * 2;
                first..first + 2
            }
            Self::Eight => 0..4,
        }
    }

    /// What a workload holds on each of its chips.
    fn held(self) -> &'static [Held] {
        match self {
            Self::Galaxy => &HELD,
            Self::Eight => &HELD_BY_MANY,
        }
    }

    fn kind(self) -> MachineKind {
        match self {
            Self::Galaxy => MachineKind::GalaxyWormhole,
            Self::Eight => MachineKind::T3000,
        }
    }
}

// === impl BusyMachine ===

impl BusyMachine {
    /// Starts the machine and `workloads` processes on it.
    ///
    /// # Errors
    /// When a process cannot be started, or a collector does not see what was started.
    pub fn start(worker: &Path, size: Size, workloads: u64) -> io::Result<Self> {
        let run = RunDirectory::create()?;
        let start = |service| WorkerProcess::start(worker, run.path(), service, None);
        let machine = start(WorkerService::Machine { size })?;
        let workloads: Vec<WorkerProcess> = (0..workloads)
            .map(|number| start(WorkerService::Workload { size, number }))
            .collect::<io::Result<_>>()?;
        let busy = Self { size, workloads, _machine: machine, run };
        if !busy.is_seen_in(&busy.snapshot()?) {
            return Err(io::Error::other("a snapshot does not show what was started"));
        }
        Ok(busy)
    }

    /// The machine's root, for `--root`.
    pub fn root(&self) -> &Path {
        self.run.path()
    }

    /// Which machine it is.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The process ids of the workloads.
    pub fn pids(&self) -> Vec<u32> {
        self.workloads.iter().map(WorkerProcess::id).collect()
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
    pub fn is_seen_in(&self, snapshot: &Snapshot) -> bool {
        let held: u64 = self.size.held().iter().map(|(_, buffers, bytes)| buffers * bytes).sum();
        let whole = snapshot.processes.iter().filter(|process| {
            let kinds = process.devices.iter().flat_map(|device| &device.kinds);
            let live: u64 = kinds.map(|kind| kind.usage.live_bytes()).sum();
            process.known_by == Some(ProcessSource::Ledger)
                && live == self.size.chips_of_one() as u64 * held
        });
        let counts = (snapshot.devices.len(), snapshot.processes.len(), whole.count());
        !snapshot.has_errors() && counts == (self.size.chips(), self.workloads(), self.workloads())
    }
}

/// The machine itself. For the worker.
///
/// # Errors
/// When it cannot be made there.
pub fn emulate(root: &Path, size: Size) -> io::Result<Emulator> {
    let options = EmulatorOptions { tick: NEVER, ..EmulatorOptions::default() };
    Emulator::start(root, size.kind(), options).map_err(io::Error::other)
}

/// A runtime whose files are in the machine's runtime directory, with no say of the environment.
pub fn runtime_on(root: &Path) -> Runtime {
    let mut options = Options::from_variables("bench", |_| None);
    options.root = Some(root.to_owned());
    Runtime::start(options)
}

/// Opens the chips of the workload with this number and takes memory of several kinds on them.
/// Dropping what this gives closes them. For the worker.
///
/// # Errors
/// When the machine is not there or has no memory left.
pub fn hold(root: &Path, size: Size, number: u64) -> io::Result<Vec<(DeviceClient, Vec<Device>)>> {
    let runtime = runtime_on(root);
    let open = |link| open(root, &runtime, link, size.held());
    size.links_of(number).map(open).collect()
}

/// The least that is a workload: one chip, and one buffer on it. For the worker.
///
/// # Errors
/// When the machine is not there or has no memory left.
pub fn visit(root: &Path, number: u64) -> io::Result<(DeviceClient, Vec<Device>)> {
    let runtime = runtime_on(root);
    let link = u32::try_from(number % 4).expect("less than 4");
    open(root, &runtime, link, &[(MemoryKind::Dram, 1, 1 << 20)])
}

/// Opens all chips behind one PCI link and takes this memory on each.
fn open(
    root: &Path,
    runtime: &Runtime,
    link: u32,
    held: &[Held],
) -> io::Result<(DeviceClient, Vec<Device>)> {
    let client = DeviceClient::open(root, link).map_err(io::Error::other)?;
    let chips = client.chips().len();
    let mut devices = Vec::with_capacity(chips);
    for (place, found) in client.chips().iter().enumerate() {
        let logical_id = link * u32::try_from(chips).map_err(io::Error::other)?
            + u32::try_from(place).map_err(io::Error::other)?;
        let device = runtime.open_device(DeviceDescription {
            identity: found.identity.clone(),
            logical_id,
            facts: Some(found.facts),
        });
        for &(kind, buffers, bytes) in held {
            for _ in 0..buffers {
                let address = client.allocate(place, kind, bytes).map_err(io::Error::other)?;
                device.allocate(kind, address, bytes);
            }
        }
        devices.push(device);
    }
    Ok((client, devices))
}
