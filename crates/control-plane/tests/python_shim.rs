//! The Python shim with a real PyTorch: four ranks with Gloo tell an intake what they do.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Direction, EdgeWindow, SizeBucket};
use telltale_cluster::observation::{GroupProgress, Observation};
use telltale_cluster::rank::Rank;
use telltale_control_plane::intake::server::{IntakeServer, MAX_WAITING_WISHES, ServerOptions};
use telltale_control_plane::intake::{Intake, Scope};
use telltale_harness::{ChildGuard, Scratch, port_for_later, skip};
use telltale_server::listen::{Address, Listener};
use tokio::sync::{mpsc, watch};

/// Debian's PyTorch belongs to the system's Python.
const PYTHON: &str = "/usr/bin/python3";
const RANKS: u32 = 4;
const EPOCH: u64 = 7;
/// PyTorch takes seconds to import on a busy machine, four times over.
const TIMEOUT: Duration = Duration::from_secs(240);

fn client() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python")
}

/// Asked once, for it takes a second or more.
static HAS_TORCH: LazyLock<bool> = LazyLock::new(|| {
    let asked = Command::new(PYTHON).args(["-c", "import torch.distributed"]).output();
    asked.is_ok_and(|output| output.status.success())
});

fn has_torch(test: &str) -> bool {
    let has = *HAS_TORCH;
    if !has {
        skip(&format!("cluster::python_shim::{test}"), "PyTorch is not installed (python3-torch)");
    }
    has
}

