//! An unchanged PyTorch script on four nodes, with Gloo, and what it must come to.

use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::{Pid, test_kill_process};
use telltale_harness::{ChildGuard, EtcdCluster, Scratch, skip};

use crate::cluster::job::{Job, TIMEOUT};

pub(crate) const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/train.py");
/// The nodes that hold the ranks in the first epoch, in their order.
pub(crate) const NODES: [&str; 4] = ["a", "b", "c", "d"];
/// A step in which there is a checkpoint.
pub(crate) const CHECKPOINTED: u32 = 10;

/// One job at a time: four processes import PyTorch, which takes two cores some seconds.
static TURN: Mutex<()> = Mutex::new(());

/// Asked once, for it takes a second or more.
static HAS_TORCH: LazyLock<bool> = LazyLock::new(|| {
    let asked = Command::new(PYTHON).args(["-c", "import torch.distributed"]).output();
    asked.is_ok_and(|output| output.status.success())
});

/// A training, alone on the machine as far as this test program goes.
pub(crate) struct Training {
    pub(crate) job: Job,
    _turn: MutexGuard<'static, ()>,
}

impl Training {
    /// A training without nodes yet; nothing where there is no PyTorch.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let turn = turn(test)?;
        Some(Self { job: Job::start(4, &[PYTHON, SCRIPT]), _turn: turn })
    }

    /// The same with two coordinators and etcd.
    pub(crate) fn with_etcd(test: &str, etcd: &EtcdCluster) -> Option<Self> {
        let turn = turn(test)?;
        Some(Self { job: Job::with_etcd(4, &[PYTHON, SCRIPT], etcd), _turn: turn })
    }

    /// A training on four nodes that has a checkpoint.
    pub(crate) fn under_way(test: &str) -> Option<Self> {
        let mut training = Self::new(test)?;
        training.add_nodes(&[]);
        training.wait_checkpoint();
        Some(training)
    }

    /// Starts the agents of the four nodes.
    pub(crate) fn add_nodes(&mut self, options: &[&str]) {
        NODES.into_iter().for_each(|node| self.job.add(node, options));
    }

    /// Waits until there is a checkpoint.
    pub(crate) fn wait_checkpoint(&self) {
        self.wait_step(CHECKPOINTED);
    }

    /// Waits until rank 0 has done a step in the first epoch.
    pub(crate) fn wait_step(&self, step: u32) {
        self.job.wait_printed("a", 1, 0, &format!("step {step} "));
    }

    /// How many steps rank 0 has done in the first epoch.
    pub(crate) fn steps(&self) -> u32 {
        let count = self.job.printed("a", 1, 0).matches("\nstep ").count();
        u32::try_from(count).expect("a few steps")
    }

    /// The four workers of the first epoch.
    pub(crate) fn workers(&self) -> Vec<Pid> {
        let ranks = (0..).zip(NODES);
        ranks.map(|(rank, node)| self.job.worker(node, 1, rank)).collect()
    }

    /// Whether the first epoch runs on, with the same workers, and nothing was found wrong.
    #[track_caller]
    pub(crate) fn assert_undisturbed(&self) {
        let running = self.workers().into_iter().filter(|pid| test_kill_process(*pid).is_ok());
        assert_eq!(running.count(), NODES.len(), "every worker of the first epoch runs");
        let log = self.job.coordinator_log();
        assert!(!log.contains("incident"), "{log}");
    }

    /// Waits until a rank trains again in an epoch: says from which step it goes on.
    pub(crate) fn resumed_from(&self, node: &str, epoch: u64, rank: u32) -> u32 {
        self.job.wait_printed(node, epoch, rank, "\nstep ");
        let printed = self.job.printed(node, epoch, rank);
        let words = printed.split("resumes from ").nth(1).and_then(|rest| rest.split('\n').next());
        let step: u32 =
            words.and_then(|step| step.parse().ok()).expect("the script says where it is");
        assert!(step >= CHECKPOINTED && step.is_multiple_of(5), "{node} goes on from {step}");
        step
    }

    /// Waits for the end: weights and loss must be those of a training that nothing happened to.
    pub(crate) fn assert_ends_as_undisturbed(&self, epoch: u64) {
        self.job.wait_printed("a", epoch, 0, " loss ");
        let printed = self.job.printed("a", epoch, 0);
        assert_eq!(weights(&printed), undisturbed(), "nothing is lost by it");
    }
}

/// Waits until no other test has PyTorch at work; nothing where there is none.
pub(crate) fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
    if !*HAS_TORCH {
        skip(test, "needs PyTorch for /usr/bin/python3 (Debian: python3-torch)");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

fn weights(printed: &str) -> &str {
    printed.lines().find(|line| line.starts_with("weights ")).expect("the script ends with them")
}

/// The last line of the script without supervision and nothing happens to it.
fn undisturbed() -> &'static str {
    static LINE: OnceLock<String> = OnceLock::new();
    LINE.get_or_init(|| {
        let scratch = Scratch::new();
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let port = port.expect("the loopback has a free port").port().to_string();
        let ranks: Vec<ChildGuard> = (0..NODES.len())
            .map(|rank| {
                let mut command = Command::new(PYTHON);
                command.arg(SCRIPT).env("STATE", scratch.path()).env("OMP_NUM_THREADS", "1");
                command.env("REST", "0").env("RANK", rank.to_string());
                command.env("WORLD_SIZE", NODES.len().to_string());
                command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", &port);
                let output = std::fs::File::create(scratch.join(rank.to_string()));
                command.stdout(output.expect("a scratch file")).stderr(Stdio::inherit());
                ChildGuard::spawn(&mut command)
            })
            .collect();
        for mut rank in ranks {
            let status = rank.wait_within("a training without agents to end", TIMEOUT);
            assert!(status.success(), "{status}");
        }
        let printed = std::fs::read_to_string(scratch.join("0")).expect("what rank 0 printed");
        weights(&printed).to_owned()
    })
}
