//! A training of PyTorch with Gloo in four ranks, under a coordinator with agents or under torchrun: it
//! is started, hurt, and asked when it goes on. What that must come to is said elsewhere.
//!
//! On an error it panics with what the processes said.

use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::ClockId;
use telltale_bench::sample::reading_ns;
use telltale_control_plane::operator::Operator;
use telltale_control_plane::reach::Credentials;
use telltale_harness::{ChildGuard, Scratch};
use telltale_wire::cluster::{CallError, Client};
use tokio::runtime::Runtime;

/// Ranks of the training.
pub(crate) const RANKS: u32 = 4;
/// How long anything may take, on a machine that does much else.
const TIMEOUT: Duration = Duration::from_secs(240);
/// How long a coordinator may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How often it is looked whether something has come about.
const LOOK: Duration = Duration::from_millis(10);
/// Time after the first step without a fault.
const CALM: Duration = Duration::from_secs(1);
/// How long a worker that was started ahead must have done nothing to count as ready.
const STILL: Duration = Duration::from_millis(300);
/// The least processor time that its imports take.
const IMPORTS: Duration = Duration::from_millis(500);

const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/numbers/train.py");
/// What makes an unchanged PyTorch script tell of its collectives.
const SHIM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../clients/python/autoload:",
    env!("CARGO_MANIFEST_DIR"),
    "/../../clients/python"
);

/// How agents run the training.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Nodes that share the ranks.
    pub(crate) nodes: u32,
    /// Nodes beside them.
    pub(crate) spares: u32,
    /// Whether workers are started ahead.
    pub(crate) warm: bool,
    /// Whether ranks tell of their collectives.
    pub(crate) tells: bool,
    /// Seconds from one step to the next.
    pub(crate) rest: f64,
}

/// How soon the next attempt was there, in nanoseconds from the fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recovered {
    /// Until the last rank ran the script's first line.
    pub(crate) started_ns: f64,
    /// Until the last rank had done its first step.
    pub(crate) stepped_ns: f64,
}

/// What a rank has reported.
#[derive(Debug, Clone, PartialEq)]
struct TrainingEvent {
    event: String,
    rank: u32,
    attempt: u32,
    process: Pid,
    at_ns: f64,
}

/// A training that runs.
#[derive(Debug)]
pub(crate) struct Training {
    telltale: PathBuf,
    shape: Shape,
    address: String,
    runtime: Runtime,
    /// The agents, or torchrun alone.
    agents: Vec<ChildGuard>,
    coordinator: Option<ChildGuard>,
    // The last, so that it goes when no process writes there any more.
    scratch: Scratch,
}

/// Whether there is a PyTorch to train with.
pub(crate) fn has_torch() -> bool {
    let output = Command::new(PYTHON).args(["-c", "import torch.distributed"]).output();
    output.is_ok_and(|output| output.status.success())
}

// === impl Training ===

impl Training {
    /// Starts it under agents, and returns when every rank has done a step.
    pub(crate) fn under_agents(telltale: &Path, shape: Shape) -> Self {
        let mut training = Self::new(telltale, shape);
        let mut coordinator = training.program("coordinator");
        coordinator.args(["--no-http", "--listen", &training.address]);
        coordinator.args(["--nodes", &shape.nodes.to_string()]);
        coordinator.args(["--workers", &training.workers().to_string()]);
        coordinator.arg("--journal").arg(training.scratch.join("journal"));
        training.coordinator = Some(ChildGuard::spawn(&mut coordinator));
        for index in 0..shape.nodes + shape.spares {
            let agent = training.agent(index);
            training.agents.push(agent);
            if index + 1 == shape.nodes {
                // Later nodes are spares.
                training.wait_for_a_step();
            }
        }
        training
    }

    /// Starts it under `telltale train` with these options, likewise.
    pub(crate) fn under_train(telltale: &Path, rest: f64, options: &[&str]) -> Self {
        let shape = Shape { nodes: 1, rest, ..Shape::default() };
        let mut training = Self::new(telltale, shape);
        let mut command = training.program("train");
        command.args(["--nproc", &RANKS.to_string(), "--max-restarts", "100"]).args(options);
        command.args(["--", SCRIPT]).env("PYTHON_EXEC", PYTHON);
        training.agents.push(ChildGuard::spawn(&mut command));
        training.wait_for_a_step();
        training
    }

