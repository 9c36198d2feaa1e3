//! The kubelet's list of what is allocated to which container (PodResources, version 1), asked now
//! and then by a thread of its own. A collection takes what was answered last and never waits,
//! except once, for the first answer, as long as a file may take.
//!
//! The list has no uids and no process ids: it adds to what is known of a pod by name, and names
//! no process itself.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{AllocatedDevices, Pod, SourceStatus};
use telltale_schema::text::with_causes;

use super::names::{is_label, is_name};
use crate::processes::command::printable;
use crate::report::SourceReport;
use crate::timeout::CallLimits;

/// The source that it is.
pub(super) const NAME: &str = "kubelet";

/// Where the socket is by default.
const SOCKET: &str = "var/lib/kubelet/pod-resources/kubelet.sock";
/// How old an answer gets.
const BELIEVED_NS: u64 = 60_000_000_000;
/// The least time from one question to the next, for a container that the last answer did not have
/// and after a failure.
const ASK_AGAIN_NS: u64 = 10_000_000_000;
/// Resources of one container, and devices of one resource, that are shown: as many as an answer
/// of the service may have.
const MAX_ALLOCATED: usize = 256;

/// The kubelet, and what it answered last.
pub(super) struct Kubelet {
    list: Option<ListAllocated>,
    socket: PathBuf,
    /// The socket was configured: then it has to be there.
    reports: bool,
    limits: CallLimits,
    asked_ns: Option<u64>,
    shared: Arc<KubeletShared>,
    answered: Answered,
    /// What is answered has come since the last follower.
    is_new: bool,
}

#[derive(Default)]
struct KubeletShared {
    state: Mutex<KubeletState>,
    changed: Condvar,
}

/// What the asking thread leaves.
#[derive(Default)]
struct KubeletState {
    asking: bool,
    outcome: Option<(Outcome, Duration)>,
}

/// None where there is no socket to ask.
type Outcome = Result<Option<Allocations>, KubeletError>;

/// What is made of the last outcome.
#[derive(Default)]
struct Answered {
    allocations: Allocations,
    failed: bool,
    status: Option<SourceStatus>,
}

/// Devices by namespace, pod and container.
#[derive(Debug, Default, PartialEq, Eq)]
struct Allocations {
    by_container: HashMap<[String; 3], Vec<AllocatedDevices>>,
    /// Containers with names that Kubernetes does not allow.
    misnamed: u64,
    /// Resources and devices beyond the limits.
    beyond: u64,
}

/// What the kubelet says of one container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allocated {
    /// The namespace of its pod.
    pub namespace: String,
    /// The name of its pod.
    pub pod: String,
    /// Its name within the pod.
    pub container: String,
    /// Resources and the ids of their devices that it has been given.
    pub devices: Vec<(String, String)>,
}

/// Lists what the kubelet at a socket has allocated, within a time. That takes a gRPC client, which the collector does
/// not have: who starts it gives it one.
pub type ListAllocated = fn(&Path, Duration) -> Result<Vec<Allocated>, KubeletError>;

/// Why the kubelet has not answered.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// The socket is another user's.
    #[error("the socket belongs to user {0}, who is neither root nor this service's user")]
    Stranger(u32),
    /// It cannot be connected to.
    #[error("cannot reach the kubelet; pods.kubelet_socket names its socket")]
    Reach(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It did not answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// It refused, or broke off.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// What it answers is no list of pods, or breaks a limit.
    #[error(transparent)]
    Implausible(Box<dyn std::error::Error + Send + Sync>),
}

// === impl Kubelet ===

impl Kubelet {
    pub(super) fn new(
        list: Option<ListAllocated>,
        reports: Option<PathBuf>,
        root: &Path,
        limits: CallLimits,
    ) -> Self {
        Self {
            list,
            reports: reports.is_some(),
            socket: reports.unwrap_or_else(|| root.join(SOCKET)),
            limits,
            asked_ns: None,
            shared: Arc::default(),
            answered: Answered::default(),
            is_new: false,
        }
    }

