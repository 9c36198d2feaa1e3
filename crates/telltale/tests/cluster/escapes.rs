//! What a worker has started in sessions of its own and with a clean environment does not outlive it.

use std::fs;

use rustix::process::Signal;
use telltale_harness::wait_until;

use crate::job::{Job, PATIENCE, signal};

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
    wait_until("what has escaped to be noted", PATIENCE, || {
        let noted = fs::read_to_string(&note).unwrap_or_default();
        pids.iter().all(|pid| noted.contains(&format!(" {pid} ")))
    });
    job.kill_agent("a");
    wait_until("all of it to be gone", PATIENCE, || left(&pids).is_empty());
}

#[test]
fn a_running_worker_keeps_what_it_has_started_when_another_ends() {
    // Rank 1 ends as one that has finished, so the epoch goes on.
    let finishes = WORKER.replace("exit 3", "exit 0");
    let mut job = Job::of_workers(1, 2, &["bash", "-c", &finishes]);
    job.add("a", &[]);
    let [stays, goes] = [0, 1].map(|rank| started(&job, 1, rank));
    fs::write(job.path("leave-1-1"), "").expect("a scratch file");
    wait_until("its end", PATIENCE, || {
        job.agent_log("a").contains("worker 1 ended with exit code 0")
    });
    assert_eq!(left(&stays), stays);
    signal(job.worker("a", 1, 0), Signal::KILL);
    job.worker("a", 2, 0);
    assert_eq!(left(&[stays, goes].concat()), [0; 0]);
    job.stop_agent("a");
}
