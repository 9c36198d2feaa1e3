//! `telltale gpt --parallel`: ranks in processes that find each other by their environment, as an
//! agent would start them; one is killed, all are started again, and no bit differs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::Value;
use telltale_cluster::intake::entry::{EntryContent, Post};
use telltale_cluster::latency::record::{OperationType, Stage};
use telltale_harness::Scratch;

use crate::cli::command::{Running, said};
use crate::cli::gpt::gpt;

const RANKS: usize = 3;
const STEPS: u64 = 24;

/// The ranks of one epoch, each with the directory of its node.
struct Epoch<'a> {
    number: u64,
    port: u16,
    nodes: &'a [PathBuf],
}

impl<'a> Epoch<'a> {
    fn new(number: u64, nodes: &'a [PathBuf]) -> Self {
        Self { number, port: free_port(), nodes }
    }

    /// The command of a rank.
    fn rank(&self, rank: usize, arguments: &[&str]) -> Command {
        let node = &self.nodes[rank];
        let mut command = gpt(node.parent().unwrap(), &["--parallel", "--json"]);
        command.args(["--weights-digest", "--resume", "--checkpoint-every", "5", "--checkpoint"]);
        command.arg(node).args(arguments);
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", self.nodes.len().to_string());
        command.env("MASTER_ADDR", host()).env("MASTER_PORT", self.port.to_string());
        command.env("TELLTALE_EPOCH", self.number.to_string());
        command
    }

    fn start(&self, arguments: &[&str]) -> Vec<Running> {
        let ranks = 0..self.nodes.len();
        ranks.map(|rank| Running::start(&mut self.rank(rank, arguments))).collect()
    }
}

/// An address of this process, where no other takes a port meanwhile.
fn host() -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    format!("127.78.{high}.{low}")
}

fn free_port() -> u16 {
    TcpListener::bind((host(), 0)).unwrap().local_addr().unwrap().port()
}

fn nodes(place: &Path) -> Vec<PathBuf> {
    (0..RANKS).map(|node| place.join(format!("node-{node}"))).collect()
}

/// Reads lines until one that has this step.
fn read_to_step(running: &mut Running, step: u64) {
    loop {
        let line: Value = serde_json::from_str(&running.line()).unwrap();
        if line["step"] == step {
            return;
        }
    }
}

