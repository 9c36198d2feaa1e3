//! Names of pods and allocated devices, from a kubelet's directories and socket as they are on a
//! node, and from kubelets that hang or lie.

mod kubelet;

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_collector::{CollectOptions, Collector, PodOptions};
use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, wait_until};
use telltale_node::kubelet::list_allocated;
use telltale_schema::clock::{ManualClock, Timestamp};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{AllocatedDevices, Pod, Snapshot, SourceStatus};

use crate::collecting::bench::{Bench, process, subjects};
use crate::collecting::workload::{Role, start};
use kubelet::{Kubelet, answer, pod};

const ID: &str = "3f2a9cbf5d1e4c6b8a7090807060504030201000f0e0d0c0b0a0908070605040";
const UID: &str = "5f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f";
const SOCKET: &str = "var/lib/kubelet/pod-resources/kubelet.sock";

/// A machine with one process that its cgroup puts into a pod.
struct Node {
    bench: Bench,
    child: ChildGuard,
}

impl Node {
    fn options(&self) -> CollectOptions {
        CollectOptions { list_allocated: Some(list_allocated), ..self.bench.options() }
    }

    fn new() -> Self {
        let bench = Bench::new(MachineKind::N150);
        let child = start(&bench.child(Role::Ledger, 100));
        let node = Self { bench, child };
        let (here, real) = (node.path(&format!("proc/{}", node.child.id())), node.child.id());
        std::fs::create_dir_all(&here).unwrap();
        for name in ["stat", "status", "cmdline", "ns", "exe"] {
            symlink(format!("/proc/{real}/{name}"), here.join(name)).unwrap();
        }
        let uid = UID.replace('-', "_");
        let cgroup =
            format!("0::/../../kubepods-burstable-pod{uid}.slice/cri-containerd-{ID}.scope\n");
        std::fs::write(here.join("cgroup"), cgroup).unwrap();
        node
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.bench.machine.root().join(relative)
    }

    fn logs_of(&self, name: &str, containers: &[&str]) {
        for container in containers {
            let path = self.path(&format!("var/log/pods/{name}_{UID}/{container}"));
            std::fs::create_dir_all(path).unwrap();
        }
    }

