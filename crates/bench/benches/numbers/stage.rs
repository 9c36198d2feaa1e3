//! A job on the loopback: etcd, coordinators, agents with workers that only wait, all real processes.
//!
//! It starts and kills, and asks; other modules define the expected result. On an error it panics
//! with what the processes said.

use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use telltale_control_plane::operator::Operator;
use telltale_control_plane::reach::Credentials;
use telltale_harness::{ChildGuard, EtcdCluster, Scratch};
use telltale_wire::cluster::message::{GetStatusResponse, Node};
use telltale_wire::cluster::{CallError, Client};
use tokio::runtime::Runtime;

/// How long anything may take, on a machine that does much else.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a coordinator may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// How often it is looked whether something has come about.
const LOOK: Duration = Duration::from_millis(10);

/// A worker tells its place, its epoch and its number once, and then waits.
const WORKER: &str = "echo \"$RANK $TELLTALE_EPOCH $$\" >>\"$TOLD\"; exec sleep 3600";

/// Where decisions are kept.
#[derive(Debug)]
pub(crate) enum Keeping {
    /// In an etcd of this many members.
    Etcd(usize),
    /// In a directory.
    Journal,
}

/// A worker's start, as it reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start {
    /// Its rank.
    pub(crate) rank: u32,
    /// Its epoch.
    pub(crate) epoch: u64,
    /// Its process.
    pub(crate) process: u32,
}

/// Everything that runs.
#[derive(Debug)]
pub(crate) struct Stage {
    telltale: PathBuf,
    slots: usize,
    /// The members of etcd, if there are any.
    pub(crate) etcd: Option<EtcdCluster>,
    /// The coordinators' processes.
    pub(crate) coordinators: Vec<ChildGuard>,
    addresses: Vec<String>,
    /// The agents' processes.
    pub(crate) agents: Vec<ChildGuard>,
    runtime: Runtime,
    // The last, so that it goes when no process writes there any more.
    scratch: Scratch,
}

// === impl Stage ===

impl Stage {
    /// Starts so many coordinators and nodes, of which `slots` run the job, and returns once it runs.
    #[must_use]
    pub(crate) fn start(
        telltale: &Path,
        keeping: &Keeping,
        coordinators: usize,
        nodes: usize,
        slots: usize,
    ) -> Self {
        let mut stage = Self {
            telltale: telltale.to_path_buf(),
            slots,
            etcd: match keeping {
                Keeping::Etcd(members) => Some(EtcdCluster::start(*members)),
                Keeping::Journal => None,
            },
            coordinators: Vec::new(),
            addresses: free_addresses(coordinators),
            agents: Vec::new(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("an event loop"),
            scratch: Scratch::new(),
        };
        for index in 0..coordinators {
            let process = ChildGuard::spawn(&mut stage.coordinator(index));
            stage.coordinators.push(process);
        }
        for index in 0..nodes {
            let process = ChildGuard::spawn(&mut stage.agent(index));
            stage.agents.push(process);
        }
        stage.until("the job to run", |stage| {
            stage.status().is_some_and(|status| status.runs) && stage.registered() == nodes
        });
        // A job runs once its workers are started, a little before they have reported it.
        stage.until("all workers to report", |stage| stage.starts().len() == slots);
        stage
    }

    /// Starts a coordinator again that has ended.
    pub(crate) fn restart_coordinator(&mut self, index: usize) {
        self.coordinators[index] = ChildGuard::spawn(&mut self.coordinator(index));
    }

    /// Starts an agent again that has ended.
    pub(crate) fn restart_agent(&mut self, index: usize) {
        self.agents[index] = ChildGuard::spawn(&mut self.agent(index));
    }

    /// What an agent is called.
    #[must_use]
    pub(crate) fn node(index: usize) -> String {
        format!("node-{index}")
    }

    /// The job's status from the leader; `None` if no coordinator leads.
    #[must_use]
    pub(crate) fn status(&self) -> Option<GetStatusResponse> {
        self.ask(&self.addresses, async |client| client.status().await)
    }

    /// All nodes, likewise.
    #[must_use]
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let nodes = self.ask(&self.addresses, async |client| client.nodes().await);
        nodes.map(|answer| answer.nodes).unwrap_or_default()
    }

    /// Which coordinator leads, if one does.
    #[must_use]
    pub(crate) fn leader(&self) -> Option<usize> {
        (0..self.addresses.len()).find(|index| self.leads(*index).is_some())
    }

