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
use telltale_wire::kubelet::message::{ContainerResources, PodResources};
use telltale_wire::kubelet::{ListError, list};
use tonic::transport::Endpoint;

use super::names::{is_label, is_name};
use crate::patience::Limits;
use crate::processes::command::printable;
use crate::report::Report;

/// The source that it is.
pub(super) const NAME: &str = "kubelet";

/// Where the socket is unless told otherwise.
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
    socket: PathBuf,
    /// The socket was configured: then it has to be there.
    told: bool,
    limits: Limits,
    asked_ns: Option<u64>,
    shared: Arc<Shared>,
    answered: Answered,
    /// What is answered has come since the last time that somebody followed.
    is_new: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What the asking thread leaves.
#[derive(Default)]
struct State {
    asking: bool,
    outcome: Option<(Outcome, Duration)>,
}

/// None where there is no socket to ask.
type Outcome = Result<Option<Allocations>, AskError>;

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

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("the socket belongs to user {0}, who is neither root nor this service's user")]
    Stranger(u32),
    #[error("cannot reach the kubelet; pods.kubelet_socket names its socket")]
    Reach(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    #[error(transparent)]
    List(#[from] ListError),
}

// === impl Kubelet ===

impl Kubelet {
    pub(super) fn new(told: Option<PathBuf>, root: &Path, limits: Limits) -> Self {
        Self {
            told: told.is_some(),
            socket: told.unwrap_or_else(|| root.join(SOCKET)),
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
        if any && self.is_due(unknown, now_ns) {
            let first = self.asked_ns.is_none();
            self.asked_ns = Some(now_ns);
            self.ask();
            if first {
                self.wait(self.limits.task);
                self.take();
            }
        }
        self.answered.status.clone().filter(|_| any)
    }

    /// Whether the status that [`Self::follow`] gave last is that of an attempt which it had not
    /// told of before.
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
    fn ask(&self) {
        let (shared, socket) = (Arc::clone(&self.shared), self.socket.clone());
        let (told, deadline) = (self.told, self.limits.all);
        locked(&self.shared.state).asking = true;
        let thread = std::thread::Builder::new().name("telltale-kubelet".to_owned());
        let started = thread.spawn(move || {
            let began = Instant::now();
            let outcome = match ask(&socket, deadline) {
                Err(AskError::Reach(error)) if !told && is_out_of_reach(&*error) => Ok(None),
                outcome => outcome,
            };
            let mut state = locked(&shared.state);
            *state = State { asking: false, outcome: Some((outcome, began.elapsed())) };
            shared.changed.notify_all();
        });
        if let Err(error) = started {
            let outcome = Err(AskError::Reach(Box::new(error)));
            *locked(&self.shared.state) =
                State { asking: false, outcome: Some((outcome, Duration::ZERO)) };
        }
    }

    fn wait(&self, patience: Duration) {
        let state = locked(&self.shared.state);
        let waited = self.shared.changed.wait_timeout_while(state, patience, |state| state.asking);
        drop(waited);
    }

    /// Makes of an outcome what is shown.
    fn take(&mut self) {
        let Some((outcome, took)) = locked(&self.shared.state).outcome.take() else { return };
        let subject = self.socket.display().to_string();
        let mut report = Report::default();
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
fn ask(socket: &Path, deadline: Duration) -> Outcome {
    let reach = |error: io::Error| AskError::Reach(Box::new(error));
    let uid = std::fs::symlink_metadata(socket).map_err(reach)?.uid();
    if ![0, rustix::process::geteuid().as_raw()].contains(&uid) {
        return Err(AskError::Stranger(uid));
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(reach)?;
    let answer = runtime.block_on(async { tokio::time::timeout(deadline, exchange(socket)).await });
    runtime.shutdown_background();
    let pods = answer.map_err(|_| AskError::Late(deadline))??;
    Ok(Some(Allocations::of(pods)))
}

async fn exchange(socket: &Path) -> Result<Vec<PodResources>, AskError> {
    let unfit = || io::Error::other("the path has bytes that no gRPC address can have");
    let path = socket.to_str().ok_or_else(|| AskError::Reach(Box::new(unfit())))?;
    let endpoint = Endpoint::from_shared(format!("unix:{path}"))
        .map_err(|error| AskError::Reach(Box::new(error)))?;
    let channel = endpoint.connect().await.map_err(|error| AskError::Reach(Box::new(error)))?;
    Ok(list(channel).await?)
}

/// Whether there is no socket, or one that this user may not open.
fn is_out_of_reach(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let kinds = causes.filter_map(|error| error.downcast_ref::<io::Error>().map(io::Error::kind));
    let mut closed = kinds
        .filter(|kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied));
    closed.next().is_some()
}

fn reason(error: &AskError) -> Absence {
    match error {
        AskError::Late(_) => Absence::TimedOut,
        AskError::Stranger(_) | AskError::List(ListError::Limit(_) | ListError::Malformed(_)) => {
            Absence::Implausible
        }
        AskError::Reach(error) if is_out_of_reach(&**error) => Absence::Permission,
        AskError::Reach(_) | AskError::List(_) => Absence::Failed,
    }
}

fn key_of(pod: &Pod) -> Option<[String; 3]> {
    Some([pod.namespace.clone(), pod.name.clone(), pod.container.clone()?])
}

// === impl Allocations ===

impl Allocations {
    fn of(pods: Vec<PodResources>) -> Self {
        let mut all = Self::default();
        for PodResources { name, namespace, containers } in pods {
            for container in containers {
                if !(is_name(&name) && is_label(&namespace) && is_label(&container.name)) {
                    all.misnamed += 1;
                    continue;
                }
                let key = [namespace.clone(), name.clone(), container.name.clone()];
                let devices = all.devices(container);
                all.by_container.insert(key, devices);
            }
        }
        all
    }

    /// A container's devices, those of one resource together.
    fn devices(&mut self, from: ContainerResources) -> Vec<AllocatedDevices> {
        let plugged = from.devices.into_iter().flat_map(|one| {
            let resource = one.resource_name;
            one.device_ids.into_iter().map(move |id| (resource.clone(), id))
        });
        let claims = from.dynamic_resources.into_iter().flat_map(|claim| claim.claim_resources);
        let claimed =
            claims.map(|one| (one.driver_name, format!("{}/{}", one.pool_name, one.device_name)));
        let mut devices: Vec<AllocatedDevices> = Vec::new();
        for (resource, id) in plugged.chain(claimed) {
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

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
