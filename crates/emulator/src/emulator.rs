//! A running machine: its tree, its clock and its devices.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::device::ChipUsage;
use crate::machine::{
    CreateError, Fault, InjectError, Machine, MachineKind, MachineOptions, TreeError,
};
use crate::server::{EmulatorServer, ServerCounters, locked};

/// How often the counters may be read within a tick without showing more than a link carries.
const READS_OF_A_TICK: u128 = 4;

/// How a machine is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmulatorOptions {
    /// How its tree is made.
    pub machine: MachineOptions,
    /// How often its values change.
    pub tick: Duration,
    /// What is wrong from the beginning on.
    pub faults: Vec<Fault>,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self {
            machine: MachineOptions::default(),
            tick: Duration::from_secs(1),
            faults: Vec::new(),
        }
    }
}

/// Why a machine could not be started.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorStartError {
    /// Its tree could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A fault could not be injected.
    #[error("cannot inject the fault {fault}")]
    Fault {
        /// The fault.
        fault: Fault,
        /// Why.
        #[source]
        source: InjectError,
    },
    /// Its devices could not be opened.
    #[error("cannot listen on the devices' sockets in {root}: choose another file system")]
    Listen {
        /// The machine's root.
        root: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: stop other programs or raise the limit of processes")]
    Thread(#[source] io::Error),
}

/// Why a fault could not be injected into, or cleared from, a running machine.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// The machine refused.
    #[error(transparent)]
    Inject(#[from] InjectError),
    /// A device's socket could not be opened again.
    #[error("cannot open the socket of a device that came back: restart the emulator")]
    Listen(#[source] io::Error),
}

/// A running machine. [`Self::shutdown`], or dropping it, ends its threads, closes its devices
/// and removes its tree.
#[derive(Debug)]
pub struct Emulator {
    root: PathBuf,
    kind: MachineKind,
    /// Present until the shutdown.
    parts: Option<EmulatorParts>,
}

#[derive(Debug)]
struct EmulatorParts {
    machine: Arc<Mutex<Machine>>,
    server: Arc<EmulatorServer>,
    /// Dropping it ends the clock.
    clock: Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Emulator {
    /// Starts a machine under `root` (see [`Machine::create`] for which directories will do).
    ///
    /// # Errors
    /// When the tree, the sockets or the threads cannot be made, or a fault is impossible; what
    /// was made by then is removed.
    pub fn start(
        root: &Path,
        kind: MachineKind,
        options: EmulatorOptions,
    ) -> Result<Self, EmulatorStartError> {
        let mut machine = Machine::create(root, kind, &options.machine)?;
        for fault in options.faults {
            let injected = machine.inject(fault.clone());
            injected.map_err(|source| EmulatorStartError::Fault { fault, source })?;
        }
        let root = machine.root().to_path_buf();
        let machine = Arc::new(Mutex::new(machine));
        let server = EmulatorServer::new(Arc::clone(&machine))
            .map_err(|source| EmulatorStartError::Listen { root: root.clone(), source })?;
        let server = Arc::new(server);
        let (clock, ended) = channel();
        let parts = EmulatorParts { machine, server, clock, threads: Vec::new() };
        let mut emulator = Self { root, kind, parts: Some(parts) };
        emulator.start_threads(ended, options.tick).map_err(EmulatorStartError::Thread)?;
        Ok(emulator)
    }

    /// The root, as an absolute path without links: what readers take as `--root`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The kind of machine.
    pub fn kind(&self) -> MachineKind {
        self.kind
    }

    /// The ordinals of the devices that are there now.
    pub fn ordinals(&self) -> Vec<u32> {
        let machine = locked(&self.parts().machine);
        (0..machine.chip_count()).filter_map(|place| machine.ordinal(place)).collect()
    }

    /// The truth: what is allocated on every chip, remote ones after their gateway, by process.
    pub fn usage(&self) -> Vec<ChipUsage> {
        self.parts().server.usage()
    }

    /// What the devices' server refused and could not do.
    pub fn counters(&self) -> ServerCounters {
        self.parts().server.counters()
    }

    /// Makes something go wrong until it is cleared. All connections of a device that vanishes
    /// are closed when this returns.
    ///
    /// # Errors
    /// See [`Machine::inject`].
    pub fn inject(&self, fault: Fault) -> Result<(), FaultError> {
        locked(&self.parts().machine).inject(fault)?;
        self.parts().server.follow_machine().map_err(FaultError::Listen)
    }

    /// Whether a fault can be injected as the machine is now.
    ///
    /// # Errors
    /// See [`Machine::inject`].
    pub fn check(&self, fault: &Fault) -> Result<(), InjectError> {
        locked(&self.parts().machine).check(fault).map(|_| ())
    }

    /// The faults that are injected now, the oldest first.
    pub fn faults(&self) -> Vec<Fault> {
        locked(&self.parts().machine).faults().cloned().collect()
    }

    /// Undoes a fault. A device that had vanished can be opened again when this returns.
    ///
    /// # Errors
    /// See [`Machine::clear`].
    pub fn clear(&self, fault: &Fault) -> Result<(), FaultError> {
        locked(&self.parts().machine).clear(fault)?;
        self.parts().server.follow_machine().map_err(FaultError::Listen)
    }

    /// Undoes all faults.
    ///
    /// # Errors
    /// See [`Machine::clear_all`].
    pub fn clear_all(&self) -> Result<(), FaultError> {
        locked(&self.parts().machine).clear_all()?;
        self.parts().server.follow_machine().map_err(FaultError::Listen)
    }

    /// Ends the machine and removes its tree. Files of others in `dev/shm` and `run/tt` stay, and
    /// the root with them; up to [`crate::MAX_LEFTOVERS`] of them are returned.
    ///
    /// # Errors
    /// When something of ours cannot be removed.
    pub fn shutdown(mut self) -> Result<Vec<PathBuf>, TreeError> {
        self.stop()
    }

    fn parts(&self) -> &EmulatorParts {
        self.parts.as_ref().expect("only the shutdown takes the parts, and nothing follows it")
    }

    fn start_threads(&mut self, ended: Receiver<()>, tick: Duration) -> io::Result<()> {
        let parts = self.parts.as_mut().expect("the machine was just started");
        let server = Arc::clone(&parts.server);
        let serving = std::thread::Builder::new().name("emulator-serve".to_owned());
        parts.threads.push(serving.spawn(move || server.serve())?);
        let (server, machine) = (Arc::clone(&parts.server), Arc::clone(&parts.machine));
        let ticking = std::thread::Builder::new().name("emulator-clock".to_owned());
        parts.threads.push(ticking.spawn(move || run_clock(&machine, &server, &ended, tick))?);
        Ok(())
    }

    fn stop(&mut self) -> Result<Vec<PathBuf>, TreeError> {
        let Some(EmulatorParts { machine, server, clock, threads }) = self.parts.take() else {
            return Ok(Vec::new());
        };
        drop(clock);
        server.stop();
        for thread in threads {
            // A thread that panicked has reported it; the tree is removed all the same.
            let _ = thread.join();
        }
        drop(server);
        let machine = Arc::into_inner(machine).expect("the threads and the server are gone");
        machine.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).remove()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // No one is left to notify; a later start on the same root tries again.
        let _ = self.stop();
    }
}

/// The bytes that links move in one tick at most. The counters have all of them at once, where a real
/// link counts as it goes: who reads them [`READS_OF_A_TICK`] times in a tick must not see more in
/// that time than the link carries. A late tick makes up for nothing, for the same reason.
fn carried_bytes(links_bytes_per_second: &[u64], tick: Duration) -> Vec<u64> {
    let tick_ns = tick.as_nanos();
    let carried = |link: &u64| {
        let bytes = u128::from(*link) * tick_ns / 1_000_000_000 / READS_OF_A_TICK;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    links_bytes_per_second.iter().map(carried).collect()
}

/// Moves the machine's values until the other end of the channel is gone.
fn run_clock(
    machine: &Mutex<Machine>,
    server: &EmulatorServer,
    ended: &Receiver<()>,
    tick: Duration,
) {
    let start = Instant::now();
    let mut before = start;
    while matches!(ended.recv_timeout(tick), Err(RecvTimeoutError::Timeout)) {
        let now = Instant::now();
        let carried = carried_bytes(&locked(machine).links_bytes_per_second(), tick);
        let loads = server.take_loads((now - before).as_secs_f64(), &carried);
        before = now;
        let now_ns = u64::try_from((now - start).as_nanos()).unwrap_or(u64::MAX);
        let ticked = locked(machine).tick(now_ns, &loads);
        if ticked.is_err() {
            server.count_tree_error();
        }
    }
}