    /// Takes what has been answered and asks again where that is due: for `pods`, which are there
    /// now. How it went, where there is a kubelet to ask.
    pub(super) fn follow<'a>(
        &mut self,
        pods: impl Iterator<Item = &'a Pod>,
        now_ns: u64,
    ) -> Option<SourceStatus> {
        self.is_new = false;
        self.take();
        let mut unknown = false;
        let mut any = false;
        for key in pods.filter_map(key_of) {
            any = true;
            unknown |= !self.answered.allocations.by_container.contains_key(&key);
        }
        if let Some(list) = self.list.filter(|_| any && self.is_due(unknown, now_ns)) {
            let first = self.asked_ns.is_none();
            self.asked_ns = Some(now_ns);
            self.ask(list);
            if first {
                self.wait(self.limits.task);
                self.take();
            }
        }
        self.answered.status.clone().filter(|_| any)
    }

    /// Whether the status that [`Self::follow`] gave last is that of an attempt which it had not
    /// reported before.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// What is allocated to the container of `pod`.
    pub(super) fn allocated(&self, pod: &Pod) -> Vec<AllocatedDevices> {
        let found = key_of(pod).and_then(|key| self.answered.allocations.by_container.get(&key));
        found.cloned().unwrap_or_default()
    }

    fn is_due(&self, unknown: bool, now_ns: u64) -> bool {
        let Some(asked_ns) = self.asked_ns else { return true };
        let since_ns = now_ns.saturating_sub(asked_ns);
        let wait_ns = if unknown || self.answered.failed { ASK_AGAIN_NS } else { BELIEVED_NS };
        since_ns >= wait_ns && !locked(&self.shared.state).asking
    }

    /// Starts a thread that asks and ends. There is one at most: its every step has a deadline.
    fn ask(&self, list: ListAllocated) {
        let (shared, socket) = (Arc::clone(&self.shared), self.socket.clone());
        let (reports, deadline) = (self.reports, self.limits.all);
        locked(&self.shared.state).asking = true;
        let thread = std::thread::Builder::new().name("telltale-kubelet".to_owned());
        let started = thread.spawn(move || {
            let began = Instant::now();
            let outcome = match ask(list, &socket, deadline) {
                Err(KubeletError::Reach(error)) if !reports && is_out_of_reach(&*error) => Ok(None),
                outcome => outcome,
            };
            let mut state = locked(&shared.state);
            *state = KubeletState { asking: false, outcome: Some((outcome, began.elapsed())) };
            shared.changed.notify_all();
        });
        if let Err(error) = started {
            let outcome = Err(KubeletError::Reach(Box::new(error)));
            *locked(&self.shared.state) =
                KubeletState { asking: false, outcome: Some((outcome, Duration::ZERO)) };
        }
    }

    fn wait(&self, timeout: Duration) {
        let state = locked(&self.shared.state);
        let waited = self.shared.changed.wait_timeout_while(state, timeout, |state| state.asking);
        drop(waited);
    }

    /// Makes of an outcome what is shown.
    fn take(&mut self) {
        let Some((outcome, took)) = locked(&self.shared.state).outcome.take() else { return };
        let subject = self.socket.display().to_string();
        let mut report = SourceReport::default();
        let failed = outcome.is_err();
        if let Err(error) = &outcome {
            report.error(subject.clone(), reason(error), with_causes(error));
        }
        let present = !matches!(outcome, Ok(None));
        let allocations = outcome.ok().flatten().unwrap_or_default();
        for (count, what) in [
            (allocations.misnamed, "containers have names that Kubernetes does not allow"),
            (allocations.beyond, "resources or devices are more than a container may have here"),
        ] {
            if count > 0 {
                let detail = format!("{count} {what}; they are left out");
                report.error(subject.clone(), Absence::Implausible, detail);
            }
        }
        let duration_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let status = present.then(|| SourceStatus {
            name: NAME.to_owned(),
            duration_ns,
            errors: report.into_errors(),
            errors_dropped: 0,
            notes: Vec::new(),
        });
        self.answered = Answered { allocations, failed, status };
        self.is_new = true;
    }
}

/// Asks once, within `deadline`.
fn ask(list: ListAllocated, socket: &Path, deadline: Duration) -> Outcome {
    let reach = |error: io::Error| KubeletError::Reach(Box::new(error));
    let uid = std::fs::symlink_metadata(socket).map_err(reach)?.uid();
    if ![0, rustix::process::geteuid().as_raw()].contains(&uid) {
        return Err(KubeletError::Stranger(uid));
    }
    Ok(Some(Allocations::of(list(socket, deadline)?)))
}

/// Whether there is no socket, or one that this user may not open.
fn is_out_of_reach(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let kinds = causes.filter_map(|error| error.downcast_ref::<io::Error>().map(io::Error::kind));
    let mut closed = kinds
        .filter(|kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied));
    closed.next().is_some()
}

fn reason(error: &KubeletError) -> Absence {
    match error {
        KubeletError::Late(_) => Absence::TimedOut,
        KubeletError::Stranger(_) | KubeletError::Implausible(_) => Absence::Implausible,
        KubeletError::Reach(error) if is_out_of_reach(&**error) => Absence::Permission,
        KubeletError::Reach(_) | KubeletError::Refused(_) => Absence::Failed,
    }
}

fn key_of(pod: &Pod) -> Option<[String; 3]> {
    Some([pod.namespace.clone(), pod.name.clone(), pod.container.clone()?])
}

// === impl Allocations ===

impl Allocations {
    fn of(containers: Vec<Allocated>) -> Self {
        let mut all = Self::default();
        for Allocated { namespace, pod, container, devices } in containers {
            if !(is_name(&pod) && is_label(&namespace) && is_label(&container)) {
                all.misnamed += 1;
                continue;
            }
            let devices = all.devices(devices);
            all.by_container.insert([namespace, pod, container], devices);
        }
        all
    }

    /// A container's devices, those of one resource together.
    fn devices(&mut self, from: Vec<(String, String)>) -> Vec<AllocatedDevices> {
        let mut devices: Vec<AllocatedDevices> = Vec::new();
        for (resource, id) in from {
            let resource = printable(resource.as_bytes());
            let place = devices.iter().position(|one| one.resource == resource);
            let place = place.or_else(|| {
                let room = devices.len() < MAX_ALLOCATED;
                room.then(|| {
                    devices.push(AllocatedDevices { resource, ids: Vec::new() });
                    devices.len() - 1
                })
            });
            match place.map(|place| &mut devices[place].ids) {
                Some(ids) if ids.len() < MAX_ALLOCATED => ids.push(printable(id.as_bytes())),
                _ => self.beyond += 1,
            }
        }
        devices
    }
}

fn locked(state: &Mutex<KubeletState>) -> MutexGuard<'_, KubeletState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