    /// What a coordinator answers by itself, if it leads.
    #[must_use]
    pub(crate) fn leads(&self, index: usize) -> Option<GetStatusResponse> {
        let one = &self.addresses[index..=index];
        self.runtime.block_on(async {
            let address = one[0].parse().expect("a port of the loopback is an address");
            let credentials = Credentials::default();
            let client = telltale_control_plane::reach::reach(&address, &credentials, ANSWER);
            let mut client = client.await.ok()?;
            tokio::time::timeout(ANSWER, client.status()).await.ok()?.ok()
        })
    }

    /// Nodes that the leader has heard itself.
    #[must_use]
    pub(crate) fn registered(&self) -> usize {
        self.nodes().iter().filter(|node| node.workers > 0).count()
    }

    /// The slot that a node holds, if it holds one.
    #[must_use]
    pub(crate) fn slot_of(&self, name: &str) -> Option<u32> {
        self.nodes().iter().find(|node| node.name == name)?.slot
    }

    /// Every start of a worker that there ever was.
    #[must_use]
    pub(crate) fn starts(&self) -> Vec<Start> {
        let text = fs::read_to_string(self.reported()).unwrap_or_default();
        let mut starts: Vec<Start> = text.lines().filter_map(start).collect();
        starts.sort();
        starts
    }

    /// How long it takes until this is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) -> Duration {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < TIMEOUT, "no {what} after {TIMEOUT:?}:\n{}", self.log());
            std::thread::sleep(LOOK);
        }
        start.elapsed()
    }

    /// Sees to it that this stays so for a while.
    pub(crate) fn throughout(
        &self,
        while_: Duration,
        what: &str,
        mut is_so: impl FnMut(&Self) -> bool,
    ) {
        let start = Instant::now();
        while start.elapsed() < while_ {
            assert!(is_so(self), "{what} is not so:\n{}", self.log());
            std::thread::sleep(LOOK * 10);
        }
    }

    /// What the processes have said.
    #[must_use]
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.scratch.join("log")).unwrap_or_default()
    }

    fn ask<Answer>(
        &self,
        addresses: &[String],
        call: impl AsyncFnMut(&mut Client) -> Result<Answer, CallError>,
    ) -> Option<Answer> {
        let addresses = addresses.iter().map(|address| address.parse().expect("an address"));
        let operator = Operator::new(addresses.collect(), Credentials::default(), ANSWER);
        self.runtime.block_on(operator.ask(call)).ok()
    }

    fn reported(&self) -> PathBuf {
        self.scratch.join("told")
    }

    fn coordinator(&self, index: usize) -> Command {
        let mut command = self.telltale("coordinator");
        command.args(["--job", "failover", "--no-http", "--listen", &self.addresses[index]]);
        command.args(["--nodes", &self.slots.to_string()]);
        match &self.etcd {
            Some(etcd) => {
                for member in etcd.addresses() {
                    command.args(["--etcd", &member]);
                }
            }
            None => {
                command.arg("--journal").arg(self.scratch.join("journal"));
            }
        }
        command
    }

    fn agent(&self, index: usize) -> Command {
        let name = Self::node(index);
        let mut command = self.telltale("agent");
        for address in &self.addresses {
            command.args(["--coordinator", address]);
        }
        command.args(["--address", "127.0.0.1", "--node", &name]);
        command.arg("--state").arg(self.scratch.join(&name));
        command.args(["--", "sh", "-c", WORKER]).env("TOLD", self.reported());
        command
    }

    fn telltale(&self, name: &str) -> Command {
        let log = OpenOptions::new().create(true).append(true).open(self.scratch.join("log"));
        let log = log.expect("a scratch directory can be written");
        let mut command = Command::new(&self.telltale);
        command.arg(name).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }
}

/// What a worker reported.
fn start(line: &str) -> Option<Start> {
    let mut words = line.split(' ');
    let rank = words.next()?.parse().ok()?;
    Some(Start { rank, epoch: words.next()?.parse().ok()?, process: words.next()?.parse().ok()? })
}

/// Ports of the loopback that are free at this moment.
fn free_addresses(count: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has free ports"))
        .collect();
    let address = |listener: &TcpListener| listener.local_addr().expect("a bound socket has one");
    listeners.iter().map(|listener| address(listener).to_string()).collect()
}
