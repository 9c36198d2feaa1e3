//! A job as it really runs: coordinators, agents and their workers, each a process of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use telltale_harness::{ChildGuard, EtcdCluster, ProcMount, Scratch, in_pid_namespace, wait_until};

/// How long anything may take on a machine that is busy with other tests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(240);

/// Ports that one job's rank 0 may use: no other job of this test program has them.
const PORTS_EACH: u16 = 32;
/// From here on there are so many blocks of ports.
const FIRST_PORT: u16 = 20_000;
const BLOCKS: u32 = 280;
/// What makes an unchanged PyTorch script report about its collectives.
const SHIM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../clients/python/autoload:",
    env!("CARGO_MANIFEST_DIR"),
    "/../../clients/python"
);
pub(crate) const TELLTALE: &str = env!("CARGO_BIN_EXE_telltale");
static JOBS: AtomicU32 = AtomicU32::new(0);

/// Coordinators with agents.
pub(crate) struct Job {
    scratch: Scratch,
    /// How many workers each node runs.
    workers: u32,
    /// Ports that rank 0 may use, if they are not this job's alone.
    ports: Option<(u16, u16)>,
    /// Lines of the coordinator's policy.
    policy: String,
    command: Vec<String>,
    /// What agents and workers find in their environment besides.
    environment: Vec<(&'static str, OsString)>,
    coordinators: Vec<ChildGuard>,
    agents: Vec<(String, ChildGuard)>,
}

impl Job {
    /// A job on `nodes` nodes of one worker each, whose coordinator acts by itself on suspicions and
    /// keeps a journal. `command` is what workers run; `STATE` in their environment is the job's
    /// directory.
    pub(crate) fn start(nodes: u32, command: &[&str]) -> Self {
        Self::of_workers(nodes, 1, command)
    }

    /// A job of two, whose nodes a and b are at work, with c as their spare.
    pub(crate) fn with_spare(command: &[&str]) -> Self {
        let mut job = Self::start(2, command);
        ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
        job.worker("a", 1, 0);
        job.worker("b", 1, 1);
        job.add("c", &[]);
        job.wait_connected("c");
        job
    }

    /// As `start` has it, with as many workers on each node.
    pub(crate) fn of_workers(nodes: u32, workers: u32, command: &[&str]) -> Self {
        let mut job = Self::new(command);
        job.workers = workers;
        let journal = format!("journal = \"{}\"\n", job.path("journal").display());
        job.add_coordinator(nodes, &journal);
        job
    }

    /// As `start` has it, with these lines in the coordinator's policy.
    pub(crate) fn with_policy(nodes: u32, command: &[&str], policy: &str) -> Self {
        let mut job = Self::new(command);
        job.policy = policy.to_owned();
        let journal = format!("journal = {:?}\n", job.path("journal"));
        job.add_coordinator(nodes, &journal);
        job
    }

    /// As `of_workers` has it, of nodes that may not be heard for a minute.
    pub(crate) fn unhurried(nodes: u32, workers: u32, command: &[&str]) -> Self {
        let mut job = Self::new(command);
        (job.workers, job.policy) = (workers, "keep_alive_seconds = 60.0\n".into());
        let journal = format!("journal = {:?}\n", job.path("journal"));
        job.add_coordinator(nodes, &journal);
        job
    }

    /// The same with the ports that rank 0 may use, which other jobs use as well.
    pub(crate) fn among_others(workers: u32, ports: (u16, u16), command: &[&str]) -> Self {
        let mut job = Self::new(command);
        (job.workers, job.ports) = (workers, Some(ports));
        // So many at once may keep an agent of a busy machine from being heard for seconds.
        job.policy = "keep_alive_seconds = 60.0\n".into();
        let journal = format!("journal = {:?}\n", job.path("journal"));
        job.add_coordinator(1, &journal);
        job
    }

    /// The same with a coordinator that asks for the token in the file `token`.
    pub(crate) fn with_token(nodes: u32, command: &[&str], token: &str) -> Self {
        let mut job = Self::new(command);
        job.set_token(token);
        let (journal, token) = (job.path("journal"), job.path("token"));
        job.add_coordinator(
            nodes,
            &format!("journal = {journal:?}\n[access]\ntoken_file = {token:?}\n"),
        );
        job
    }