    /// Where the kubelet's socket belongs, with its directory.
    fn socket(&self) -> PathBuf {
        let path = self.path(SOCKET);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn collector(&self, timeout: Duration) -> Collector {
        let deadline = timeout * 2;
        Collector::new(CollectOptions { timeout, deadline, ..self.options() }).unwrap()
    }

    fn pod(&self, snapshot: &Snapshot) -> Option<Pod> {
        let container = process(snapshot, self.child.id()).container.clone().unwrap();
        assert_eq!((container.id.as_str(), container.pod_uid.as_deref()), (ID, Some(UID)));
        container.pod
    }
}

fn named(container: Option<&str>) -> Pod {
    Pod {
        namespace: "research".to_owned(),
        name: "gpt-0".to_owned(),
        container: container.map(str::to_owned),
        allocated: Vec::new(),
    }
}

fn source<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a SourceStatus> {
    snapshot.sources.iter().find(|source| source.name == name)
}

const LONG: Duration = Duration::from_secs(10);

#[test]
fn directories_of_logs_name_the_pod_and_its_only_container() {
    let node = Node::new();
    let mut collector = node.collector(LONG);
    let before = collector.collect();
    assert_eq!(node.pod(&before), None);
    assert!(source(&before, "pods").is_none() && source(&before, "kubelet").is_none());
    node.logs_of("research_gpt-0", &["train"]);
    node.logs_of("junk", &["x"]);
    // What was not there is searched for again later; another service checks once.
    let mut collector = node.collector(LONG);
    for _ in 0..2 {
        let snapshot = collector.collect();
        assert_eq!(node.pod(&snapshot), Some(named(Some("train"))));
        assert_eq!(subjects(&snapshot), Vec::<String>::new());
        assert!(source(&snapshot, "pods").is_some() && source(&snapshot, "kubelet").is_none());
    }
    let pods = PodOptions { enabled: false, kubelet_socket: None };
    let options = CollectOptions { pods, ..node.options() };
    assert_eq!(node.pod(&Collector::new(options).unwrap().collect()), None);
}

#[test]
fn of_several_containers_the_link_with_its_id_is_it() {
    let node = Node::new();
    node.logs_of("research_gpt-0", &["init", "train"]);
    assert_eq!(node.pod(&node.collector(LONG).collect()), Some(named(None)));
    let links = node.path("var/log/containers");
    std::fs::create_dir_all(&links).unwrap();
    symlink("/nowhere", links.join(format!("gpt-0_research_train-{ID}.log"))).unwrap();
    assert_eq!(node.pod(&node.collector(LONG).collect()), Some(named(Some("train"))));
    // A link that is of another pod contradicts the directory.
    let link = |pod: &str| links.join(format!("{pod}_research_train-{ID}.log"));
    std::fs::rename(link("gpt-0"), link("gpt-1")).unwrap();
    assert_eq!(node.pod(&node.collector(LONG).collect()), None);
}

#[test]
fn a_kubelet_adds_what_it_has_allocated() {
    let node = Node::new();
    node.logs_of("research_gpt-0", &["train"]);
    let devices = [("example.com/chip", "a"), ("example.com/chip", "b"), ("example.com/nic", "0")];
    let pods = vec![
        pod("research", "gpt-1", "train", &[("example.com/chip", "z")]),
        pod("research", "gpt-0", "train", &devices),
    ];
    let _kubelet = Kubelet::serve(&node.socket(), answer(pods));
    let snapshot = node.collector(LONG).collect();
    let allocated = |resource: &str, ids: &[&str]| AllocatedDevices {
        resource: resource.to_owned(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    let expected = vec![
        allocated("example.com/chip", &["a", "b"]),
        allocated("example.com/nic", &["0"]),
        allocated("driver.example.com", &["pool/claimed"]),
    ];
    assert_eq!(node.pod(&snapshot).unwrap().allocated, expected);
    assert_eq!(subjects(&snapshot), Vec::<String>::new());
    assert!(source(&snapshot, "kubelet").unwrap().duration_ns > 0);
}

#[test]
fn a_kubelet_that_hangs_costs_its_own_answer_and_no_more() {
    let node = Node::new();
    node.logs_of("research_gpt-0", &["train"]);
    let _silent = UnixListener::bind(node.socket()).unwrap();
    let mut collector = node.collector(Duration::from_millis(100));
    let began = Instant::now();
    let mut last = collector.collect();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(node.pod(&last), Some(named(Some("train"))));
    wait_until("the question to be given up", Duration::from_secs(30), || {
        last = collector.collect();
        source(&last, "kubelet").is_some()
    });
    let kubelet = source(&last, "kubelet").unwrap();
    assert_eq!(kubelet.errors[0].reason, Absence::TimedOut, "{kubelet:?}");
    assert_eq!(node.pod(&last), Some(named(Some("train"))));
}

#[test]
fn a_failure_of_the_kubelet_is_one_for_each_time_that_it_was_asked() {
    let node = Node::new();
    node.logs_of("research_gpt-0", &["train"]);
    let pods = PodOptions { enabled: true, kubelet_socket: Some(node.path("elsewhere.sock")) };
    let options = CollectOptions { pods, timeout: LONG, ..node.options() };
    let clock = Arc::new(ManualClock::starting_at(Timestamp(1)));
    let mut collector = Collector::with_clock(options, Arc::clone(&clock) as _).unwrap();
    let mut tells_again = || {
        let snapshot = collector.collect();
        assert_eq!(source(&snapshot, "kubelet").unwrap().errors.len(), 1);
        collector.repeated().contains(&"kubelet")
    };
    assert!(!tells_again());
    assert!(tells_again() && tells_again());
    clock.advance_ns(10_000_000_000);
    wait_until("it to have been asked again", LONG, || !tells_again());
    assert!(tells_again() && tells_again());
}

#[test]
fn a_kubelet_that_lies_is_not_believed() {
    let long = "x".repeat(300);
    let many: Vec<(&str, &str)> = vec![("example.com/chip", "0"); 300];
    let cases = [
        (vec![0; 5 << 20], Absence::Failed, "did not answer"),
        (b"\x0a\xff\xff\xff\xff\x0f".to_vec(), Absence::Implausible, "breaks a limit"),
        (answer(vec![pod("research", "gpt-0", &long, &[])]), Absence::Implausible, "63 bytes"),
        (
            answer(vec![pod("research", "gpt-0\x1b[2J", "train", &[("a", "b")])]),
            Absence::Implausible,
            "names that Kubernetes does not allow",
        ),
        (
            answer(vec![pod("research", "gpt-0", "train", &many)]),
            Absence::Implausible,
            "more than a container may have",
        ),
    ];
    let node = Node::new();
    node.logs_of("research_gpt-0", &["train"]);
    for (bytes, reason, words) in cases {
        let _kubelet = Kubelet::serve(&node.socket(), bytes);
        let snapshot = node.collector(LONG).collect();
        let kubelet = source(&snapshot, "kubelet").unwrap();
        let [error] = kubelet.errors.as_slice() else { panic!("{words}: {kubelet:?}") };
        assert!(error.reason == reason && error.detail.contains(words), "{words}: {error:?}");
        let pod = node.pod(&snapshot).unwrap();
        assert!(pod.allocated.iter().all(|one| one.ids.len() <= 256));
        assert_eq!((pod.name.as_str(), pod.container.as_deref()), ("gpt-0", Some("train")));
    }
}

#[test]
fn a_socket_that_was_named_has_to_be_there() {
    let node = Node::new();
    node.logs_of("research_gpt-0", &["train"]);
    let pods = PodOptions { enabled: true, kubelet_socket: Some(node.path("elsewhere.sock")) };
    let options = CollectOptions { pods, timeout: LONG, ..node.options() };
    let snapshot = Collector::new(options).unwrap().collect();
    let kubelet = source(&snapshot, "kubelet").unwrap();
    assert!(kubelet.errors[0].detail.contains("pods.kubelet_socket"), "{kubelet:?}");
    assert_eq!(node.pod(&snapshot), Some(named(Some("train"))));
}
