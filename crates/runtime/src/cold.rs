//! The state that changes seldom, behind one lock that is held across forks.
//!
//! Nothing that a hook of the application could call back into may run while it is held.

use std::collections::BTreeMap;
use std::sync::Arc;

use telltale_wire::{KernelCache, Programs};

use crate::device::{Activity, DeviceDescription};
use crate::endpoint::Endpoint;
use crate::program_caches::ProgramCaches;
use crate::registry::Registered;
use crate::runtime::Runtime;
use crate::session::Session;

/// All of it.
pub(crate) struct Cold {
    /// The process that this copy was last used in.
    epoch: u64,
    next_id: u64,
    /// The runtime that [`Runtime::global`] gives.
    pub(crate) global: Option<Runtime>,
    runtimes: BTreeMap<u64, RuntimeState>,
    /// What belongs to the process that forked this one. Never used and never dropped, because
    /// dropping would remove the parent's files.
    left_to_parent: Vec<Running>,
}

/// What one runtime has that changes seldom.
#[derive(Default)]
pub(crate) struct RuntimeState {
    /// What runs between the first open and the last close of a device.
    pub(crate) running: Option<Running>,
    /// Every device that was ever opened, at the place that its handles know.
    pub(crate) devices: Vec<KnownDevice>,
    /// The application's metrics.
    pub(crate) registered: Registered,
    /// What the runtime told of its programs.
    pub(crate) programs: Option<Programs>,
    /// The program caches to show.
    pub(crate) program_caches: ProgramCaches,
    /// What it told of its compiled kernels.
    pub(crate) kernel_cache: Option<KernelCache>,
}

/// A device that was opened at least once.
pub(crate) struct KnownDevice {
    /// What it is.
    pub(crate) description: DeviceDescription,
    /// What the runtime told of its use.
    pub(crate) activity: Arc<Activity>,
    /// How many handles are open.
    pub(crate) handles: usize,
}

/// What runs while a device is open.
pub(crate) struct Running {
    /// The recording side.
    pub(crate) session: Arc<Session>,
    /// The asking side, if it could be published.
    pub(crate) endpoint: Option<Endpoint>,
}

impl Cold {
    pub(crate) const fn new() -> Self {
        Self {
            epoch: 0,
            next_id: 1,
            global: None,
            runtimes: BTreeMap::new(),
            left_to_parent: Vec::new(),
        }
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
    pub(crate) fn leave_to_parent(&mut self, epoch: u64) {
        if self.epoch == epoch {
            return;
        }
        self.epoch = epoch;
        let inherited = self.runtimes.values_mut().filter_map(|state| state.running.take());
        self.left_to_parent.extend(inherited);
        for running in &self.left_to_parent {
            running.session.abandon();
        }
    }

    /// Removes the files of all that runs, as the process is about to end.
    pub(crate) fn remove_files(&mut self) {
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
