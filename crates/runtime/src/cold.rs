//! The state that changes seldom, behind one lock that is held across forks.
//!
//! Nothing that a hook of the application could call back into may run while it is held.

use std::collections::BTreeMap;
use std::sync::Arc;

use spin::mutex::SpinMutexGuard;
use telltale_wire::{KernelCache, Programs};

use crate::activity::Activity;
use crate::description::DeviceDescription;
use crate::endpoint::{Endpoint, OpenDevice, RuntimeReport};
use crate::process_hooks::{self, ForkLock};
use crate::program_caches::ProgramCaches;
use crate::registered::Registered;
use crate::session::Session;

static COLD: ForkLock<Cold> = ForkLock::new(Cold::new(), Cold::restart_counts, Cold::remove_files);

/// All of it.
pub(crate) struct Cold {
    /// The process that this copy was last used in.
    epoch: u64,
    next_id: u64,
    runtimes: BTreeMap<u64, RuntimeState>,
    /// What belongs to the process that forked this one. Never used and never dropped, because
    /// dropping would remove the parent's files.
    left_to_parent: Vec<RunningServices>,
}

/// What one runtime has that changes seldom.
#[derive(Default)]
pub(crate) struct RuntimeState {
    /// What runs between the first open and the last close of a device.
    pub(crate) running: Option<RunningServices>,
    /// Every device that was ever opened, at the place that its handles know.
    pub(crate) devices: Vec<KnownDevice>,
    /// The application's metrics.
    pub(crate) registered: Registered,
    /// What the runtime reported of its programs.
    pub(crate) programs: Option<Programs>,
    /// The program caches to show.
    pub(crate) program_caches: ProgramCaches,
    /// What it reported of its compiled kernels.
    pub(crate) kernel_cache: Option<KernelCache>,
}

/// A device that was opened at least once.
pub(crate) struct KnownDevice {
    /// What it is.
    pub(crate) description: DeviceDescription,
    /// What the runtime reported of its use.
    pub(crate) activity: Arc<Activity>,
    /// How many handles are open.
    pub(crate) handles: usize,
}

/// What runs while a device is open.
pub(crate) struct RunningServices {
    /// The recording side.
    pub(crate) session: Arc<Session>,
    /// The asking side, if it could be published.
    pub(crate) endpoint: Option<Endpoint>,
}

/// The state. Its lock is held for microseconds, except while a session starts or stops.
pub(crate) fn lock() -> SpinMutexGuard<'static, Cold> {
    let mut guard = COLD.lock();
    guard.leave_to_parent(process_hooks::epoch());
    guard
}

/// Registers what is to happen at fork and exit, once in the life of a process and its children.
/// Returns whether the system took it.
pub(crate) fn install_hooks() -> bool {
    process_hooks::install(&COLD)
}

/// What the runtime `id` has said so far, of the devices that this session records.
pub(crate) fn reported(id: u64, session: &Session) -> RuntimeReport {
    let mut cold = lock();
    let state = cold.runtime(id);
    let devices = (0u8..)
        .zip(&state.devices)
        .filter(|(index, device)| device.handles > 0 && session.knows(*index))
        .map(|(index, device)| OpenDevice {
            index,
            description: device.description.clone(),
            activity: Arc::clone(&device.activity),
        })
        .collect();
    RuntimeReport {
        devices,
        series: state.registered.all(),
        programs: state.programs.clone(),
        program_caches: state.program_caches.clone(),
        kernel_cache: state.kernel_cache,
    }
}

impl Cold {
    const fn new() -> Self {
        Self { epoch: 0, next_id: 1, runtimes: BTreeMap::new(), left_to_parent: Vec::new() }
    }

    /// A number that was not given out before in this process.
    pub(crate) fn fresh_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// The state of the runtime `id`, empty at first.
    pub(crate) fn runtime(&mut self, id: u64) -> &mut RuntimeState {
        self.runtimes.entry(id).or_default()
    }

    /// Forgets the runtime `id`, which must not run any more.
    pub(crate) fn forget_runtime(&mut self, id: u64) {
        let forgotten = self.runtimes.remove(&id);
        debug_assert!(forgotten.is_none_or(|state| state.running.is_none()));
    }

    /// Puts away what a parent process runs, once in each child.
    fn leave_to_parent(&mut self, epoch: u64) {
        if self.epoch == epoch {
            return;
        }
        self.epoch = epoch;
        let inherited = self.runtimes.values_mut().filter_map(|state| state.running.take());
        self.left_to_parent.extend(inherited);
        for running in &self.left_to_parent {
            running.session.abandon();
        }
        for state in self.runtimes.values_mut() {
            state.programs = None;
            state.program_caches = ProgramCaches::default();
            state.kernel_cache = None;
        }
    }

    /// Has all counts of a forked child start at 0: what its parent counted is in the parent's.
    fn restart_counts(&mut self) {
        for state in self.runtimes.values() {
            state.devices.iter().for_each(|device| device.activity.restart_counts());
            state.registered.restart_counts();
        }
    }

    /// Removes the files of all that runs, as the process is about to end.
    fn remove_files(&mut self) {
        self.leave_to_parent(process_hooks::epoch());
        for state in self.runtimes.values_mut() {
            if let Some(running) = &mut state.running {
                running.session.remove_file();
                if let Some(endpoint) = &mut running.endpoint {
                    endpoint.remove_file();
                }
            }
        }
    }
}
