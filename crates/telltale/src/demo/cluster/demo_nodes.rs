//! The coordinator and the nodes of the demo: each node an agent, whose worker emulates the chip that
//! it trains on; all of it in one private directory.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use super::process::{DemoProcess, Recipe};
use super::worker_line::WorkerLine;
use crate::exit::Failure;
use crate::private_directory::PrivateDirectory;

/// How the directory of a demo is named, before its pid.
const DIRECTORY_PREFIX: &str = "telltale-demo-";
/// Nodes that the job runs on.
pub(super) const SLOTS: usize = 4;
/// Their names; the last one is the spare. They get slots in this order.
pub(super) const NAMES: [&str; SLOTS + 1] = ["node-a", "node-b", "node-c", "node-d", "node-e"];
/// The longest line of a worker that is read.
const MOST_LINE_BYTES: u64 = 64 << 10;
/// What is trained: so small that four ranks on two cores make a step in some hundredths of a second.
const MODEL: [&str; 10] =
    ["--layers", "2", "--heads", "4", "--width", "64", "--context", "32", "--batch", "4"];
/// The job's name.
const JOB: &str = "demo";
/// Where nodes reach each other's workers, and ranks meet that have no agent.
const HOST: &str = "127.0.0.1";
/// How long a worker may take to stop; the demo should not take long to end.
const STOP_GRACE_SECONDS: &str = "2";
/// The least that a step takes: time to watch, also where cores are many and fast.
const PACE_SECONDS: &str = "0.1";
/// Where a worker makes the directory of the machine that it emulates.
const MACHINES_VARIABLE: &str = "XDG_RUNTIME_DIR";
/// Steps between two checkpoints.
const CHECKPOINT_EVERY: &str = "10";

/// All of it. Dropping it ends and removes everything.
pub(super) struct DemoNodes {
    directory: PrivateDirectory,
    nodes: Vec<Node>,
    coordinator: Option<DemoProcess>,
    /// Undisturbed trainings.
    undisturbed: Vec<DemoProcess>,
    steps: u64,
    reported: (Sender<Heard>, Receiver<Heard>),
}

struct Node {
    agent: Option<DemoProcess>,
}

/// A line of a worker.
pub(super) struct Heard {
    pub(super) from: LineSource,
    pub(super) line: WorkerLine,
    pub(super) at: Instant,
}

/// Whose a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineSource {
    /// The worker of this node.
    Node(usize),
    /// This rank of the undisturbed training.
    Undisturbed(usize),
}

// === impl DemoNodes ===

impl DemoNodes {
    /// Starts the coordinator and the first agents.
    pub(super) fn start(steps: u64) -> Result<Self, Failure> {
        let directory = PrivateDirectory::make(DIRECTORY_PREFIX)?;
        let mut demo_nodes = Self {
            directory,
            nodes: Vec::new(),
            coordinator: None,
            undisturbed: Vec::new(),
            steps,
            reported: channel(),
        };
        let place = demo_nodes.make_directory("coordinator")?;
        let (coordinator, _) = DemoProcess::start(demo_nodes.coordinator_recipe(&place))?;
        demo_nodes.coordinator = Some(coordinator);
        (0..SLOTS).try_for_each(|_| demo_nodes.start_node())?;
        Ok(demo_nodes)
    }

    /// Starts the next node: after the first ones, which get the slots, the spare.
    pub(super) fn start_node(&mut self) -> Result<(), Failure> {
        let place = self.nodes.len();
        let name = NAMES[place];
        let directory = self.make_directory(name)?;
        let (agent, output) = DemoProcess::start(self.agent_recipe(name, &directory))?;
        self.listen(LineSource::Node(place), output);
        self.nodes.push(Node { agent: Some(agent) });
        Ok(())
    }

    /// Whether all nodes are started.
    pub(super) fn is_complete(&self) -> bool {
        self.nodes.len() == NAMES.len()
    }

