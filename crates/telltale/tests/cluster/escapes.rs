//! What a worker has started in sessions of its own and with a clean environment does not outlive it.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use telltale_harness::{needs_pid_namespaces, wait_until};

use crate::cluster::job::{Job, TIMEOUT, signal};
use crate::cluster::training::PYTHON;

/// A worker that starts what neither a session nor the environment gives away: one as its child, one
/// whose parent has gone, and one that ignores `SIGTERM`. `THEN` is what it does then.
const WORKER: &str = "\
daemon='echo $$ > $0; exec sleep 600'
deaf='trap \"\" TERM; echo $$ > $0; while :; do sleep 1; done'
place=$STATE/epoch-$TELLTALE_EPOCH-$RANK
setsid env -i PATH=$PATH bash -c \"$daemon\" $place-child > /dev/null 2>&1 &
(setsid env -i PATH=$PATH bash -c \"$daemon\" $place-orphan > /dev/null 2>&1 &)
(setsid env -i PATH=$PATH bash -c \"$deaf\" $place-deaf > /dev/null 2>&1 &)
while ! test -s $place-child -a -s $place-orphan -a -s $place-deaf; do sleep 0.01; done
echo pid $$
while ! test -e $STATE/leave-$TELLTALE_EPOCH-$RANK; do sleep 0.01; done
exit 3
";
const KINDS: [&str; 3] = ["child", "orphan", "deaf"];

fn job(workers: u32) -> Job {
    let mut job = Job::of_workers(1, workers, &["bash", "-c", WORKER]);
    job.add("a", &[]);
    job
}

/// What a rank's worker has started, once it has printed its number.
fn started(job: &Job, epoch: u64, rank: u32) -> Vec<u32> {
    job.worker("a", epoch, rank);
    let pid = |kind: &str| {
        let path = job.path(&format!("epoch-{epoch}-{rank}-{kind}"));
        let text = fs::read_to_string(path).expect("the worker waits for it");
        text.trim().parse().expect("a number")
    };
    let pids: Vec<u32> = KINDS.into_iter().map(pid).collect();
    assert_eq!(left(&pids), pids, "all of them run");
    pids
}

/// Which of these processes are there.
fn left(pids: &[u32]) -> Vec<u32> {
    let is_there = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    pids.iter().copied().filter(is_there).collect()
}

#[test]
fn nothing_outlives_a_restart_or_the_agent_s_end() {
    let mut job = job(1);
    let first = started(&job, 1, 0);
    assert!(job.cluster(&["restart"]).status.success());
    let second = started(&job, 2, 0);
    assert_eq!(left(&first), [0; 0], "the next epoch begins when nothing is left");
    job.stop_agent("a");
    assert_eq!(left(&second), [0; 0], "the agent ends when nothing is left");
}

#[test]
fn nothing_outlives_a_worker_that_ends_by_itself() {
    let mut job = job(2);
    let first = [started(&job, 1, 0), started(&job, 1, 1)].concat();
    fs::write(job.path("leave-1-1"), "").expect("a scratch file");
    job.worker("a", 2, 0);
    assert_eq!(left(&first), [0; 0], "the next epoch begins when nothing is left");
    job.stop_agent("a");
}

#[test]
fn nothing_outlives_an_agent_that_is_killed() {
    let mut job = job(1);
    let pids = started(&job, 1, 0);
    let note = job.path("a").join("workers.strays");
    wait_until("what has escaped to be noted", TIMEOUT, || {
        let noted = fs::read_to_string(&note).unwrap_or_default();
        pids.iter().all(|pid| noted.contains(&format!(" {pid} ")))
    });
    job.kill_agent("a");
    wait_until("all of it to be gone", TIMEOUT, || left(&pids).is_empty());
}

#[test]
fn a_running_worker_keeps_what_it_has_started_when_another_ends() {
    // Rank 1 ends as one that has finished, so the epoch goes on.
    let finishes = WORKER.replace("exit 3", "exit 0");
    let mut job = Job::of_workers(1, 2, &["bash", "-c", &finishes]);
    job.add("a", &[]);
    let [stays, goes] = [0, 1].map(|rank| started(&job, 1, rank));
    fs::write(job.path("leave-1-1"), "").expect("a scratch file");
    wait_until("its end", TIMEOUT, || job.agent_log("a").contains("rank 1 ended with exit code 0"));
    assert_eq!(left(&stays), stays);
    signal(job.worker("a", 1, 0), Signal::KILL);
    job.worker("a", 2, 0);
    assert_eq!(left(&[stays, goes].concat()), [0; 0]);
    job.stop_agent("a");
}

/// A process that a test started through another, and ends with it.
struct Bystander(Pid);

impl Bystander {
    /// The one that writes its number into this file.
    fn of(path: &Path) -> Self {
        let mut pid = None;
        wait_until("a bystander to be there", TIMEOUT, || {
            pid = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
            pid.is_some()
        });
        Self(pid.and_then(Pid::from_raw).expect("a process has such a number"))
    }

    fn is_there(&self) -> bool {
        let pid = self.0.as_raw_nonzero().get();
        left(&[pid.try_into().expect("a number")]).len() == 1
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }
}

/// Becomes what is given behind it, and has started a process of its own before. That starts another one
/// whenever a file asks for it, whose parent ends at once.
const BECOMES: &str = "\
setsid bash -c '
    echo $$ > $STATE/sidecar
    while sleep 0.05; do
        test -e $STATE/spawn || continue
        rm $STATE/spawn
        (setsid bash -c \"echo \\$\\$ > $STATE/daemon; exec sleep 600\" &)
    done' > /dev/null 2>&1 &
exec \"$@\"";

#[test]
fn what_ran_before_the_agent_is_nobody_s_leftover() {
    let mut job = Job::start(1, &["bash", "-c", WORKER]);
    let by = ["bash", "-c", BECOMES, "bash"].map(str::to_owned);
    job.add_by(&by, "127.0.0.1", "a", &["--stop-grace", "2"]);
    let sidecar = Bystander::of(&job.path("sidecar"));
    let first = started(&job, 1, 0);
    fs::write(job.path("spawn"), "").expect("a scratch file");
    let daemon = Bystander::of(&job.path("daemon"));
    assert!(job.cluster(&["restart"]).status.success());
    let second = started(&job, 2, 0);
    assert_eq!(left(&first), [0; 0], "what workers start is cleared away");
    assert!(sidecar.is_there() && daemon.is_there(), "nothing else is");
    // Long enough for the guard to note what it takes for the workers'.
    let note = job.path("a").join("workers.strays");
    wait_until("what has escaped to be noted", TIMEOUT, || {
        let noted = fs::read_to_string(&note).unwrap_or_default();
        second.iter().all(|pid| noted.contains(&format!(" {pid} ")))
    });
    job.kill_agent("a");
    wait_until("all of it to be gone", TIMEOUT, || left(&second).is_empty());
    assert!(sidecar.is_there() && daemon.is_there(), "the guard takes neither for a worker's");
}

/// The number by which this namespace knows a process of an agent that is process 1 of another.
fn outer(job: &Job, inner: u32) -> u32 {
    let tree = job.tree("a").into_iter().map(|pid| pid.as_raw_nonzero().get());
    let mut found = tree.filter(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.and_then(|numbers| numbers.split_whitespace().nth(1)) == Some(&inner.to_string())
    });
    let pid = found.next().expect("all of the namespace descends from its first process");
    pid.try_into().expect("a number")
}

#[test]
fn nothing_outlives_a_restart_where_the_agent_is_process_1() {
    if !needs_pid_namespaces("cluster::escapes::process_1") {
        return;
    }
    // The numbers that workers write are of the namespace.
    let of = |job: &Job, epoch| {
        job.worker("a", epoch, 0);
        let pid = |kind: &str| {
            let text = fs::read_to_string(job.path(&format!("epoch-{epoch}-0-{kind}")));
            let inner = text.expect("the worker waits for it").trim().parse();
            outer(job, inner.expect("a number"))
        };
        KINDS.map(pid)
    };
    let mut job = Job::start(1, &["bash", "-c", WORKER]);
    job.add_as_process_1("a", &["--stop-grace", "2"]);
    let first = of(&job, 1);
    let process_1 = job.tree("a")[1];
    // As `kubectl exec` does: an orphan there is no worker's.
    let mut enters = Command::new("nsenter");
    enters.args(["--target", &process_1.to_string(), "--pid", "--mount", "bash", "-c"]);
    enters.arg("(setsid sh -c 'echo $$ > $0; exec sleep 600' $0 > /dev/null 2>&1 &)");
    let path = job.path("entered");
    assert!(enters.arg(&path).status().expect("nsenter is there").success());
    wait_until("the orphan", TIMEOUT, || path.metadata().is_ok_and(|file| file.len() > 0));
    let entered = fs::read_to_string(&path).expect("it was waited for");
    let entered = outer(&job, entered.trim().parse().expect("a number"));
    assert!(job.cluster(&["restart"]).status.success());
    let second = of(&job, 2);
    assert_eq!(left(&first), [0; 0], "the next epoch begins when nothing is left");
    assert_eq!(left(&[entered]), [entered], "it is no worker's");
    // The signal is passed on, and so is how the agent ends.
    signal(process_1, Signal::TERM);
    let status = job.wait_ended("a");
    assert_eq!(status.code(), Some(0), "{}", job.agent_log("a"));
    assert_eq!(left(&second), [0; 0], "the namespace ends with its first process");
}

/// A process that ends as soon as it has started the next one, repeatedly.
const CHAIN: &str = "\
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    open(os.environ['STATE'] + '/chain', 'w').close()
    while True:
        time.sleep(0.003)
        if os.fork():
            os._exit(0)
print('pid', os.getpid(), flush=True)
signal.pause()
";

#[test]
fn a_chain_of_processes_does_not_outlive_the_agent_s_end() {
    let mut job = Job::start(1, &[PYTHON, "-c", CHAIN]);
    job.add("a", &[]);
    let worker = job.worker("a", 1, 0).as_raw_nonzero().get().to_string();
    wait_until("the chain", TIMEOUT, || job.path("chain").exists());
    // Whatever its number is, it is of the worker's session.
    let is_there = || {
        let entries = fs::read_dir("/proc").expect("a list of processes").flatten();
        let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        let mut sessions = stats.filter_map(|stat| {
            let mut fields = stat.rsplit(") ").next()?.split(' ').map(str::to_owned);
            (fields.next()? != "Z").then_some(fields.nth(2)?)
        });
        sessions.any(|session| session == worker)
    };
    job.stop_agent("a");
    // It is missed by a check of a time.
    for _ in 0..50 {
        assert!(!is_there(), "the chain goes on");
    }
}