/// An intake with its HTTP, in a thread of its own.
struct Agent {
    intake: Intake,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    fn new() -> Self {
        let (listener, _) = Listener::bind(&"127.0.0.1:0".parse().unwrap(), None).unwrap();
        let Some(Address::Tcp(address)) = listener.address() else { panic!("a port") };
        let intake = Intake::new();
        let epoch = Epoch::new(EPOCH);
        intake.begin(Scope { epoch, world_size: RANKS, ranks: 0..RANKS });
        let (stop, stopped) = watch::channel(false);
        let for_server = intake.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let (wishes, _wished) = mpsc::channel(MAX_WAITING_WISHES);
                let options = ServerOptions::default();
                let server =
                    IntakeServer::new(vec![listener], for_server, wishes, options).unwrap();
                server.run(stopped).await;
            });
        });
        Self { intake, address, stop, thread: Some(thread) }
    }

    fn observe(&self) -> Observation {
        self.intake.observe(Epoch::new(EPOCH), &[]).expect("the epoch runs")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

/// Runs four ranks of the job that post to these places in turn, and gives what each printed.
fn run(parts: &str, places: &[String]) -> Vec<String> {
    let port = port_for_later();
    let start = |(rank, place): (u32, &String)| {
        let mut command = Command::new(PYTHON);
        command.arg(client().join("tests/job.py")).arg(parts);
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", RANKS.to_string());
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("OMP_NUM_THREADS", "1");
        command.env("TELLTALE_EPOCH", EPOCH.to_string());
        command.env("PYTHONPATH", client().join("autoload")).env("TELLTALE_LOG_CCL", place);
        ChildGuard::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let ranks: Vec<ChildGuard> = (0..RANKS).zip(places.iter().cycle()).map(start).collect();
    ranks.into_iter().map(printed).collect()
}

fn printed(mut rank: ChildGuard) -> String {
    use std::io::Read;
    let status = rank.wait_within("a rank of the job to end", TIMEOUT);
    let (mut out, mut error) = (String::new(), String::new());
    rank.child().stdout.take().unwrap().read_to_string(&mut out).unwrap();
    rank.child().stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert!(status.success(), "{status}: {error}");
    out
}

fn metrics(printed: &str) -> BTreeMap<String, f64> {
    let value: Value = serde_json::from_str(printed).unwrap_or_else(|_| panic!("{printed:?}"));
    let fields = value.as_object().unwrap().iter();
    fields.map(|(name, value)| (name.clone(), value.as_f64().unwrap())).collect()
}

#[test]
fn an_unchanged_script_reports_its_transfers_collectives_groups_and_gradients() {
    if !has_torch("an_unchanged_script_tells") {
        return;
    }
    let agent = Agent::new();
    let place = format!("http://{}", agent.address);
    let printed = run("transfers,collectives,groups,gradients", &[place]);
    for one in &printed {
        let metrics = metrics(one);
        assert_eq!((metrics["dropped"], metrics["errors"]), (0.0, 0.0), "{metrics:?}");
        assert_eq!(metrics["reported"], metrics["posted"]);
    }
    let observation = agent.observe();
    let counts = agent.intake.view().counts;
    let bad = counts.malformed_posts + counts.refused + counts.stale + counts.queue_full;
    assert_eq!(bad + counts.tracker.unknown_group + counts.tracker.implausible, 0, "{counts:?}");
    let has_edge = |rank, peer, direction| {
        observation.edges.iter().any(|edge| {
            let key = edge.key;
            (key.rank, key.peer, key.direction) == (Rank(rank), Rank(peer), direction)
                && key.group == GroupId::WORLD
        })
    };
    for rank in 0..RANKS {
        let (after, before) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        assert!(has_edge(rank, after, Direction::Send), "{rank} to {after}");
        assert!(has_edge(rank, before, Direction::Receive), "{rank} from {before}");
    }
    let progress = |group: GroupId| {
        let of_group = observation.progress.iter().filter(move |one| one.group == group);
        of_group.map(|one| (one.rank.0, one.entered, one.finished)).collect::<Vec<_>>()
    };
    let world = progress(GroupId::WORLD);
    let all = world[0].1;
    // Twice 40 sums, 36 passes with gradients to add up, and a few more.
    assert!(all >= 116, "{world:?}");
    assert_eq!(world, (0..RANKS).map(|rank| (rank, all, all)).collect::<Vec<_>>());
    let groups: std::collections::BTreeSet<GroupId> =
        observation.progress.iter().map(|one| one.group).collect();
    assert_eq!(groups.len(), 3, "all ranks, and two pairs");
    let pairs = groups.iter().filter(|group| **group != GroupId::WORLD);
    let pairs: Vec<Vec<(u32, u64, u64)>> = pairs.map(|group| progress(*group)).collect();
    for pair in [vec![(0, 40, 40), (1, 40, 40)], vec![(2, 40, 40), (3, 40, 40)]] {
        assert!(pairs.contains(&pair), "{pairs:?}");
    }
    let in_pair = |edge: &&EdgeWindow| edge.key.group != GroupId::WORLD;
    let in_pairs = observation.edges.iter().filter(in_pair);
    let mut in_pairs: Vec<(u32, u32)> =
        in_pairs.map(|edge| (edge.key.rank.0, edge.key.peer.0)).collect();
    in_pairs.sort_unstable();
    assert_eq!(in_pairs, [(0, 1), (1, 0), (2, 3), (3, 2)]);
    let waits_for_none =
        |one: &GroupProgress| one.sends_to.is_empty() && one.receives_from.is_empty();
    assert!(observation.progress.iter().all(waits_for_none), "all have ended");
}

#[test]
fn transfers_say_what_else_their_time_holds() {
    if !has_torch("transfers_say_what_else") {
        return;
    }
    let agent = Agent::new();
    run("waits", &[format!("http://{}", agent.address)]);
    let observation = agent.observe();
    for (bytes, is_late) in [(4096, false), (32768, true)] {
        let bucket = SizeBucket::of(bytes);
        let edges: Vec<_> =
            observation.edges.iter().filter(|edge| edge.key.bucket == bucket).collect();
        assert_eq!(edges.len(), 8, "each rank sends and receives: {edges:?}");
        for EdgeWindow { key, window } in edges {
            let late = if is_late { window.count } else { 0 };
            // The send is waited for behind the receive.
            let overlapped = if key.direction == Direction::Send { window.count } else { 0 };
            assert_eq!((window.late, window.overlapped), (late, overlapped), "{key:?} {window:?}");
        }
    }
}

#[test]
fn a_job_goes_on_without_an_agent_and_with_one_that_never_answers() {
    if !has_torch("a_job_goes_on_without_an_agent") {
        return;
    }
    // Connections are taken into the queue, and not read.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}", silent.local_addr().unwrap());
    // Nothing listens there, and no test beside is given this port.
    let gone = String::from("http://127.0.0.1:1");
    for printed in run("transfers", &[place, gone]) {
        let metrics = metrics(&printed);
        assert_eq!((metrics["posted"], metrics["errors"]), (0.0, 0.0), "{metrics:?}");
        assert!(metrics["dropped"] > 0.0 && metrics["failed_posts"] > 0.0, "{metrics:?}");
    }
}

#[test]
fn it_installs_itself_where_a_place_is_named_and_lets_the_next_be() {
    let place = Scratch::new();
    std::fs::write(place.join("sitecustomize.py"), "print('the next one')").unwrap();
    let code = "import sys; print('telltale_ccl' in sys.modules)";
    for (address, expected) in [("", "the next one\nFalse\n"), ("x:1", "the next one\nTrue\n")] {
        let path = format!("{}:{}", client().join("autoload").display(), place.path().display());
        let mut command = Command::new("python3");
        command.args(["-c", code]).env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
        let Ok(output) = command.env("TELLTALE_LOG_CCL", address).output() else {
            return skip("cluster::python_shim::it_installs_itself", "python3 is not installed");
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}

#[test]
fn its_own_tests_pass() {
    let tests = client().join("tests/test_shim.py");
    let mut command = Command::new("python3");
    let Ok(output) = command.arg(tests).env("PYTHONDONTWRITEBYTECODE", "1").output() else {
        return skip("cluster::python_shim::its_own_tests_pass", "python3 is not installed");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn its_own_tests_with_pytorch_pass() {
    if !has_torch("its_own_tests_with_pytorch_pass") {
        return;
    }
    let mut command = Command::new(PYTHON);
    command.arg(client().join("tests/test_spans.py"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("OMP_NUM_THREADS", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
