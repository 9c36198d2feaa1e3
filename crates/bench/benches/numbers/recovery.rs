//! A worker of a training is killed: how soon the next attempt is there, beside torchrun; and how soon
//! where workers are started ahead.

use std::path::Path;

use telltale_bench::sample::{Effort, Measurements};
use telltale_bench::table::{Row, Table, Target, Unit};

use crate::training::{RANKS, Recovered, Shape, Training};

/// Rounds of a full run: one takes some eleven seconds cold, and twenty warm.
const COLD_ROUNDS: usize = 12;
const WARM_ROUNDS: usize = 5;
/// Rounds of one training before the next has its turn.
const COLD_TURN: usize = 4;
/// Seconds between two steps: jobs that are not looked at at the moment use little of the machine.
const REST: f64 = 0.25;

/// Later than the quickest by this, a round had PyTorch's retry in it.
const LATE_NS: f64 = 0.8e9;

const STARTED: &str = "until the last rank is started";
const STEPPED: &str = "until the last rank has done its first step";

/// Kills a worker of ours on one node, of ours on four nodes, and of torchrun's, in turn. Each training has the
/// machine to itself: others that only wait take their share of two processors all the same.
pub(crate) fn cold(telltale: &Path, effort: Effort) -> Table {
    let shape = |nodes| Shape { nodes, rest: REST, ..Shape::default() };
    let starts: [&dyn Fn() -> Training; 3] = [
        &|| Training::under_agents(telltale, shape(1)),
        &|| Training::under_agents(telltale, shape(RANKS)),
        &|| Training::under_torchrun(REST),
    ];
    let mut recovered: [Vec<Recovered>; 3] = Default::default();
    let ranks: Vec<u32> = ranks(effort, COLD_ROUNDS).collect();
    for turn in ranks.chunks(COLD_TURN) {
        for (start, recovered) in starts.iter().zip(&mut recovered) {
            let training = start();
            recovered.extend(turn.iter().map(|rank| training.kill_rank(*rank)));
        }
    }
    let [one, four, torchrun] = recovered;
    let soon = Target { at_most: Some(1e9), ..Target::default() };
    let as_soon = Target { times_baseline: Some(1.0), ..Target::default() };
    let mut rows = Vec::new();
    for (name, ours) in [("one agent", &one), ("four agents", &four)] {
        let mut row = |what: &str, value: fn(&Recovered) -> f64, target| {
            rows.push(Row {
                what: format!("{name}, {what}"),
                unit: Unit::Time,
                ours: Some(values(ours, value)),
                baseline: Some(values(&torchrun, value)),
                target,
            });
        };
        row(STARTED, |one| one.started_ns, soon);
        row(STEPPED, |one| one.stepped_ns, as_soon);
    }
    let heading = format!(
        "A worker of a Gloo job of {RANKS} ranks is killed: agents and coordinator beside torchrun \
         --monitor_interval=0.1 on one node"
    );
    Table { heading, rows, remarks: vec![retries(&[&one, &four, &torchrun])] }
}

/// Kills a worker where others were started ahead.
pub(crate) fn warm(telltale: &Path, effort: Effort) -> Table {
    let shape = |nodes| Shape { nodes, warm: true, rest: REST, ..Shape::default() };
    let trainings = [1, RANKS].map(|nodes| Training::under_agents(telltale, shape(nodes)));
    let mut recovered: [Vec<Recovered>; 2] = Default::default();
    for rank in ranks(effort, WARM_ROUNDS) {
        // Those who are started ahead must not use the machine while others are looked at.
        trainings.iter().for_each(Training::wait_warm);
        for (training, recovered) in trainings.iter().zip(&mut recovered) {
            recovered.push(training.kill_rank(rank));
        }
    }
    let mut rows = Vec::new();
    for (name, ours) in ["one agent", "four agents"].into_iter().zip(&recovered) {
        let mut row = |what: &str, value: fn(&Recovered) -> f64, at_most| {
            rows.push(Row {
                what: format!("{name}, {what}"),
                unit: Unit::Time,
                ours: Some(values(ours, value)),
                baseline: None,
                target: Target { at_most: Some(at_most), ..Target::default() },
            });
        };
        row(STARTED, |one| one.started_ns, 1e9);
        row(STEPPED, |one| one.stepped_ns, 1.5e9);
    }
    let heading = format!(
        "A worker of a Gloo job of {RANKS} ranks is killed, with as many started ahead (--warm)"
    );
    Table { heading, rows, remarks: Vec::new() }
}

/// Kills a worker of `telltale train`, as it is by default and without workers started ahead, and of torchrun, in turn.
pub(crate) fn train(telltale: &Path, effort: Effort) -> Table {
    let starts: [&dyn Fn() -> Training; 3] = [
        &|| Training::under_train(telltale, REST, &["--no-warm"]),
        &|| Training::under_train(telltale, REST, &[]),
        &|| Training::under_torchrun(REST),
    ];
    let mut recovered: [Vec<Recovered>; 3] = Default::default();
    let ranks: Vec<u32> = ranks(effort, COLD_ROUNDS).collect();
    for turn in ranks.chunks(COLD_TURN) {
        for (index, start) in starts.iter().enumerate() {
            let training = start();
            for rank in turn {
                if index == 1 {
                    training.wait_warm();
                }
                recovered[index].push(training.kill_rank(*rank));
            }
        }
    }
    let [without, by_default, torchrun] = recovered;
    let as_soon = Target { times_baseline: Some(1.0), ..Target::default() };
    let mut rows = Vec::new();
    for (name, ours) in [("--no-warm", &without), ("default", &by_default)] {
        for (what, value) in [
            (STARTED, (|one| one.started_ns) as fn(&Recovered) -> f64),
            (STEPPED, |one| one.stepped_ns),
        ] {
            rows.push(Row {
                what: format!("{name}, {what}"),
                unit: Unit::Time,
                ours: Some(values(ours, value)),
                baseline: Some(values(&torchrun, value)),
                target: as_soon,
            });
        }
    }
    let heading = format!(
        "A worker of a Gloo job of {RANKS} ranks is killed: telltale train --nproc {RANKS} --max-restarts 100 beside \
         torchrun --monitor_interval=0.1"
    );
    Table { heading, rows, remarks: vec![retries(&[&without, &by_default, &torchrun])] }
}

/// Who is killed in each round: rank 0 as well, which the others call.
fn ranks(effort: Effort, rounds: usize) -> impl Iterator<Item = u32> {
    (0..RANKS).cycle().skip(1).take(effort.repeats().min(rounds))
}

fn values(recovered: &[Recovered], value: fn(&Recovered) -> f64) -> Measurements {
    Measurements::new(recovered.iter().map(value).collect())
}

/// How often PyTorch waited a second to try rank 0's address again: the round took most of a second longer than
/// the quickest.
fn retries(all: &[&Vec<Recovered>; 3]) -> String {
    let late = all.map(|rounds| {
        let quickest = rounds.iter().map(|one| one.stepped_ns).fold(f64::INFINITY, f64::min);
        let late = rounds.iter().filter(|one| one.stepped_ns > quickest + LATE_NS).count();
        format!("{late} of {}", rounds.len())
    });
    format!("rounds that were 0.8 s or more later than the quickest: {}", late.join(", "))
}
