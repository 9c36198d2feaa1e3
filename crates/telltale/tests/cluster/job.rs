//! A job as it really runs: a coordinator, agents and their workers, each a process of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use telltale_harness::{ChildGuard, Scratch, wait_until};

/// How long anything may take on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Ports that one job's rank 0 may use: no other job of this test program has them.
const PORTS_EACH: u16 = 32;
/// From here on there are so many blocks of ports.
const FIRST_PORT: u16 = 20_000;
const BLOCKS: u32 = 390;
/// What makes an unchanged PyTorch script tell of its collectives.
const SHIM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../clients/python/autoload:",
    env!("CARGO_MANIFEST_DIR"),
    "/../../clients/python"
);
static JOBS: AtomicU32 = AtomicU32::new(0);

/// A coordinator with agents.
pub(crate) struct Job {
    scratch: Scratch,
    command: Vec<String>,
    coordinator: ChildGuard,
    agents: Vec<(String, ChildGuard)>,
}

impl Job {
    /// A job on `nodes` nodes of one worker each, whose coordinator acts by itself on suspicions.
    /// `command` is what workers run; `STATE` in their environment is the job's directory.
    pub(crate) fn start(nodes: u32, command: &[&str]) -> Self {
        let scratch = Scratch::new();
        let place = scratch.path().display();
        let number = JOBS.fetch_add(1, Ordering::Relaxed) + std::process::id();
        let block = u16::try_from(number % BLOCKS).expect("there are fewer blocks than ports");
        let least = FIRST_PORT + block * PORTS_EACH;
        let greatest = least + PORTS_EACH - 1;
        let configuration = format!(
            "[job]\nname = \"test\"\nnodes = {nodes}\n\
             [listen]\ngrpc = [\"unix:{place}/coordinator.sock\"]\nhttp = []\n\
             [store]\njournal = \"{place}/journal\"\n\
             [policy]\nmode = \"act\"\nleast_port = {least}\ngreatest_port = {greatest}\n"
        );
        fs::write(scratch.join("coordinator.toml"), configuration).expect("a scratch file");
        let coordinator = coordinator(&scratch);
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Self { scratch, command, coordinator, agents: Vec::new() }
    }

    /// Starts a node's agent.
    pub(crate) fn add(&mut self, node: &str, options: &[&str]) {
        let coordinator = format!("unix:{}", self.path("coordinator.sock").display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
        command.args(["agent", "--coordinator", &coordinator, "--node", node]);
        command.args(["--address", "127.0.0.1", "--stop-grace", "2", "--state"]);
        command.arg(self.path(node)).args(options).arg("--").args(&self.command);
        command.env("STATE", self.scratch.path()).env("OMP_NUM_THREADS", "1");
        command.env("PYTHONPATH", SHIM);
        command.stdout(Stdio::null()).stderr(log(&self.path(&format!("{node}.log"))));
        self.agents.push((node.to_owned(), ChildGuard::spawn(&mut command)));
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
        wait_until(&what, PATIENCE, || self.printed(node, epoch, rank).contains(wanted));
    }

    /// The process that a rank has printed as `pid N`.
    pub(crate) fn worker(&self, node: &str, epoch: u64, rank: u32) -> Pid {
        self.wait_printed(node, epoch, rank, "pid ");
        let printed = self.printed(node, epoch, rank);
        let mut words = printed.split_whitespace().skip_while(|word| *word != "pid");
        let pid = words.nth(1).and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        pid.expect("a worker prints its number")
    }

    /// Kills an agent, and waits until nothing of it is left.
    pub(crate) fn kill_agent(&mut self, node: &str) {
        let at = self.agents.iter().position(|(name, _)| name == node).expect("it was added");
        self.agents.remove(at).1.kill();
    }

    /// Kills the coordinator and starts it again, as it was.
    pub(crate) fn restart_coordinator(&mut self) {
        self.coordinator.kill();
        self.coordinator = coordinator(&self.scratch);
    }

    /// What the coordinator has logged.
    pub(crate) fn coordinator_log(&self) -> String {
        fs::read_to_string(self.path("coordinator.log")).unwrap_or_default()
    }

    /// Waits until every agent has ended, each because the job is finished.
    pub(crate) fn wait_finished(mut self) {
        for (node, agent) in &mut self.agents {
            let status = agent.wait_within(&format!("{node}'s agent to end"), PATIENCE);
            assert!(status.success(), "{node}: {status}");
        }
    }
}

impl Drop for Job {
    /// What has happened, for whoever has to find out why a test failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let names = self.agents.iter().map(|(node, _)| node.as_str());
            for name in names.chain(["coordinator"]) {
                let log = fs::read_to_string(self.path(&format!("{name}.log")));
                eprintln!("--- {name}\n{}", log.unwrap_or_default());
            }
        }
    }
}

pub(crate) fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("a worker that was not waited for can be signalled");
}

fn coordinator(scratch: &Scratch) -> ChildGuard {
    let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
    command.arg("coordinator").arg("--config").arg(scratch.join("coordinator.toml"));
    command.stdout(Stdio::null()).stderr(log(&scratch.join("coordinator.log")));
    ChildGuard::spawn(&mut command)
}

fn log(path: &Path) -> File {
    let opened = File::options().create(true).append(true).open(path);
    opened.expect("a scratch file can be written")
}
