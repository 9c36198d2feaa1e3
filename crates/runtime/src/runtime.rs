//! The runtime as a workload holds it.

use std::sync::Arc;

use spin::mutex::SpinMutex;
use telltale_program_cache::{Backend, ProgramCache};
use telltale_wire::limits::{MAX_LOADED_PROGRAMS, MAX_NAME_BYTES};
use telltale_wire::{KernelCache, Programs};

use crate::cold;
use crate::description::DeviceDescription;
use crate::device::Device;
use crate::opening::Opened;
use crate::options::Options;
use crate::problem::{DeferredProblem, ProblemStep, Problems};
use crate::program_caches;
use crate::registry::Registry;
use crate::shared::RuntimeShared;
use crate::waiting;

/// The runtime that [`Runtime::global`] gives. Locked with the cold lock held alone, so that no
/// child inherits it locked.
static GLOBAL: SpinMutex<Option<Runtime>> = SpinMutex::new(None);

/// Telltale in this process. Cheap to clone; all clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<RuntimeShared>,
}

/// The system refused a hook.
#[derive(Debug, thiserror::Error)]
#[error("the system refused to call back at fork and exit")]
struct HooksRefused;

// === impl Runtime ===

impl Runtime {
    /// Makes Telltale ready in this process; nothing is created until a device is opened. This
    /// never fails: what cannot be done is reported once, counted, and does not concern the workload.
    pub fn start(options: Options) -> Self {
        Self::with_id(options, cold::lock().fresh_id())
    }

    /// The runtime that all parts of a program share, started from the environment at first use.
    pub fn global() -> Self {
        let mut cold = cold::lock();
        let mut global = waiting::lock(&GLOBAL);
        let start = || Self::with_id(Options::new("unnamed runtime"), cold.fresh_id());
        global.get_or_insert_with(start).clone()
    }

    fn with_id(options: Options, id: u64) -> Self {
        let problems = Problems::new(options.on_problem.clone());
        if !options.disabled {
            // A refusal is reported when a device is opened.
            cold::install_hooks();
        }
        Self { shared: Arc::new(RuntimeShared { id, options, problems }) }
    }

    /// Opens a device for recording. The first one starts this process's ledger and endpoint, the
    /// last one closed stops both and removes their files.
    pub fn open_device(&self, description: DeviceDescription) -> Device {
        if !self.shared.is_enabled() {
            return Device::new(None);
        }
        let mut troubles = Vec::new();
        if !cold::install_hooks() {
            let remedy = "remove them with `telltale smi -c`";
            troubles.push(DeferredProblem::new(ProblemStep::ProcessHooks, HooksRefused, remedy));
        }
        let opened = Opened::open(&self.shared, description, &mut troubles);
        self.shared.tell(troubles);
        Device::new(opened)
    }

    /// Where the application's own metrics are registered.
    pub fn registry(&self) -> Registry {
        Registry::new(Arc::clone(&self.shared))
    }

    /// Reports the compiled programs. Names beyond the first 256 are counted and left out.
    pub fn report_programs(&self, mut programs: Programs) {
        let omitted = programs.loaded.len().saturating_sub(MAX_LOADED_PROGRAMS);
        programs.loaded.truncate(MAX_LOADED_PROGRAMS);
        for name in &mut programs.loaded {
            name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
        }
        let omitted = u64::try_from(omitted).unwrap_or(u64::MAX);
        programs.loaded_omitted = programs.loaded_omitted.saturating_add(omitted);
        if self.shared.is_enabled() {
            cold::lock().runtime(self.shared.id).programs = Some(programs);
        }
    }

    /// Shows a program cache on the endpoint, as long as it exists. What all of them hold is added
    /// to what [`Runtime::report_programs`] reports.
    pub fn show_program_cache<B>(&self, cache: &Arc<ProgramCache<B>>)
    where
        B: Backend + Send + Sync + 'static,
    {
        if !self.shared.is_enabled() {
            return;
        }
        let weak = program_caches::weak(cache);
        let added = cold::lock().runtime(self.shared.id).program_caches.add(weak);
        if let Err(error) = added {
            let remedy = "the cache works but is not shown; share one among its users";
            self.shared.problems.tell(ProblemStep::Metric, &error, remedy);
        }
    }

    /// Reports the compiled kernels that are kept for reuse.
    pub fn report_kernel_cache(&self, cache: KernelCache) {
        if self.shared.is_enabled() {
            cold::lock().runtime(self.shared.id).kernel_cache = Some(cache);
        }
    }

    /// How often something could not be done, for each step with any trouble.
    pub fn problems(&self) -> Vec<(ProblemStep, u64)> {
        self.shared.problems.counts().collect()
    }
}

impl Drop for RuntimeShared {
    fn drop(&mut self) {
        cold::lock().forget_runtime(self.id);
    }
}