    /// Starts it under torchrun, likewise.
    pub(crate) fn under_torchrun(rest: f64) -> Self {
        let mut training = Self::new(Path::new(""), Shape { rest, ..Shape::default() });
        let port = training.address.rsplit(':').next().expect("an address has a port").to_owned();
        let mut command = Command::new("torchrun");
        command.args(["--nnodes=1", "--max_restarts=100", "--monitor_interval=0.1"]);
        command.arg(format!("--nproc_per_node={RANKS}"));
        command.args(["--master_addr=127.0.0.1", &format!("--master_port={port}")]);
        // Debian's does not start with this Python without the output path.
        command.args(["--redirects=9:1", "--tee=9:1", SCRIPT]);
        training.agents.push(ChildGuard::spawn(training.surround(&mut command)));
        training.wait_for_a_step();
        training
    }

    fn new(telltale: &Path, shape: Shape) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.expect("the loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        Self {
            telltale: telltale.to_path_buf(),
            shape,
            address,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("an event loop"),
            agents: Vec::new(),
            coordinator: None,
            scratch: Scratch::new(),
        }
    }

    fn workers(&self) -> u32 {
        RANKS / self.shape.nodes
    }

    fn agent(&self, index: u32) -> ChildGuard {
        let node = Self::node(index);
        let mut command = self.program("agent");
        command.args(["--coordinator", &self.address, "--address", "127.0.0.1", "--node", &node]);
        command.args(["--workers", &self.workers().to_string()]);
        command.arg("--state").arg(self.scratch.join(&node));
        if self.shape.warm {
            command.arg("--warm");
        }
        if self.shape.tells {
            command.env("PYTHONPATH", SHIM);
        }
        ChildGuard::spawn(command.args(["--", PYTHON, SCRIPT]))
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(&self.telltale);
        self.surround(command.arg(name));
        command
    }

    /// What all of them are given.
    fn surround<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let log = OpenOptions::new().create(true).append(true).open(self.scratch.join("log"));
        let log = log.expect("a scratch directory can be written");
        command.env("TOLD", self.scratch.join("told")).env("REST", self.shape.rest.to_string());
        command.env("OMP_NUM_THREADS", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log)
    }

    /// What a node is called.
    pub(crate) fn node(index: u32) -> String {
        format!("node-{index}")
    }

    /// Kills a rank's worker, and says how soon the next attempt was there.
    pub(crate) fn kill_rank(&self, rank: u32) -> Recovered {
        let attempt = self.attempt().expect("a training that was started has done a step");
        let process = self.process(rank, attempt);
        let began_ns = reading_ns(ClockId::Monotonic);
        signal(process, Signal::KILL);
        self.until("the next attempt's first step", |it| it.attempt() > Some(attempt));
        let reported = self.reported();
        let last = |event: &str| {
            let reported =
                reported.iter().filter(|one| one.event == event && one.attempt == attempt + 1);
            reported.map(|one| one.at_ns).fold(began_ns, f64::max) - began_ns
        };
        let recovered = Recovered { started_ns: last("started"), stepped_ns: last("stepped") };
        std::thread::sleep(CALM);
        recovered
    }

    /// The latest attempt in which every rank has done a step.
    pub(crate) fn attempt(&self) -> Option<u32> {
        let reported = self.reported();
        let stepped = |attempt: u32| {
            let of_it = |one: &&TrainingEvent| one.event == "stepped" && one.attempt == attempt;
            reported.iter().filter(of_it).count() >= RANKS as usize
        };
        let latest = reported.iter().map(|one| one.attempt).max()?;
        (0..=latest).rev().find(|attempt| stepped(*attempt))
    }

    /// Waits for a later attempt than this in which every rank has done a step.
    pub(crate) fn wait_for_attempt_after(&self, attempt: Option<u32>) {
        self.until("a step of every rank", |it| it.attempt() > attempt);
        std::thread::sleep(CALM);
    }

    fn wait_for_a_step(&self) {
        self.wait_for_attempt_after(None);
    }

    /// A rank's process.
    pub(crate) fn process(&self, rank: u32, attempt: u32) -> Pid {
        let reported = self.reported();
        let found = reported.iter().find(|one| one.rank == rank && one.attempt == attempt);
        found.expect("each rank tells that it has started").process
    }

    /// The node whose agent has started a process.
    pub(crate) fn node_of(&self, process: Pid) -> String {
        let nodes = 0..self.shape.nodes + self.shape.spares;
        let found = nodes.into_iter().find(|node| self.children(*node).contains(&process));
        Self::node(found.expect("a worker is the child of its agent"))
    }

    /// Waits until every agent has as many workers started ahead as it runs, and these have nothing left
    /// to import.
    pub(crate) fn wait_warm(&self) {
        let mut before = Vec::new();
        let wanted = self.agents.len() * self.workers() as usize;
        self.until("workers that wait at their gate", |it| {
            let reported = it.reported();
            let nodes = 0..it.shape.nodes + it.shape.spares;
            let ahead = nodes.flat_map(|node| it.children(node));
            let ahead = ahead.filter(|process| reported.iter().all(|one| one.process != *process));
            let spent = ahead.filter_map(|process| Some((process, time_of_sleeper(process)?)));
            let now: Vec<(Pid, Duration)> = spent.filter(|(_, time)| *time >= IMPORTS).collect();
            let are_still = now.len() >= wanted && now == before;
            before = now;
            std::thread::sleep(STILL);
            are_still
        });
    }

    /// Sends a signal to an agent and all that it has started, itself first.
    pub(crate) fn signal_node(&self, index: u32, what: Signal) {
        let children = self.children(index);
        signal(self.agent_process(index), what);
        children.into_iter().for_each(|process| signal(process, what));
    }

    /// Starts an agent again that was killed.
    pub(crate) fn restart_agent(&mut self, index: u32) {
        let agent = self.agent(index);
        self.agents[index as usize] = agent;
    }

    /// An agent's process, and that of its guard: all its children but workers.
    pub(crate) fn agent_and_guard(&self, index: u32) -> Vec<Pid> {
        let reported = self.reported();
        let is_worker = |process: &Pid| reported.iter().any(|one| one.process == *process);
        let guard = self.children(index).into_iter().filter(|process| !is_worker(process));
        std::iter::once(self.agent_process(index)).chain(guard).collect()
    }

    fn agent_process(&self, index: u32) -> Pid {
        let number = i32::try_from(self.agents[index as usize].id()).ok().and_then(Pid::from_raw);
        number.expect("a process has a positive number")
    }

    /// What an agent has started (proc_tid_children(5); it starts all from its first thread).
    fn children(&self, index: u32) -> Vec<Pid> {
        let agent = self.agent_process(index);
        let text = fs::read_to_string(format!("/proc/{agent}/task/{agent}/children"));
        let text = text.unwrap_or_default();
        text.split_whitespace().filter_map(|one| Pid::from_raw(one.parse().ok()?)).collect()
    }

    /// Asks the coordinator.
    pub(crate) fn ask<Answer>(
        &self,
        call: impl AsyncFnMut(&mut Client) -> Result<Answer, CallError>,
    ) -> Option<Answer> {
        let address = self.address.parse().expect("a port of the loopback is an address");
        let operator = Operator::new(vec![address], Credentials::default(), ANSWER);
        self.runtime.block_on(operator.ask(call)).ok()
    }

    /// Waits until this is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < TIMEOUT, "no {what} after {TIMEOUT:?}:\n{}", self.log());
            std::thread::sleep(LOOK);
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.join("log")).unwrap_or_default()
    }

    fn reported(&self) -> Vec<TrainingEvent> {
        let text = fs::read_to_string(self.scratch.join("told")).unwrap_or_default();
        text.lines().filter_map(reported).collect()
    }
}

impl Drop for Training {
    /// torchrun leaves its workers behind when it is killed, and ends them when it is asked to end.
    fn drop(&mut self) {
        if self.coordinator.is_none() {
            for process in &mut self.agents {
                process.terminate();
                let start = Instant::now();
                while process.is_running() && start.elapsed() < ANSWER {
                    std::thread::sleep(LOOK);
                }
            }
        }
    }
}

fn reported(line: &str) -> Option<TrainingEvent> {
    let mut words = line.split(' ');
    Some(TrainingEvent {
        event: words.next()?.to_owned(),
        rank: words.next()?.parse().ok()?,
        attempt: words.next()?.parse().ok()?,
        process: Pid::from_raw(words.next()?.parse().ok()?)?,
        at_ns: words.next()?.parse().ok()?,
    })
}

/// Sends a signal to a process of ours, which may have ended.
pub(crate) fn signal(process: Pid, what: Signal) {
    let _ = kill_process(process, what);
}

/// The processor time of a process that sleeps (proc_pid_stat(5): state, utime and stime).
fn time_of_sleeper(process: Pid) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let each = rustix::param::clock_ticks_per_second();
    (fields.first() == Some(&"S")).then(|| Duration::from_secs_f64(ticks as f64 / each as f64))
}
