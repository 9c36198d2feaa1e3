//! The runtime: what starts at the first open of a device and stops at the last close.

use std::error::Error;
use std::sync::Arc;

use telltale_ledger::LedgerOwner;
use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_program_cache::{Backend, ProgramCache};
use telltale_wire::limits::{MAX_LOADED_PROGRAMS, MAX_NAME_BYTES};
use telltale_wire::{KernelCache, Programs};

use crate::cold::{Cold, KnownDevice, Running};
use crate::device::{Device, DeviceDescription, MAX_DEVICES, Opened};
use crate::endpoint::Endpoint;
use crate::options::{Misread, Options};
use crate::problem::{Problems, Step};
use crate::process_hooks;
use crate::program_caches;
use crate::registry::Registry;
use crate::seat::Start;
use crate::session::{self, Session};

/// Telltale in this process. Cheap to clone; all clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

/// What all handles of one runtime share.
pub(crate) struct Inner {
    pub(crate) id: u64,
    pub(crate) options: Options,
    pub(crate) problems: Problems,
}

/// Something that went wrong while the cold lock was held, to be told once it is released.
pub(crate) struct Trouble {
    step: Step,
    error: Box<dyn Error>,
    remedy: &'static str,
}

/// Why a device is not recorded.
#[derive(Debug, thiserror::Error)]
#[error("this process has opened {MAX_DEVICES} different devices already")]
struct TooManyDevices;

/// The system refused a hook.
#[derive(Debug, thiserror::Error)]
#[error("the system refused to call back at fork and exit")]
struct HooksRefused;

/// The environment asks for something that is not known.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(Misread::to_string).collect::<Vec<_>>().join("; "))]
struct NotUnderstood(Vec<Misread>);

impl Trouble {
    pub(crate) fn new(step: Step, error: impl Error + 'static, remedy: &'static str) -> Self {
        Self { step, error: Box::new(error), remedy }
    }
}

// === impl Runtime ===

impl Runtime {
    /// Makes Telltale ready in this process; nothing is created until a device is opened. This
    /// never fails: what cannot be done is told once, counted, and does not concern the workload.
    pub fn start(options: Options) -> Self {
        Self::with_id(options, process_hooks::cold().fresh_id())
    }

    /// The runtime that all parts of a program share, started from the environment at first use.
    pub fn global() -> Self {
        let mut cold = process_hooks::cold();
        if let Some(runtime) = &cold.global {
            return runtime.clone();
        }
        let id = cold.fresh_id();
        let runtime = Self::with_id(Options::new("unnamed runtime"), id);
        cold.global = Some(runtime.clone());
        runtime
    }

    fn with_id(options: Options, id: u64) -> Self {
        let problems = Problems::new(options.on_problem.clone());
        if !options.disabled {
            // A refusal is told when a device is opened.
            process_hooks::install();
        }
        Self { inner: Arc::new(Inner { id, options, problems }) }
    }

    /// Opens a device for recording. The first one starts this process's ledger and endpoint, the
    /// last one closed stops both and removes their files.
    pub fn open_device(&self, description: DeviceDescription) -> Device {
        if !self.inner.is_enabled() {
            return Device::new(None);
        }
        let mut troubles = Vec::new();
        if !process_hooks::install() {
            let remedy = "remove them with `telltale smi -c`";
            troubles.push(Trouble::new(Step::ProcessHooks, HooksRefused, remedy));
        }
        let opened = self.inner.open(description, &mut troubles);
        self.inner.tell(troubles);
        Device::new(opened)
    }

    /// Where the application's own metrics are registered.
    pub fn registry(&self) -> Registry {
        Registry::new(Arc::clone(&self.inner))
    }

    /// Tells of the compiled programs. Names beyond the first 256 are counted and left out.
    pub fn tell_programs(&self, mut programs: Programs) {
        let omitted = programs.loaded.len().saturating_sub(MAX_LOADED_PROGRAMS);
        programs.loaded.truncate(MAX_LOADED_PROGRAMS);
        for name in &mut programs.loaded {
            name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
        }
        let omitted = u64::try_from(omitted).unwrap_or(u64::MAX);
        programs.loaded_omitted = programs.loaded_omitted.saturating_add(omitted);
        if self.inner.is_enabled() {
            process_hooks::cold().runtime(self.inner.id).programs = Some(programs);
        }
    }

    /// Shows a program cache on the endpoint, as long as it exists. What all of them hold is added
    /// to what [`Runtime::tell_programs`] tells.
    pub fn show_program_cache<B>(&self, cache: &Arc<ProgramCache<B>>)
    where
        B: Backend + Send + Sync + 'static,
    {
        if !self.inner.is_enabled() {
            return;
        }
        let weak = program_caches::weak(cache);
        let added = process_hooks::cold().runtime(self.inner.id).program_caches.add(weak);
        if let Err(error) = added {
            let remedy = "the cache works and is shown to nobody; share one among its users";
            self.inner.problems.tell(Step::Metric, &error, remedy);
        }
    }

    /// Tells of the compiled kernels that are kept for reuse.
    pub fn tell_kernel_cache(&self, cache: KernelCache) {
        if self.inner.is_enabled() {
            process_hooks::cold().runtime(self.inner.id).kernel_cache = Some(cache);
        }
    }

    /// How often something could not be done, for each step with any trouble.
    pub fn problems(&self) -> Vec<(Step, u64)> {
        self.inner.problems.counts().collect()
    }
}

// === impl Inner ===

impl Inner {
    pub(crate) fn is_enabled(&self) -> bool {
        !self.options.disabled
    }

