//! Faults that no exit code tells of, in a training of PyTorch with Gloo: a dead node, a node and a rank
//! that stand still. And what the agents of an undisturbed training cost.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal};
use telltale_bench::sample::{Effort, Measurements};
use telltale_bench::table::{Row, Table, Target, Unit};
use telltale_wire::cluster::message::{IncidentStanding, NodeState, Verdict, VerdictKind, sign};

use crate::training::{RANKS, Shape, Training, signal};

/// Rounds of a full run: one of each takes some 30 seconds.
const ROUNDS: usize = 3;
/// How long the agents' cost is watched.
const WATCHED: Duration = Duration::from_secs(30);
/// Seconds between two steps.
const REST: f64 = 0.1;

/// Fills the table.
pub(crate) fn table(telltale: &Path, effort: Effort) -> Table {
    let shape = Shape { nodes: RANKS, spares: 1, tells: true, rest: REST, ..Shape::default() };
    let mut training = Training::under_agents(telltale, shape);
    let watched = if effort == Effort::Once { Duration::from_secs(2) } else { WATCHED };
    let cost = Cost::of(&training, watched);
    let [mut named, mut killed, mut stopped] = [Vec::new(), Vec::new(), Vec::new()];
    for round in (0..RANKS).cycle().take(effort.repeats().min(ROUNDS)) {
        named.push(stop_a_rank(&training, round));
        killed.push(lose_a_node(&mut training, round, Signal::KILL));
        stopped.push(lose_a_node(&mut training, round + 1, Signal::STOP));
    }
    let row = |what: &str, unit, samples, at_most| Row {
        what: what.to_owned(),
        unit,
        ours: Some(Measurements::new(samples)),
        baseline: None,
        target: Target { at_most, ..Target::default() },
    };
    let mebibytes = Some(15.0 * 1_048_576.0);
    Table {
        heading: format!(
            "A Gloo job of {RANKS} ranks on as many nodes and a spare, {REST} s between steps, which \
             tells of its collectives"
        ),
        rows: vec![
            row("node killed, until it is decided", Unit::Time, killed, Some(6e9)),
            row("node stopped, until it is decided", Unit::Time, stopped, Some(6e9)),
            row("rank stopped, until its node is named", Unit::Time, named, Some(1e10)),
            row(
                "agent with its guard, share of one processor",
                Unit::Share,
                cost.shares,
                Some(0.002),
            ),
            row("agent, resident memory", Unit::Bytes, cost.agent_bytes, mebibytes),
            row("its guard, resident memory", Unit::Bytes, cost.guard_bytes, None),
        ],
        remarks: vec![format!("the agents' cost was watched for {} s", watched.as_secs())],
    }
}

/// Kills or stops an agent with all that it has started, and says how long it takes until its node's
/// replacement is decided.
fn lose_a_node(training: &mut Training, round: u32, how: Signal) -> f64 {
    let attempt = training.attempt();
    let rank = training.process(round % RANKS, attempt.expect("the training runs"));
    let node = training.node_of(rank);
    let index =
        (0..=RANKS).find(|index| Training::node(*index) == node).expect("it is a node's name");
    let at_ms = unix_ms();
    training.signal_node(index, how);
    let mut decided_ms = 0;
    training.until("decision on the node", |training| {
        let decisions = training.ask(async |client| client.decisions(Some(8)).await);
        let mut decisions = decisions.into_iter().flat_map(|answer| answer.decisions);
        let found =
            decisions.find(|one| one.stored_unix_ms >= at_ms && one.evicted.contains(&node));
        decided_ms = found.map_or(0, |one| one.stored_unix_ms);
        decided_ms > 0
    });
    training.wait_for_attempt_after(attempt);
    if how == Signal::KILL {
        training.restart_agent(index);
    } else {
        training.signal_node(index, Signal::CONT);
    }
    training.until("the node to be a spare", |training| {
        let nodes = training.ask(async |client| client.nodes().await);
        let mut nodes = nodes.into_iter().flat_map(|answer| answer.nodes);
        let Some(found) = nodes.find(|one| one.name == node) else { return false };
        if found.state() == NodeState::Barred {
            // It was killed in the rounds before, too.
            training.ask(async |client| client.readmit(&node).await);
        }
        found.state() == NodeState::Standby && found.workers > 0
    });
    (decided_ms - at_ms) as f64 * 1e6
}

/// Stops a rank, and says how long it takes until its node alone is named for a hang.
fn stop_a_rank(training: &Training, rank: u32) -> f64 {
    let attempt = training.attempt().expect("the training runs");
    let process = training.process(rank % RANKS, attempt);
    let node = training.node_of(process);
    let began = Instant::now();
    signal(process, Signal::STOP);
    training.until("suspicion of the rank that stands still", |training| {
        let incidents = training.ask(async |client| client.incidents(Some(1)).await);
        let incidents = incidents.into_iter().flat_map(|answer| answer.incidents);
        let open = incidents.filter(|incident| incident.standing() != IncidentStanding::Passed);
        let mut signs = open.flat_map(|incident| incident.signs);
        signs.any(|sign| match sign.kind {
            Some(sign::Kind::Suspected(verdict)) => names(&verdict, &node),
            _ => false,
        })
    });
    let named = began.elapsed();
    signal(process, Signal::CONT);
    training.until("the incident to pass", |training| {
        let incidents = training.ask(async |client| client.incidents(Some(1)).await);
        let mut incidents = incidents.into_iter().flat_map(|answer| answer.incidents);
        incidents.any(|incident| incident.standing() == IncidentStanding::Passed)
    });
    named.as_secs_f64() * 1e9
}

fn names(verdict: &Verdict, node: &str) -> bool {
    let hangs = [VerdictKind::CommunicationHang, VerdictKind::NonCommunicationHang];
    let only = verdict.suspects.len() == 1;
    hangs.contains(&verdict.kind()) && only && verdict.suspects[0].node == node
}

/// What each agent uses.
#[derive(Debug, Default)]
struct Cost {
    shares: Vec<f64>,
    agent_bytes: Vec<f64>,
    guard_bytes: Vec<f64>,
}

impl Cost {
    fn of(training: &Training, watched: Duration) -> Self {
        let nodes: Vec<Vec<Pid>> = (0..RANKS).map(|node| training.agent_and_guard(node)).collect();
        let time_ns =
            |node: &Vec<Pid>| node.iter().map(|process| processor_time_ns(*process)).sum();
        let before: Vec<f64> = nodes.iter().map(time_ns).collect();
        let began = Instant::now();
        std::thread::sleep(watched);
        let after: Vec<f64> = nodes.iter().map(time_ns).collect();
        let passed_ns = began.elapsed().as_secs_f64() * 1e9;
        let mut cost = Self::default();
        for (node, (before, after)) in nodes.iter().zip(before.iter().zip(after)) {
            cost.shares.push((after - before) / passed_ns);
            cost.agent_bytes.push(resident_bytes(node[0]));
            cost.guard_bytes.push(node[1..].iter().map(|process| resident_bytes(*process)).sum());
        }
        cost
    }
}

/// Processor time of all threads that a process has (proc_pid_task_tid_schedstat(5): the first
/// number, in nanoseconds). Threads that have ended are not in it; an agent's stay.
fn processor_time_ns(process: Pid) -> f64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else { return 0.0 };
    let each = tasks.filter_map(Result::ok).filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    each.sum()
}

fn resident_bytes(process: Pid) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kibibytes.unwrap_or(f64::INFINITY) * 1024.0
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
