//! A coordinator that leads is killed: how soon another serves, how soon it replaces a node where it
//! must, and what the job notices.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use telltale_bench::sample::{Effort, Measurements};
use telltale_bench::table::{Row, Table, Target, Unit};

use crate::stage::{Keeping, Stage};

const NODES: usize = 4;
const SLOTS: usize = 3;
/// Rounds of a full run: one takes half a minute.
const ROUNDS: usize = 5;
/// How long a new leader is watched for what it does to the job: more than it takes to evict.
const WATCHED: Duration = Duration::from_secs(8);

/// What was measured, one value per round.
#[derive(Debug, Default)]
struct Measured {
    serving_ns: Vec<f64>,
    heard_ns: Vec<f64>,
    evictions: Vec<f64>,
    disturbed: Vec<f64>,
    replaced_ns: Vec<f64>,
}

/// Fills the table.
///
/// # Errors
/// None; it panics where a process does not do what it should.
pub(crate) fn table(telltale: &Path, effort: Effort) -> Result<Table, Box<dyn Error>> {
    let mut stage = Stage::start(telltale, &Keeping::Etcd(3), 2, NODES, SLOTS);
    let mut measured = Measured::default();
    for _ in 0..effort.repeats().min(ROUNDS) {
        kill_the_leader(&mut stage, &mut measured);
        kill_it_and_a_node(&mut stage, &mut measured);
    }
    let back_ns = restart_alone(telltale, effort);
    let row = |what: &str, unit, samples, at_most| Row {
        what: what.to_owned(),
        unit,
        ours: Some(Measurements::new(samples)),
        baseline: None,
        target: Target { at_most, ..Target::default() },
    };
    let Measured { serving_ns, heard_ns, evictions, disturbed, replaced_ns } = measured;
    let (five, ten) = (Some(5e9), Some(10e9));
    Ok(Table {
        heading: format!(
            "Two coordinators with an etcd of three, {NODES} agents for {SLOTS} slots: the one that \
             leads is killed"
        ),
        rows: vec![
            row("until the other answers", Unit::Time, serving_ns, five),
            row("until it has heard all nodes", Unit::Time, heard_ns, five),
            row("until it has replaced a node killed with it", Unit::Time, replaced_ns, ten),
            row(
                "with a journal, until it is back and has heard all nodes",
                Unit::Time,
                back_ns,
                five,
            ),
            row("evictions caused", Unit::Count, evictions, Some(0.0)),
            row("workers disturbed", Unit::Count, disturbed, Some(0.0)),
        ],
        remarks: vec![format!(
            "the job is watched for {} s after each change of leader",
            WATCHED.as_secs()
        )],
    })
}

fn kill_the_leader(stage: &mut Stage, measured: &mut Measured) {
    let (before, leader) = (stage.starts(), leader(stage));
    let evictions = counted_evictions(stage);
    let killed = Instant::now();
    stage.coordinators[leader].kill();
    stage.until("another leader", |stage| stage.leads(1 - leader).is_some());
    measured.serving_ns.push(nanoseconds(killed.elapsed()));
    stage.until("all nodes to be heard", |stage| stage.registered() == NODES);
    measured.heard_ns.push(nanoseconds(killed.elapsed()));
    stage.throughout(WATCHED, "somebody leading", |stage| stage.leads(1 - leader).is_some());
    let after = stage.starts();
    measured
        .disturbed
        .push(f64::from(u32::try_from(after.len() - before.len()).unwrap_or(u32::MAX)));
    measured.evictions.push(f64::from(counted_evictions(stage) - evictions));
    stage.restart_coordinator(leader);
}

fn kill_it_and_a_node(stage: &mut Stage, measured: &mut Measured) {
    let leader = leader(stage);
    let nodes = 0..NODES;
    let hit = nodes.into_iter().find(|node| stage.slot_of(&Stage::node(*node)).is_some());
    let hit = hit.expect("somebody holds a slot");
    let killed = Instant::now();
    stage.coordinators[leader].kill();
    stage.agents[hit].kill();
    let name = Stage::node(hit);
    let replaced = |stage: &Stage| {
        stage.status().is_some_and(|status| status.runs) && stage.slot_of(&name).is_none()
    };
    stage.until("the node to be replaced", replaced);
    measured.replaced_ns.push(nanoseconds(killed.elapsed()));
    stage.restart_agent(hit);
    stage.restart_coordinator(leader);
    stage.until("all nodes to be heard", |stage| stage.registered() == NODES);
}

/// How long a coordinator that is alone takes to come back, from when it is killed and started again.
fn restart_alone(telltale: &Path, effort: Effort) -> Vec<f64> {
    let mut stage = Stage::start(telltale, &Keeping::Journal, 1, NODES, SLOTS);
    let mut back_ns = Vec::new();
    for _ in 0..effort.repeats().min(ROUNDS) {
        let killed = Instant::now();
        stage.coordinators[0].kill();
        stage.restart_coordinator(0);
        stage.until("all nodes to be heard", |stage| stage.registered() == NODES);
        back_ns.push(nanoseconds(killed.elapsed()));
    }
    back_ns
}

fn leader(stage: &Stage) -> usize {
    let mut leader = None;
    stage.until("a leader", |stage| {
        leader = stage.leader();
        leader.is_some()
    });
    leader.expect("until returns once there is one")
}

fn counted_evictions(stage: &Stage) -> u32 {
    stage.status().map_or(0, |status| status.counted_evictions)
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}