    /// Tells of troubles; the cold lock must not be held, for the application may be called back.
    fn tell(&self, troubles: Vec<Trouble>) {
        for trouble in troubles {
            self.problems.tell(trouble.step, &*trouble.error, trouble.remedy);
        }
    }

    fn open(
        self: &Arc<Self>,
        description: DeviceDescription,
        troubles: &mut Vec<Trouble>,
    ) -> Option<Opened> {
        let mut cold = process_hooks::cold();
        let session = self.running_session(&mut cold, troubles)?;
        let devices = &mut cold.runtime(self.id).devices;
        let known = devices.iter().position(|device| device.description.is_same(&description));
        let place = match known {
            Some(place) => place,
            None if devices.len() == MAX_DEVICES => {
                let remedy = "open the same devices again instead of describing them anew";
                troubles.push(Trouble::new(Step::Device, TooManyDevices, remedy));
                self.stop_if_unused(cold, troubles);
                return None;
            }
            None => {
                let activity = Arc::default();
                devices.push(KnownDevice { description, activity, handles: 0 });
                devices.len() - 1
            }
        };
        let index = u8::try_from(place).expect("devices are bounded below 256");
        let device = &mut devices[place];
        device.handles += 1;
        session.add_device(index, &device.description, self, troubles);
        Some(Opened {
            inner: Arc::clone(self),
            session_id: session.id,
            session,
            index,
            activity: Arc::clone(&device.activity),
        })
    }

    /// The session of this process, started if there is none.
    fn running_session(
        self: &Arc<Self>,
        cold: &mut Cold,
        troubles: &mut Vec<Trouble>,
    ) -> Option<Arc<Session>> {
        if let Some(running) = &cold.runtime(self.id).running {
            return Some(Arc::clone(&running.session));
        }
        let owner = LedgerOwner::of_this_process(&self.options.runtime_name, session::now());
        let owner = match owner {
            Ok(owner) => owner,
            Err(error) => {
                let remedy = "nothing is recorded; the workload runs on";
                troubles.push(Trouble::new(Step::Identity, error, remedy));
                return None;
            }
        };
        let under_root = self.options.root.as_ref().map(|root| root.join("run/tt"));
        let explicit = self.options.directory.as_deref().or(under_root.as_deref());
        let environment = DirectoryEnvironment::of_this_process();
        let directory = RuntimeDirectory::for_writing(explicit, &environment)
            .map_err(|error| {
                let remedy = "nothing is recorded; the workload runs on";
                troubles.push(Trouble::new(Step::Directory, error, remedy));
            })
            .ok();
        let id = cold.fresh_id();
        if !self.options.misread.is_empty() {
            let remedy = "correct it and start the program again";
            let misread = NotUnderstood(self.options.misread.clone());
            troubles.push(Trouble::new(Step::Environment, misread, remedy));
        }
        let session = Session::start(id, self, directory.as_ref(), owner, troubles);
        let endpoint =
            directory.and_then(|directory| Endpoint::start(directory, self, &session, troubles));
        let running = Running { session: Arc::clone(&session), endpoint };
        cold.runtime(self.id).running = Some(running);
        Some(session)
    }

    /// The session that records for a handle in this process; in a forked child one of its own.
    pub(crate) fn session_for(
        self: &Arc<Self>,
        opened: &Opened,
        start: Start,
    ) -> Option<Arc<Session>> {
        let mut troubles = Vec::new();
        let session = {
            let mut cold = process_hooks::cold();
            let is_running = cold.runtime(self.id).running.is_some();
            match is_running || start == Start::IfNeeded {
                true => self.running_session(&mut cold, &mut troubles),
                false => None,
            }
            .inspect(|session| {
                // A child has all that its parent had open; the seat that it gets asks for no other
                // device again.
                for (index, device) in (0..).zip(&cold.runtime(self.id).devices) {
                    let is_open = device.handles > 0 || index == opened.index;
                    if is_open && !session.knows(index) {
                        session.add_device(index, &device.description, self, &mut troubles);
                    }
                }
            })
        };
        self.tell(troubles);
        session
    }

    /// Takes one handle of a device back, and stops everything after the last one.
    pub(crate) fn close_device(&self, index: u8) {
        let mut troubles = Vec::new();
        let mut cold = process_hooks::cold();
        let state = cold.runtime(self.id);
        let device = &mut state.devices[usize::from(index)];
        device.handles = device.handles.saturating_sub(1);
        if device.handles > 0 {
            return;
        }
        let session = state.running.as_ref().map(|running| Arc::clone(&running.session));
        if let Some(session) = session {
            session.release_device(index);
            if let Err(trouble) = session.mirror(index).detach() {
                troubles.push(trouble);
            }
        }
        self.stop_if_unused(cold, &mut troubles);
        self.tell(troubles);
    }

    /// Stops the session when no handle is open any more. Gives the lock back before it waits
    /// for the endpoint's thread, which may want it for its last answer.
    fn stop_if_unused(
        &self,
        mut cold: spin::mutex::SpinMutexGuard<'_, Cold>,
        troubles: &mut Vec<Trouble>,
    ) {
        let state = cold.runtime(self.id);
        if state.devices.iter().any(|device| device.handles > 0) {
            return;
        }
        let Some(Running { session, endpoint }) = state.running.take() else { return };
        session.close();
        let endpoint = endpoint.map(|mut endpoint| {
            endpoint.remove_file();
            endpoint
        });
        drop(cold);
        if let Some(endpoint) = endpoint {
            endpoint.stop(troubles);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        process_hooks::cold().forget_runtime(self.id);
    }
}