    /// Writes another token into the file.
    pub(crate) fn set_token(&self, token: &str) {
        let path = self.path("token");
        fs::write(&path, token).expect("a scratch file");
        let owner_alone = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, owner_alone).expect("a scratch file");
    }

    /// A job with two coordinators, whose decisions are in etcd.
    pub(crate) fn with_etcd(nodes: u32, command: &[&str], etcd: &EtcdCluster) -> Self {
        let mut job = Self::new(command);
        for _ in 0..2 {
            job.add_coordinator(nodes, &format!("etcd = {:?}\n", etcd.addresses()));
        }
        job
    }

    fn new(command: &[&str]) -> Self {
        let scratch = Scratch::new();
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let environment = vec![
            ("STATE", scratch.path().into()),
            ("OMP_NUM_THREADS", "1".into()),
            ("PYTHONPATH", SHIM.into()),
        ];
        let (coordinators, agents) = (Vec::new(), Vec::new());
        let (ports, policy) = (None, String::new());
        Self { scratch, workers: 1, ports, policy, command, environment, coordinators, agents }
    }

    fn add_coordinator(&mut self, nodes: u32, store: &str) {
        let index = self.coordinators.len();
        let job = JOBS.fetch_add(1, Ordering::Relaxed) + std::process::id();
        let block = u16::try_from(job % BLOCKS).expect("there are fewer blocks than ports");
        let own = FIRST_PORT + block * PORTS_EACH;
        let (least, greatest) = self.ports.unwrap_or((own, own + PORTS_EACH - 1));
        let (address, workers, policy) =
            (self.coordinator_address(index), self.workers, &self.policy);
        let configuration = format!(
            "[job]\nname = \"test\"\nnodes = {nodes}\nworkers = {workers}\n\
             [listen]\ngrpc = [\"{address}\"]\nhttp = []\n\
             [store]\n{store}\
             [policy]\nmode = \"act\"\nleast_port = {least}\ngreatest_port = {greatest}\n{policy}"
        );
        let file = self.path(&format!("coordinator-{index}.toml"));
        fs::write(file, configuration).expect("a scratch file");
        let process = self.spawn_coordinator(index, &[]);
        self.coordinators.push(process);
    }

    fn spawn_coordinator(&self, index: usize, options: &[&str]) -> ChildGuard {
        let mut command = Command::new(TELLTALE);
        command.args(["coordinator", "--config"]);
        command.arg(self.path(&format!("coordinator-{index}.toml"))).args(options);
        command.args(end_with_this());
        let log = log(&self.path(&format!("coordinator-{index}.log")));
        ChildGuard::spawn(command.stdout(Stdio::null()).stderr(log))
    }

    fn coordinator_address(&self, index: usize) -> String {
        format!("unix:{}", self.path(&format!("coordinator-{index}.sock")).display())
    }

