//! What Kubernetes calls the pods that processes are in, and which devices it gave them.
//!
//! A process's cgroup names its pod by uid and its container by id. The kubelet's log directories
//! have the names that go with them ([`names`]), and the kubelet itself tells what is allocated to
//! them ([`kubelet`]). Neither is touched before a process is in a pod, neither can hold a
//! collection up for longer than a file may, and no network is asked.

mod kubelet;
mod names;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use telltale_schema::clock::Clock;
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{Pod, SourceStatus};

use crate::observation::ProcessObservation;
use crate::report::SourceReport;
use crate::timeout::{CallLimits, TaskName, Timeout};
use crate::tree::Tree;
use kubelet::Kubelet;
pub use kubelet::{Allocated, KubeletError, ListAllocated};
use names::{ContainerQuery, Names};

/// The source that the directories are.
const NAMES: &str = "pods";

/// How long a container without a full name is left alone before the directories are read again: a
/// container's log appears when it starts, and what is not there then may never be.
const RESCAN_NS: u64 = 10_000_000_000;

/// The table `[pods]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodOptions {
    /// Whether processes in Kubernetes pods are reported with the pods' names.
    pub enabled: bool,
    /// The kubelet's socket of PodResources; without it the usual one, where it is there and this
    /// user may open it.
    pub kubelet_socket: Option<PathBuf>,
}

impl Default for PodOptions {
    fn default() -> Self {
        Self { enabled: true, kubelet_socket: None }
    }
}

/// Names the pods of processes, periodically.
pub(super) struct Pods {
    enabled: bool,
    tree: Arc<Tree>,
    limits: CallLimits,
    timeout: Timeout,
    /// By container id.
    known: HashMap<String, KnownContainer>,
    /// How the last check of the directories went, where there are any.
    scan_status: Option<SourceStatus>,
    /// The directories were checked in the last call.
    has_scanned: bool,
    kubelet: Kubelet,
}

/// What is known of one container.
#[derive(Debug)]
struct KnownContainer {
    pod: Option<Pod>,
    scanned_ns: u64,
}

// === impl Pods ===

impl Pods {
    pub(super) fn new(
        options: PodOptions,
        list: Option<ListAllocated>,
        tree: Arc<Tree>,
        limits: CallLimits,
    ) -> Self {
        let kubelet = Kubelet::new(list, options.kubelet_socket, tree.path(), limits);
        Self {
            enabled: options.enabled,
            tree,
            limits,
            timeout: Timeout::default(),
            known: HashMap::new(),
            scan_status: None,
            has_scanned: false,
            kubelet,
        }
    }

    /// Gives the processes that are in pods the pods' names, and says how the sources did.
    pub(super) fn assign(
        &mut self,
        processes: &mut [ProcessObservation],
        clock: &dyn Clock,
    ) -> Vec<SourceStatus> {
        if !self.enabled {
            return Vec::new();
        }
        let now_ns = clock.monotonic_ns();
        let wanted = self.wanted(processes, now_ns);
        self.has_scanned = !wanted.is_empty();
        if self.known.is_empty() && wanted.is_empty() {
            self.scan_status = None;
            return Vec::new();
        }
        if self.has_scanned {
            self.scan(wanted, clock);
        }
        let pods = self.known.values().filter_map(|known| known.pod.as_ref());
        let kubelet = self.kubelet.follow(pods, now_ns);
        for container in processes.iter_mut().filter_map(|one| one.process.container.as_mut()) {
            let Some(pod) = self.known.get(&container.id).and_then(|known| known.pod.as_ref())
            else {
                continue;
            };
            let allocated = self.kubelet.allocated(pod);
            container.pod = Some(Pod { allocated, ..pod.clone() });
        }
        self.scan_status.iter().cloned().chain(kubelet).collect()
    }

    /// Sources whose status in the last call is that of an earlier one: they were not asked for it.
    pub(super) fn repeated(&self) -> Vec<&'static str> {
        let names = (!self.has_scanned).then_some(NAMES);
        names.into_iter().chain((!self.kubelet.is_new()).then_some(kubelet::NAME)).collect()
    }

    /// Containers whose names are not known; lets go of those that are there no more.
    fn wanted(&mut self, processes: &[ProcessObservation], now_ns: u64) -> Vec<ContainerQuery> {
        let containers = processes.iter().filter_map(|one| one.process.container.as_ref());
        let in_pods: HashMap<&str, &str> =
            containers.filter_map(|one| Some((one.id.as_str(), one.pod_uid.as_deref()?))).collect();
        self.known.retain(|id, _| in_pods.contains_key(id.as_str()));
        let due = |id: &str| match self.known.get(id) {
            None => true,
            Some(KnownContainer { pod, scanned_ns }) => {
                let whole = pod.as_ref().is_some_and(|pod| pod.container.is_some());
                !whole && now_ns.saturating_sub(*scanned_ns) >= RESCAN_NS
            }
        };
        let wanted = in_pods.into_iter().filter(|(id, _)| due(id));
        wanted.map(|(id, uid)| ContainerQuery { id: id.to_owned(), uid: uid.to_owned() }).collect()
    }

    /// Reads the directories for these.
    fn scan(&mut self, wanted: Vec<ContainerQuery>, clock: &dyn Clock) {
        let started_ns = clock.monotonic_ns();
        let ids: Vec<String> = wanted.iter().map(|one| one.id.clone()).collect();
        let task = (TaskName { group: 0, item: 0 }, (Arc::clone(&self.tree), wanted));
        let found =
            self.timeout.run(vec![task], |(tree, wanted)| names::find(tree, wanted), self.limits);
        let mut report = SourceReport::default();
        let Names { mut pods, errors, present } =
            found.into_iter().flatten().next().unwrap_or_else(|| {
                let hung = "reading the directory hangs; it is tried again".to_owned();
                let subject = self.tree.display(names::PODS);
                Names {
                    pods: HashMap::new(),
                    errors: vec![(subject, Absence::TimedOut, hung)],
                    present: true,
                }
            });
        for (subject, reason, detail) in errors {
            report.error(subject, reason, detail);
        }
        for id in ids {
            let pod = pods.remove(&id);
            // What was known stays known when a later scan fails.
            let known = self
                .known
                .entry(id)
                .or_insert(KnownContainer { pod: None, scanned_ns: started_ns });
            known.scanned_ns = started_ns;
            known.pod = pod.or(known.pod.take());
        }
        self.scan_status = present.then(|| report.finish(NAMES, clock, started_ns));
    }
}