/// What is left of the lines of a rank that ended well.
#[track_caller]
fn ended(mut running: Running) -> Vec<Value> {
    let status = running.status();
    assert_eq!(status, Some(0), "{}", errors(&mut running));
    running.rest().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn errors(running: &mut Running) -> String {
    let mut text = String::new();
    running.child.child().stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// The digests of all ranks at the end.
fn digests(epoch: &Epoch<'_>) -> Vec<Value> {
    let running = epoch.start(&["--steps", &STEPS.to_string()]);
    running.into_iter().map(|one| ended(one).last().unwrap()["weights_digest"].clone()).collect()
}

#[test]
fn a_rank_that_is_killed_with_its_disk_and_replaced_makes_no_difference_to_any_bit() {
    let (place, other) = (Scratch::new(), Scratch::new());
    let undisturbed = digests(&Epoch::new(1, &nodes(other.path())));
    assert_eq!(undisturbed.len(), RANKS);
    assert!(undisturbed.iter().all(|digest| digest.is_string() && *digest == undisturbed[0]));
    let mut nodes = nodes(place.path());
    let mut first = Epoch::new(1, &nodes).start(&["--steps", "1000000"]);
    read_to_step(&mut first[1], 12);
    first[1].child.kill();
    for rank in [0, 2] {
        assert_eq!(first[rank].status(), Some(2));
        let errors = errors(&mut first[rank]);
        assert!(errors.contains("adding up with the other ranks failed: rank"), "{errors}");
        assert!(
            errors.ends_with(" is gone: unexpected end of file\n") || errors.contains("os error")
        );
    }
    nodes[1] = place.join("the spare");
    let steps = STEPS.to_string();
    let second = Epoch::new(2, &nodes).start(&["--steps", &steps]);
    for (rank, running) in second.into_iter().enumerate() {
        let lines = ended(running);
        assert_eq!(lines[0]["rank"], rank);
        assert_eq!((&lines[0]["ranks"], &lines[0]["epoch"]), (&RANKS.into(), &2.into()));
        // The survivors kept what they had when their peer was gone.
        assert!(lines[0]["steps_before"].as_u64().unwrap() >= 12, "{}", lines[0]);
        assert!([0, 2].map(Value::from).contains(&lines[0]["checkpoint_of"]), "{}", lines[0]);
        assert_eq!(lines.last().unwrap()["weights_digest"], undisturbed[0]);
    }
}

#[test]
fn a_rank_that_is_asked_to_end_does_so_at_once_and_says_that_it_was_early() {
    let place = Scratch::new();
    let nodes = nodes(place.path());
    // While it waits for the others to come.
    let epoch = Epoch::new(1, &nodes);
    let mut waiting = Running::start(&mut epoch.rank(1, &[]));
    let mut leading = Running::start(&mut epoch.rank(0, &[]));
    for running in [&mut waiting, &mut leading] {
        // Its directory is there once it can be asked.
        let node = place.path();
        telltale_harness::wait_until("both to begin", crate::cli::command::TIMEOUT, || {
            [0, 1].iter().all(|rank| node.join(format!("node-{rank}/rank-{rank}")).exists())
        });
        running.child.terminate();
        assert_eq!(running.status(), Some(1));
    }
    // While it waits for the others' gradients.
    let mut running = Epoch::new(2, &nodes).start(&[]);
    running.iter_mut().for_each(|rank| read_to_step(rank, 3));
    running[2].child.terminate();
    assert_eq!(running[2].status(), Some(1));
    assert_eq!(errors(&mut running[2]), "");
    assert_eq!(running[0].status(), Some(2));
    assert_eq!(running[1].status(), Some(2));
}

/// Answers posts as an agent does until the connection ends, and gives their bodies.
fn agent(listener: &UnixListener) -> Vec<Vec<u8>> {
    let (stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream);
    let mut bodies = Vec::new();
    loop {
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if lines.read_line(&mut line).unwrap() == 0 {
                return bodies;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body).unwrap();
        bodies.push(body);
        lines.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}

#[test]
fn each_transfer_is_reported_to_the_agent_in_the_form_that_it_takes() {
    let place = Scratch::new();
    let nodes: Vec<_> = nodes(place.path()).drain(..2).collect();
    let socket = place.join("agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let bodies = thread::spawn(move || agent(&listener));
    let epoch = Epoch::new(7, &nodes);
    let mut telling = epoch.rank(0, &["--steps", "5"]);
    telling.env("TELLTALE_LOG_CCL", format!("unix:{}", socket.display()));
    let telling = Running::start(&mut telling);
    // To an agent that is not there nothing can be reported, which stops no training.
    let mut lonely = epoch.rank(1, &["--steps", "5"]);
    let lonely = said(lonely.env("TELLTALE_LOG_CCL", "unix:/nowhere/agent.sock"));
    assert_eq!(lonely.status, Some(0), "{lonely:?}");
    assert!(
        lonely.err.contains("reporting transfers to the agent at unix:/nowhere/agent.sock"),
        "{lonely:?}"
    );
    ended(telling);
    let (mut sums, mut transfers, mut checkpoints) = (0, 0, 0);
    for body in bodies.join().unwrap() {
        let post = Post::parse(&body).unwrap();
        assert_eq!(post.refused, 0, "{:?}", post.first_refused);
        for entry in post.entries {
            assert_eq!(entry.epoch.unwrap().to_string(), "7");
            match entry.reported {
                EntryContent::Operation(record) => {
                    assert_eq!((record.context_rank, record.context_size), (0, 2));
                    match (record.stage, record.operation) {
                        (Stage::Began, _) => {}
                        (Stage::Ended { .. }, OperationType::Collective { .. }) => sums += 1,
                        (Stage::Ended { .. }, OperationType::Transfer { .. }) => transfers += 1,
                        (Stage::EndedUntimed, _) => panic!("{record:?}"),
                    }
                }
                EntryContent::Checkpoint { finished, .. } => checkpoints += usize::from(finished),
                reported => panic!("{reported:?}"),
            }
        }
    }
    // Two exchanges of two transfers a step; a checkpoint after the fifth.
    assert_eq!((sums, transfers, checkpoints), (5, 20, 1));
}

#[test]
fn an_environment_without_a_place_is_reported() {
    let place = Scratch::new();
    let nodes = nodes(place.path());
    let epoch = Epoch::new(1, &nodes);
    let with = |name: &str, value: &str| said(epoch.rank(0, &[]).env(name, value));
    said(epoch.rank(0, &[]).env_remove("RANK")).complains(2, &["RANK is not set", "agent"]);
    with("RANK", "3").complains(2, &["there is no rank 3 in a training of 3"]);
    with("MASTER_PORT", "0").complains(2, &["MASTER_PORT is \"0\""]);
    with("TELLTALE_LOG_CCL", "nowhere").complains(2, &["TELLTALE_LOG_CCL", "nowhere"]);
    with("MASTER_ADDR", "192.0.2.1").complains(2, &["rank 0 cannot listen at 192.0.2.1:"]);
}
