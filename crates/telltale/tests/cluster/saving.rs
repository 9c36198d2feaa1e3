//! What a script saves at `SIGTERM` is saved: its DataLoader's processes work until it has.

use std::fs;
use std::process::ExitStatus;

use telltale_harness::{long, rounds};

use crate::cluster::job::Job;
use crate::cluster::training::{PYTHON, turn};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/save.py");
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/terminal.py");
/// Ranks of the job, all on one node.
const RANKS: u32 = 2;
/// How long a script may take to save on a machine that is busy with other tests.
const GRACE: [&str; 2] = ["--stop-grace", "25"];

/// How the script is run: by itself, and behind what ends at `SIGTERM` and passes nothing on. `SCRIPT` is its
/// command line.
const WAYS: [&str; 5] = [
    "SCRIPT; true",
    "exec sh -c 'SCRIPT; echo done'",
    "exec SCRIPT",
    "SCRIPT 2>&1 | tee $STATE/log-$RANK",
    "exec python3 -c 'import subprocess, sys; subprocess.run(sys.argv[1:])' SCRIPT",
];

/// How the script is run in each epoch of a test, which stops it so often. Where tests are short, the rarer ways
/// are left to one of them.
fn ways(short: usize) -> Vec<&'static str> {
    let count = if long() { 20 } else { short };
    WAYS.into_iter().cycle().take(count).collect()
}

/// A job on one node whose ranks save at `SIGTERM`.
fn job() -> Job {
    Job::of_workers(1, RANKS, &["bash", "-c", ". $STATE/run.sh"])
}

/// Has ranks run the script like this from the next epoch on.
fn run(job: &Job, way: &str) {
    let script = format!("{PYTHON} -u {SCRIPT}");
    // Processes of a DataLoader that are killed leave their sockets.
    let way = format!("export TMPDIR=$STATE; {way}");
    let text = way.replace("SCRIPT", &script).replace("python3 -c", &format!("{PYTHON} -c"));
    fs::write(job.path("run.sh"), text).expect("a scratch file");
}

/// Waits until an epoch's ranks train, and says from which step and state on.
fn training(job: &Job, node: &str, epoch: u64) -> String {
    for rank in 0..RANKS {
        job.wait_printed(node, epoch, rank, "\nstep ");
    }
    resumed(&job.printed(node, epoch, 0))
}

fn resumed(printed: &str) -> String {
    let line = printed.split("resumes from ").nth(1).and_then(|rest| rest.lines().next());
    line.expect("the script says where it is").to_owned()
}

fn step(state: &str) -> usize {
    state.split(' ').next().and_then(|step| step.parse().ok()).expect("a number")
}

/// Each rank of an epoch that was stopped has saved its last step, and nothing is left half written. Returns what
/// was saved.
#[track_caller]
fn assert_saved(job: &Job, node: &str, epoch: u64, way: &str) -> String {
    let mut saved = Vec::new();
    for rank in 0..RANKS {
        job.wait_printed(node, epoch, rank, "\nsaved ");
        let printed = job.printed(node, epoch, rank);
        let steps = printed.matches("\nstep ").count();
        let last = printed.lines().last().and_then(|line| line.strip_prefix("saved "));
        let last = last.unwrap_or_else(|| panic!("{way}: {printed}"));
        assert_eq!(
            step(last),
            step(&resumed(&printed)) + steps + 1,
            "{way}, {node}, epoch {epoch}, rank {rank}: {printed}"
        );
        saved.push(last.to_owned());
    }
    assert_eq!(saved[0], saved[1], "{way}: both stop at one step, with one state");
    assert!(!job.path("checkpoint.pt.new").exists(), "{way}: nothing is half written");
    saved.swap_remove(0)
}

#[test]
fn what_a_worker_prints_last_is_in_its_log_when_the_agent_has_ended() {
    // More than is on its way at a time.
    const LINES: usize = 100_000;
    for _ in 0..rounds(3, 30) {
        let mut job = Job::start(1, &["seq", &LINES.to_string()]);
        job.add("a", &[]);
        assert!(job.wait_ended("a").success());
        assert_eq!(job.printed("a", 1, 0).lines().count(), LINES);
    }
}

#[test]
fn a_restart_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::a_restart") else { return };
    let mut job = job();
    let ways = ways(WAYS.len());
    run(&job, ways[0]);
    job.add_with("a", &GRACE);
    training(&job, "a", 1);
    for (epoch, way) in (1..).zip(&ways) {
        run(&job, ways.get(usize::try_from(epoch).expect("a few")).unwrap_or(&WAYS[0]));
        assert!(job.cluster(&["restart"]).status.success());
        let saved = assert_saved(&job, "a", epoch, way);
        assert_eq!(training(&job, "a", epoch + 1), saved, "{way}: nothing is lost");
    }
}

#[test]
fn a_drain_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::a_drain") else { return };
    let mut job = job();
    let ways = ways(2);
    run(&job, ways[0]);
    job.add_with("a", &GRACE);
    training(&job, "a", 1);
    job.add_with("b", &GRACE);
    job.wait_connected("b");
    let nodes = ["a", "b"];
    for (epoch, way) in (1..).zip(&ways) {
        let [leaves, comes] = if epoch % 2 == 1 { nodes } else { [nodes[1], nodes[0]] };
        run(&job, ways.get(usize::try_from(epoch).expect("a few")).unwrap_or(&WAYS[0]));
        let drained = job.cluster(&["drain", leaves]);
        assert!(drained.status.success(), "{drained:?}");
        let saved = assert_saved(&job, leaves, epoch, way);
        assert_eq!(training(&job, comes, epoch + 1), saved, "{way}: nothing is lost");
        assert!(job.cluster(&["readmit", leaves]).status.success());
    }
}

#[test]
fn a_ctrl_c_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::a_ctrl_c") else { return };
    let key = |job: &Job| job.path("ctrl-c");
    each_life_saves(
        |job| {
            let by = [PYTHON, TERMINAL, &key(job).display().to_string()].map(str::to_owned);
            job.add_by(&by, "127.0.0.1", "a", &GRACE);
        },
        |job| {
            fs::write(key(job), "").expect("a scratch file");
            job.wait_ended("a")
        },
    );
}

#[test]
fn the_agent_s_end_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::the_agent_s_end") else { return };
    each_life_saves(|job| job.add_with("a", &GRACE), |job| job.stop_agent("a"));
}

/// Starts an agent and has it end, once for each way: scripts go on where they were.
#[track_caller]
fn each_life_saves(start: impl Fn(&mut Job), end: impl Fn(&mut Job) -> ExitStatus) {
    let mut job = job();
    let mut saved = None;
    for (epoch, way) in (1..).zip(ways(2)) {
        run(&job, way);
        start(&mut job);
        let resumed = training(&job, "a", epoch);
        assert_eq!(saved.unwrap_or(resumed.clone()), resumed, "nothing is lost");
        let status = end(&mut job);
        assert_eq!(status.code(), Some(0), "{way}: {}", job.agent_log("a"));
        saved = Some(assert_saved(&job, "a", epoch, way));
    }
}
