//! Jobs that start together on one machine, with the same ports to choose from: none meets another.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use telltale_harness::{Scratch, rounds, wait_until};

use crate::cluster::job::{Job, TIMEOUT};
use crate::cluster::training::{PYTHON, turn};

/// The ports that jobs have by default.
const PORTS: (u16, u16) = (29_500, 30_499);
const JOBS: u32 = 10;
/// Where the ranks of all jobs see each other.
const ROUND: &str = "TELLTALE_TEST_ROUND";
/// How many jobs there are, and which this is.
const COUNT: &str = "TELLTALE_TEST_JOBS";
const OWN: &str = "TELLTALE_TEST_JOB";
/// PyTorch's ranks tell each other which job they are of, once those of all jobs have received their ports: one that
/// has ended leaves its port to others.
const ASKS_ROUND: &str = "\
import os, time, torch.distributed as dist
own = os.environ['TELLTALE_TEST_JOB']
here = os.environ['TELLTALE_TEST_ROUND']
open(os.path.join(here, own + '-' + os.environ['RANK']), 'w').close()
while len(os.listdir(here)) < int(os.environ['TELLTALE_TEST_JOBS']) * 2:
    time.sleep(0.01)
dist.init_process_group('gloo')
told = [None] * dist.get_world_size()
dist.all_gather_object(told, own)
assert told == [own, own], told
dist.barrier()
print('port', os.environ['MASTER_PORT'], flush=True)
";

fn variable(name: &str) -> String {
    std::env::var(name).expect("the test sets it")
}

/// What a rank runs in [`small_jobs_never_meet`]; by itself it is nothing. Rank 0 takes its port only when
/// those of all jobs have received theirs, as if it had imported much.
#[test]
fn a_rank_for_the_tests_beside() {
    let Some(round) = std::env::var_os(ROUND).map(PathBuf::from) else { return };
    let own = variable(OWN);
    let count: usize = variable(COUNT).parse().expect("a number");
    let port: u16 = variable("MASTER_PORT").parse().expect("a port");
    if variable("RANK") == "0" {
        fs::write(round.join(&own), "").expect("a scratch file");
        wait_until("every job's rank 0", TIMEOUT, || entries(&round) == count);
        let store = TcpListener::bind(("0.0.0.0", port)).expect("the port is this rank's");
        let (mut rank, _) = store.accept().expect("the other rank comes");
        assert_eq!(exchange(&mut rank, &own), own);
    } else {
        let mut store = None;
        wait_until("rank 0 to listen", TIMEOUT, || {
            store = TcpStream::connect(("127.0.0.1", port)).ok();
            store.is_some()
        });
        assert_eq!(exchange(&mut store.expect("it was waited for"), &own), own);
    }
    println!("port {port}");
}

/// Tells the other end which job this is of, and returns what it says.
fn exchange(stream: &mut TcpStream, own: &str) -> String {
    stream.write_all(own.as_bytes()).expect("the other rank reads");
    stream.shutdown(std::net::Shutdown::Write).expect("a connection");
    let mut reported = String::new();
    stream.read_to_string(&mut reported).expect("the other rank tells");
    reported
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).expect("a scratch directory").count()
}

/// Starts so many jobs of two ranks at once; each must finish in its first epoch, at a port of its own.
fn start_together(count: u32, command: &[&str]) {
    let round = Scratch::new();
    let mut jobs: Vec<Job> = (0..count).map(|_| Job::among_others(2, PORTS, command)).collect();
    for (number, job) in (0..).zip(&mut jobs) {
        let number: u32 = number;
        job.set(ROUND, &round.path().display().to_string());
        job.set(COUNT, &count.to_string());
        job.set(OWN, &number.to_string());
        job.add("a", &[]);
    }
    let mut taken = BTreeSet::new();
    for job in &mut jobs {
        let status = job.wait_ended("a");
        let log = job.agent_log("a");
        assert!(status.success(), "{status}: {log}\n{}", job.printed("a", 1, 0));
        assert!(!log.contains("epoch 2:"), "{log}\n{}", job.coordinator_log());
        let ports: BTreeSet<String> = [0, 1].map(|rank| port(&job.printed("a", 1, rank))).into();
        assert_eq!(ports.len(), 1, "both ranks have one port");
        taken.extend(ports);
    }
    assert_eq!(taken.len(), jobs.len(), "no two jobs have one port: {taken:?}");
}

fn port(printed: &str) -> String {
    let line = printed.lines().find(|line| line.starts_with("port "));
    line.unwrap_or_else(|| panic!("no port: {printed}")).to_owned()
}

#[test]
fn small_jobs_never_meet() {
    let program = std::env::current_exe().expect("this program");
    let program = program.display().to_string();
    let test = "cluster::neighbours::a_rank_for_the_tests_beside";
    for _ in 0..rounds(2, 100) {
        start_together(JOBS, &[&program, "--exact", test, "--nocapture"]);
    }
}

#[test]
fn pytorch_s_jobs_never_meet() {
    let Some(_turn) = turn("cluster::neighbours::pytorch") else { return };
    let scratch = Scratch::new();
    let script = scratch.join("asks_round.py");
    fs::write(&script, ASKS_ROUND).expect("a scratch file");
    for _ in 0..rounds(1, 5) {
        start_together(rounds(2, JOBS), &[PYTHON, &script.display().to_string()]);
    }
}