    /// Has agents that are added from now on, and their workers, find this in their environment.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.environment.push((name, value.into()));
    }

    /// Starts a node's agent.
    pub(crate) fn add(&mut self, node: &str, options: &[&str]) {
        self.add_by(&[], "127.0.0.1", node, &[&["--stop-grace", "2"], options].concat());
    }

    /// The same with no other time to stop than what `options` give.
    pub(crate) fn add_with(&mut self, node: &str, options: &[&str]) {
        self.add_by(&[], "127.0.0.1", node, options);
    }

    /// Starts a node's agent through another program, which becomes it; others reach it at `address`.
    pub(crate) fn add_by(&mut self, by: &[String], address: &str, node: &str, options: &[&str]) {
        let mut words = by.iter().map(String::as_str).chain([TELLTALE]);
        let mut command = Command::new(words.next().expect("the agent itself is always there"));
        command.args(words).arg("agent").args(end_with_this());
        self.spawn_agent(command, address, node, options);
    }

    /// Starts a node's agent as process 1 of a namespace, as a container does.
    pub(crate) fn add_as_process_1(&mut self, node: &str, options: &[&str]) {
        let mut command = in_pid_namespace(TELLTALE, ProcMount::Own);
        command.arg("agent");
        self.spawn_agent(command, "127.0.0.1", node, options);
    }

    fn spawn_agent(&mut self, mut command: Command, address: &str, node: &str, options: &[&str]) {
        command.args(["--node", node, "--address", address]);
        for index in 0..self.coordinators.len() {
            command.arg("--coordinator").arg(self.coordinator_address(index));
        }
        command.args(["--workers", &self.workers.to_string()]);
        command.arg("--state").arg(self.path(node)).args(options);
        command.arg("--").args(&self.command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let [output, log] = ["out", "log"].map(|kind| log(&self.path(&format!("{node}.{kind}"))));
        command.stdout(output).stderr(log);
        self.agents.push((node.to_owned(), ChildGuard::spawn(&mut command)));
    }

    /// Waits until a coordinator has welcomed a node.
    pub(crate) fn wait_connected(&self, node: &str) {
        wait_until(&format!("{node} to be there"), TIMEOUT, || {
            self.agent_log(node).contains("connected to the coordinator")
        });
    }

    /// Asks the coordinators as an operator does, the first one first.
    pub(crate) fn cluster(&self, arguments: &[&str]) -> Output {
        let addresses = (0..self.coordinators.len()).map(|index| self.coordinator_address(index));
        self.cluster_at(addresses, arguments)
    }

    /// The same of the coordinators in this order alone.
    pub(crate) fn cluster_of(&self, coordinators: &[usize], arguments: &[&str]) -> Output {
        let addresses = coordinators.iter().map(|index| self.coordinator_address(*index));
        self.cluster_at(addresses, arguments)
    }

    fn cluster_at(&self, at: impl Iterator<Item = String>, arguments: &[&str]) -> Output {
        let mut command = Command::new(TELLTALE);
        command.arg("cluster").args(arguments);
        at.for_each(|address| {
            command.args(["--coordinator", &address]);
        });
        command.output().expect("the program can be started")
    }

    /// What a coordinator answers, as JSON; null while none does.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let said = self.cluster(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&said.stdout).unwrap_or_default()
    }

    /// A path in the job's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// What rank `rank` has printed on `node` in `epoch`.
    pub(crate) fn printed(&self, node: &str, epoch: u64, rank: u32) -> String {
        let path = self.path(&format!("{node}/logs/epoch-{epoch}/{rank}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Waits until a rank has printed `wanted`.
    pub(crate) fn wait_printed(&self, node: &str, epoch: u64, rank: u32, wanted: &str) {
        let what = format!("rank {rank} on {node} to print {wanted:?} in epoch {epoch}");
        wait_until(&what, TIMEOUT, || self.printed(node, epoch, rank).contains(wanted));
    }

    /// The process that a rank has printed as `pid N`.
    pub(crate) fn worker(&self, node: &str, epoch: u64, rank: u32) -> Pid {
        self.wait_printed(node, epoch, rank, "pid ");
        let printed = self.printed(node, epoch, rank);
        let mut words = printed.split_whitespace().skip_while(|word| *word != "pid");
        let pid = words.nth(1).and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        pid.expect("a worker prints its number")
    }

    /// Waits until an agent ends by itself, and says how.
    pub(crate) fn wait_ended(&mut self, node: &str) -> ExitStatus {
        let at = self.agents.iter().position(|(name, _)| name == node).expect("it was added");
        self.agents.remove(at).1.wait_within(&format!("{node}'s agent to end"), TIMEOUT)
    }

    /// Kills an agent, and waits until nothing of it is left.
    pub(crate) fn kill_agent(&mut self, node: &str) {
        let at = self.agents.iter().position(|(name, _)| name == node).expect("it was added");
        self.agents.remove(at).1.kill();
    }

    /// Asks an agent to end, as `systemctl stop` does, and waits until it has.
    pub(crate) fn stop_agent(&mut self, node: &str) -> ExitStatus {
        let at = self.agents.iter().position(|(name, _)| name == node).expect("it was added");
        self.agents[at].1.terminate();
        self.wait_ended(node)
    }

    /// Asks several agents to end in the same moment, and waits until they have.
    pub(crate) fn stop_agents(&mut self, nodes: &[&str]) {
        let asked = self.agents.iter_mut().filter(|(name, _)| nodes.contains(&name.as_str()));
        asked.for_each(|(_, agent)| agent.terminate());
        nodes.iter().for_each(|node| {
            self.wait_ended(node);
        });
    }

    /// Kills a coordinator.
    pub(crate) fn kill_coordinator(&mut self, index: usize) {
        self.coordinators[index].kill();
    }

    /// Starts a coordinator again that was killed, as it was.
    pub(crate) fn restart_coordinator(&mut self, index: usize) {
        self.restart_coordinator_with(index, &[]);
    }

    /// The same, with these options.
    pub(crate) fn restart_coordinator_with(&mut self, index: usize, options: &[&str]) {
        self.coordinators[index] = self.spawn_coordinator(index, options);
    }

    /// Posts to an agent's own socket as an operator on its machine does: the answer, its headers too.
    pub(crate) fn post(&self, node: &str, path: &str) -> String {
        let socket = self.path(node).join("agent.sock");
        let mut stream = UnixStream::connect(socket).expect("the agent listens");
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: agent\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers, and closes");
        answer
    }

    /// An agent with everything that descends from it, itself first.
    pub(crate) fn tree(&self, node: &str) -> Vec<Pid> {
        let agent = self.agents.iter().find(|(name, _)| name == node).expect("it was added");
        let mut tree = vec![i32::try_from(agent.1.id()).expect("pid_t is signed")];
        let entries = fs::read_dir("/proc").expect("a list of processes").flatten();
        let parents: Vec<(i32, i32)> = entries.filter_map(|entry| parent(&entry.path())).collect();
        let mut next = 0;
        while let Some(of) = tree.get(next).copied() {
            tree.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
            next += 1;
        }
        tree.into_iter().filter_map(Pid::from_raw).collect()
    }

    /// What the coordinators know of a node; null while none answers.
    pub(crate) fn node(&self, node: &str) -> Value {
        let nodes = self.json(&["nodes"]);
        let mut nodes = nodes.as_array().into_iter().flatten();
        nodes.find(|one| one["name"] == node).cloned().unwrap_or_default()
    }

    /// What the coordinators have logged.
    pub(crate) fn coordinator_log(&self) -> String {
        let logs = (0..self.coordinators.len()).map(|index| format!("coordinator-{index}.log"));
        logs.filter_map(|name| fs::read_to_string(self.path(&name)).ok()).collect()
    }

    /// What an agent has passed on of its workers' output.
    pub(crate) fn agent_output(&self, node: &str) -> String {
        fs::read_to_string(self.path(&format!("{node}.out"))).unwrap_or_default()
    }

    /// What an agent has logged.
    pub(crate) fn agent_log(&self, node: &str) -> String {
        fs::read_to_string(self.path(&format!("{node}.log"))).unwrap_or_default()
    }

    /// Lets workers end that wait for `$STATE/finish`, and waits until every agent has.
    pub(crate) fn finish(self) {
        fs::write(self.path("finish"), "").expect("a scratch file");
        self.wait_finished();
    }

    /// Waits until every agent has ended, each because the job is finished.
    pub(crate) fn wait_finished(mut self) {
        for (node, agent) in &mut self.agents {
            let status = agent.wait_within(&format!("{node}'s agent to end"), TIMEOUT);
            assert!(status.success(), "{node}: {status}");
        }
    }
}

impl Drop for Job {
    /// What has happened, to find out why a test failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (node, _) in &self.agents {
                eprintln!("--- {node}\n{}", self.agent_log(node));
            }
            eprintln!("--- coordinators\n{}", self.coordinator_log());
        }
    }
}

pub(crate) fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("a worker that was not waited for can be signalled");
}

/// A process's number and its parent's, from its directory in /proc.
fn parent(directory: &Path) -> Option<(i32, i32)> {
    let pid = directory.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    Some((pid, stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?))
}

/// What the agent with this socket shows; nothing while it is not there.
pub(crate) fn metrics(socket: &Path) -> String {
    let mut text = String::new();
    if let Ok(mut stream) = UnixStream::connect(socket) {
        let request = "GET /metrics HTTP/1.1\r\nhost: agent\r\naccept: text/plain\r\n\
                       connection: close\r\n\r\n";
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_string(&mut text);
    }
    text
}

/// Has a process end with this one, even if this one is killed.
fn end_with_this() -> [String; 2] {
    ["--end-with-parent".to_owned(), std::process::id().to_string()]
}

fn log(path: &Path) -> File {
    let opened = File::options().create(true).append(true).open(path);
    opened.expect("a scratch file can be written")
}
