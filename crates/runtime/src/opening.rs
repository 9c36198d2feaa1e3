//! What starts at the first open of a device and stops at the last close: a session, and the
//! endpoint.

use std::sync::Arc;

use spin::mutex::SpinMutexGuard;
use telltale_ledger::LedgerOwner;
use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_schema::memory::MemoryKind;

use crate::activity::Activity;
use crate::cold::{self, Cold, KnownDevice, RunningServices};
use crate::description::{DeviceDescription, MAX_DEVICES};
use crate::endpoint::Endpoint;
use crate::index::{self, BufferLocation};
use crate::options::Misread;
use crate::problem::{DeferredProblem, ProblemStep};
use crate::session::{self, Session};
use crate::shared::RuntimeShared;

/// Whether an event may start a forked child's own session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It records something that the child did.
    IfNeeded,
    /// It is a free: before the child's first allocation it can only be of a buffer of its
    /// parent, which is the parent's to free.
    Never,
}

/// What a handle of a recorded device holds.
pub(crate) struct Opened {
    shared: Arc<RuntimeShared>,
    /// The session in which the device was opened; a child's own session stands in for it.
    pub(crate) session_id: u64,
    /// That session, for an event that has no thread slot.
    pub(crate) session: Arc<Session>,
    /// The device's place among those that the runtime ever opened, below [`MAX_DEVICES`].
    pub(crate) index: u8,
    pub(crate) activity: Arc<Activity>,
}

/// Why a device is not recorded.
#[derive(Debug, thiserror::Error)]
#[error("this process has opened {MAX_DEVICES} different devices already")]
struct TooManyDevices;

/// The environment asks for something that is not known.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(Misread::to_string).collect::<Vec<_>>().join("; "))]
struct NotUnderstood(Vec<Misread>);

// What the address index has room for in an entry.
const _: () = {
    assert!(MAX_DEVICES <= index::MAX_DEVICE as usize + 1);
    assert!(MemoryKind::ALL.len() <= 1 << 8, "the code of a kind has eight bits there");
};

impl Opened {
    /// Opens a device. The first one starts this process's ledger and endpoint.
    pub(crate) fn open(
        shared: &Arc<RuntimeShared>,
        description: DeviceDescription,
        troubles: &mut Vec<DeferredProblem>,
    ) -> Option<Self> {
        let mut cold = cold::lock();
        let session = running_session(shared, &mut cold, troubles)?;
        let devices = &mut cold.runtime(shared.id).devices;
        let known = devices.iter().position(|device| device.description.is_same(&description));
        let place = match known {
            Some(place) => place,
            None if devices.len() == MAX_DEVICES => {
                let remedy = "open the same devices again instead of describing them differently";
                troubles.push(DeferredProblem::new(ProblemStep::Device, TooManyDevices, remedy));
                stop_if_unused(shared, cold, troubles);
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
        session.add_device(index, &device.description, &shared.options, troubles);
        Some(Self {
            shared: Arc::clone(shared),
            session_id: session.id,
            session,
            index,
            activity: Arc::clone(&device.activity),
        })
    }

    /// The session that records for a handle in this process; in a forked child one of its own.
    pub(crate) fn session_here(&self, start: Start) -> Option<Arc<Session>> {
        let shared = &self.shared;
        let mut troubles = Vec::new();
        let session = {
            let mut cold = cold::lock();
            let is_running = cold.runtime(shared.id).running.is_some();
            match is_running || start == Start::IfNeeded {
                true => running_session(shared, &mut cold, &mut troubles),
                false => None,
            }
            .inspect(|session| {
                // A child has all that its parent had open; the thread slot that it gets asks for no other
                // device again.
                for (index, device) in (0..).zip(&cold.runtime(shared.id).devices) {
                    let is_open = device.handles > 0 || index == self.index;
                    if is_open && !session.knows(index) {
                        session.add_device(
                            index,
                            &device.description,
                            &shared.options,
                            &mut troubles,
                        );
                    }
                }
            })
        };
        shared.tell(troubles);
        session
    }

    /// Closes this handle of the device, and stops everything after the last one.
    pub(crate) fn close(self) {
        let Self { shared, index, .. } = self;
        let mut troubles = Vec::new();
        let mut cold = cold::lock();
        let state = cold.runtime(shared.id);
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
        stop_if_unused(&shared, cold, &mut troubles);
        shared.tell(troubles);
    }

    #[inline]
    pub(crate) fn place(&self, kind: MemoryKind, address: u64) -> BufferLocation {
        BufferLocation { device: self.index, space: kind.space(), address }
    }
}

/// The session of this process, started if there is none.
fn running_session(
    shared: &Arc<RuntimeShared>,
    cold: &mut Cold,
    troubles: &mut Vec<DeferredProblem>,
) -> Option<Arc<Session>> {
    if let Some(running) = &cold.runtime(shared.id).running {
        return Some(Arc::clone(&running.session));
    }
    let owner = LedgerOwner::of_this_process(&shared.options.runtime_name, session::now());
    let owner = match owner {
        Ok(owner) => owner,
        Err(error) => {
            let remedy = "nothing is recorded; the workload runs on";
            troubles.push(DeferredProblem::new(ProblemStep::Identity, error, remedy));
            return None;
        }
    };
    let under_root = shared.options.root.as_ref().map(|root| root.join("run/tt"));
    let explicit = shared.options.directory.as_deref().or(under_root.as_deref());
    let environment = DirectoryEnvironment::of_this_process();
    let directory = RuntimeDirectory::for_writing(explicit, &environment)
        .map_err(|error| {
            let remedy = "nothing is recorded; the workload runs on";
            troubles.push(DeferredProblem::new(ProblemStep::Directory, error, remedy));
        })
        .ok();
    let id = cold.fresh_id();
    if !shared.options.misread.is_empty() {
        let remedy = "correct it and start the program again";
        let misread = NotUnderstood(shared.options.misread.clone());
        troubles.push(DeferredProblem::new(ProblemStep::Environment, misread, remedy));
    }
    let session = Session::start(id, &shared.options, directory.as_ref(), owner, troubles);
    let endpoint = directory.and_then(|directory| {
        Endpoint::start(directory, shared, &session, cold::reported, troubles)
    });
    let running = RunningServices { session: Arc::clone(&session), endpoint };
    cold.runtime(shared.id).running = Some(running);
    Some(session)
}

/// Stops the session when no handle is open any more. Gives the lock back before it waits
/// for the endpoint's thread, which may want it for its last answer.
fn stop_if_unused(
    shared: &RuntimeShared,
    mut cold: SpinMutexGuard<'_, Cold>,
    troubles: &mut Vec<DeferredProblem>,
) {
    let state = cold.runtime(shared.id);
    if state.devices.iter().any(|device| device.handles > 0) {
        return;
    }
    let Some(RunningServices { session, endpoint }) = state.running.take() else { return };
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