    /// Where the coordinator answers.
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.path().join("coordinator/socket")
    }

    fn address(&self) -> OsString {
        let mut address = OsString::from("unix:");
        address.push(self.socket());
        address
    }

    /// What workers have reported since the last call.
    pub(super) fn heard(&self) -> impl Iterator<Item = Heard> {
        self.reported.1.try_iter()
    }

    /// Kills a node: its agent, its worker and whatever else they started.
    pub(super) fn kill(&mut self, node: usize) -> usize {
        self.nodes[node].agent.take().map_or(0, |mut agent| agent.kill())
    }

    /// Fails when a process has ended unexpectedly.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let agents = self.nodes.iter_mut().filter_map(|node| node.agent.as_mut());
        for process in self.coordinator.iter_mut().chain(agents).chain(&mut self.undisturbed) {
            // Agents and ranks end by themselves, and well, once the training is done.
            if let Some(status) = process.has_ended().filter(|status| !status.success()) {
                return Err(process.ended_early(status));
            }
        }
        Ok(())
    }

    /// What the processes complained of last, to follow a failure.
    pub(super) fn complaints(&self) -> String {
        let agents = self.nodes.iter().filter_map(|node| node.agent.as_ref());
        let all = self.coordinator.iter().chain(agents).chain(&self.undisturbed);
        all.map(DemoProcess::complaints).collect()
    }

    /// Ends agents and coordinator, and waits until they are gone.
    pub(super) fn end_cluster(&mut self) {
        let agents = self.nodes.iter_mut().filter_map(|node| node.agent.take());
        // The coordinator last: agents whose coordinator is gone would try to find it.
        let mut agents: Vec<DemoProcess> = agents.collect();
        let asked = Instant::now();
        agents.iter_mut().for_each(DemoProcess::ask_to_end);
        agents.iter_mut().for_each(|agent| agent.wait_for_end(asked));
        if let Some(mut coordinator) = self.coordinator.take() {
            coordinator.ask_to_end();
            coordinator.wait_for_end(Instant::now());
        }
    }

    /// Starts the same training once more, with as many ranks and no agents.
    pub(super) fn start_undisturbed(&mut self) -> Result<(), Failure> {
        let port = free_port()?;
        for rank in 0..SLOTS {
            let name = format!("undisturbed-{rank}");
            let directory = self.make_directory(&name)?;
            let mut arguments = self.training(&directory);
            arguments.extend(end_with_this());
            let environment = vec![
                (MACHINES_VARIABLE, directory.clone().into_os_string()),
                ("RANK", rank.to_string().into()),
                ("WORLD_SIZE", SLOTS.to_string().into()),
                ("MASTER_ADDR", HOST.into()),
                ("MASTER_PORT", port.to_string().into()),
            ];
            let recipe = Recipe { name: &name, directory: &directory, arguments, environment };
            let (process, output) = DemoProcess::start(recipe)?;
            self.undisturbed.push(process);
            self.listen(LineSource::Undisturbed(rank), output);
        }
        Ok(())
    }

    /// Ends and removes everything; says what could not be.
    pub(super) fn strike(mut self) -> Result<(), Failure> {
        self.end_processes();
        self.directory.remove().map_err(|error| {
            let path = self.directory.path().display();
            Failure::Message(format!("removing the demo's directory {path} failed: {error}"))
        })
    }

    fn end_processes(&mut self) {
        let asked = Instant::now();
        self.undisturbed.iter_mut().for_each(DemoProcess::ask_to_end);
        self.end_cluster();
        self.undisturbed.drain(..).for_each(|mut process| process.wait_for_end(asked));
    }

    fn coordinator_recipe<'a>(&self, directory: &'a Path) -> Recipe<'a> {
        let mut arguments: Vec<OsString> = vec!["coordinator".into()];
        let slots = SLOTS.to_string();
        arguments.extend(
            ["--job", JOB, "--nodes", &slots, "--no-http", "--log-level", "warn"].map(Into::into),
        );
        arguments.extend(["--journal".into(), directory.join("journal").into_os_string()]);
        arguments.extend(["--listen".into(), self.address()]);
        arguments.extend(end_with_this());
        Recipe { name: "coordinator", directory, arguments, environment: Vec::new() }
    }

    fn agent_recipe<'a>(&self, name: &'a str, directory: &'a Path) -> Recipe<'a> {
        let mut arguments: Vec<OsString> = vec!["agent".into()];
        arguments.extend(["--coordinator".into(), self.address()]);
        arguments.extend(["--job", JOB, "--node", name, "--address", HOST].map(Into::into));
        arguments.extend(["--state".into(), directory.join("agent").into_os_string()]);
        arguments
            .extend(["--stop-grace", STOP_GRACE_SECONDS, "--log-level", "warn"].map(Into::into));
        arguments.extend(end_with_this());
        // By its descriptor's name the program is there even after its file was replaced.
        arguments.extend(["--", "/proc/self/exe"].map(Into::into));
        arguments.extend(self.training(directory));
        arguments.extend(["--pace", PACE_SECONDS].map(Into::into));
        let environment = vec![(MACHINES_VARIABLE, directory.as_os_str().to_owned())];
        Recipe { name, directory, arguments, environment }
    }

    /// The arguments by which a rank trains, with checkpoints on its node's disk.
    fn training(&self, directory: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        arguments.extend(["gpt", "--parallel", "--json", "--weights-digest"].map(Into::into));
        arguments.extend(MODEL.map(Into::into));
        arguments.extend(["--steps", &self.steps.to_string()].map(Into::into));
        arguments.extend(["--resume", "--checkpoint-every", CHECKPOINT_EVERY].map(Into::into));
        arguments.extend(["--checkpoint".into(), directory.join("checkpoints").into_os_string()]);
        // What others may see of it is not for those who watch real workloads.
        arguments.extend(["--runtime-dir".into(), directory.as_os_str().to_owned()]);
        arguments
    }

    fn make_directory(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.directory.path().join(name);
        let failed = |error| Failure::Message(format!("making {} failed: {error}", path.display()));
        fs::create_dir(&path).map_err(failed)?;
        Ok(path)
    }

    /// Reads what a process prints until it ends.
    fn listen(&self, from: LineSource, output: ChildStdout) {
        let sender = self.reported.0.clone();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            while (&mut output)
                .take(MOST_LINE_BYTES)
                .read_line(&mut line)
                .is_ok_and(|count| count > 0)
            {
                let at = Instant::now();
                if let Some(line) = WorkerLine::parse(&line) {
                    let _ = sender.send(Heard { from, line, at });
                }
                line.clear();
            }
        });
    }
}

/// A port for the ranks that have no agent, which is free at this moment.
fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((HOST, 0)).and_then(|listener| listener.local_addr());
    let address = listener.map_err(|error| {
        Failure::Message(format!("finding a free port on {HOST} failed: {error}"))
    })?;
    Ok(address.port())
}

/// What has a process end with this one.
fn end_with_this() -> [OsString; 2] {
    ["--end-with-parent".into(), std::process::id().to_string().into()]
}

impl Drop for DemoNodes {
    fn drop(&mut self) {
        self.end_processes();
        let _ = self.directory.remove();
    }
}
