//! The node service as it runs, the real program over an emulated machine of 8 chips and 100
//! processes that have all of them open: how long its answers take, how soon it sees what
//! happens, and what it costs.

mod comings;
mod query;
mod rules;
mod upkeep;
mod workload;

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector};
use telltale_schema::snapshot::{ProcessSource, Snapshot};

use crate::machine::{BusyMachine, Size};
use crate::sample::{Effort, Measurements, interleave, time_ns};
use crate::served::{Served, all_smi, node_exporter, ours};
use crate::table::{Row, Table, Target, Unit};
pub(crate) use query::Asker;
use upkeep::{Churned, Cost, Resident};

/// Workloads in a full or quick run.
const WORKLOADS: u64 = 100;
/// Workloads when only the working is shown.
const FEW_WORKLOADS: u64 = 3;
/// From one fresh query to the next: the service lets ten a second through.
const PACE: Duration = Duration::from_millis(110);
/// Queries for what was collected last, of one repeat.
const LATEST: u64 = 50;
/// Fresh queries of one repeat.
const FRESH: u64 = 20;
/// Processes that begin and end one by one.
const COMINGS: u64 = 40;
/// How long the service runs with nothing but its interval and a scrape in 15 s.
const AT_REST: Duration = Duration::from_secs(45);
/// Processes of the compressed hour: one each second, in three rounds.
const HOUR: (u64, usize) = (1200, 3);
/// How long after a round its memory is looked at. Past the time for which a process that has
/// ended is remembered it would not fall further.
const SETTLED: Duration = Duration::from_secs(12);
/// How long workloads are watched with the service, and without.
const WATCHED: Duration = Duration::from_secs(8);
/// What a workload that works does in one turn: pairs, and turns.
const TOIL: (u64, usize) = (30_000_000, 9);
/// Steps of the alert engine in one repeat.
const STEPS: u64 = 500;
/// Readings of all ledgers in one repeat.
const SWEEPS: u64 = 5_000;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What the service does for its callers, and what it costs.
///
/// # Errors
/// When the machine or the service cannot be started, or does not answer.
pub fn table(worker: &Path, serve: &Path, effort: Effort) -> io::Result<Table> {
    let workloads = if effort == Effort::Once { FEW_WORKLOADS } else { WORKLOADS };
    let busy = BusyMachine::start(worker, Size::Eight, workloads)?;
    let mut table = Table {
        heading: format!(
            "`telltale-serve` on {} chips x {workloads} processes that have all of them open",
            busy.size().chips()
        ),
        ..Table::default()
    };
    // Memory first: a service that was asked for much is not the one that only runs.
    let mut service = ours(serve, &busy, &[])?;
    costs(&mut service, effort, &mut table)?;
    disturbs(worker, &busy, service.pid(), effort, &mut table)?;
    answers(&busy, effort, &mut table)?;
    let count = effort.operations(COMINGS).max(2);
    let comings = comings::measure(worker, &busy, count)?;
    let seen = Target { at_most: Some(50e6), ..Target::default() };
    for (what, values, target) in [
        ("a new process is seen", comings.seen_ns, seen),
        ("with what it holds", comings.held_ns, Target::default()),
        ("a killed process is gone", comings.gone_ns, seen),
    ] {
        let values = Measurements::new(values);
        let most = Measurements::new(vec![values.max()]);
        table.rows.push(time(what, values, target));
        table.rows.push(time(&format!("{what}, the slowest of {count}"), most, target));
    }
    // Last, as what ends leaves its traces in the service.
    hour(worker, &busy, service.pid(), effort, &mut table)?;
    Ok(table)
}

fn time(what: &str, ours: Measurements, target: Target) -> Row {
    let (what, ours) = (what.to_owned(), Some(ours));
    Row { what, unit: Unit::Time, ours, baseline: None, target }
}

fn one(value: f64) -> Option<Measurements> {
    Some(Measurements::new(vec![value]))
}

/// Processor time and memory at rest, ours and the rivals' over the same span.
fn costs(service: &mut Served, effort: Effort, table: &mut Table) -> io::Result<()> {
    let span = match effort {
        Effort::Full => AT_REST,
        Effort::Quick => AT_REST / 3,
        Effort::Once => Duration::from_millis(200),
    };
    let names = ["all-smi api", "node exporter"];
    let mut rivals = [all_smi().transpose()?, node_exporter().transpose()?];
    let mut servers = vec![service];
    servers.extend(rivals.iter_mut().flatten());
    let mut costs = upkeep::at_rest(&mut servers, span)?.into_iter();
    let ours = costs.next().expect("ours is the first");
    let mut row = |what: String, unit, ours, baseline, at_most| {
        let target = Target { at_most, ..Target::default() };
        table.rows.push(Row { what, unit, ours: one(ours), baseline, target });
    };
    let Resident { all, own } = ours.resident;
    row("processor time, share of one".to_owned(), Unit::Share, ours.share, None, Some(0.005));
    row("resident memory".to_owned(), Unit::Bytes, all, None, Some(15.0 * MEBIBYTE));
    row("of it, without pages of files".to_owned(), Unit::Bytes, own, None, None);
    for (rival, name) in rivals.iter().zip(names) {
        if rival.is_none() {
            table.remarks.push(format!("{name} is not installed and has no value"));
            continue;
        }
        let Some(Cost { share, resident }) = costs.next() else { continue };
        let mut row = |what: &str, unit, ours, baseline| {
            let what = format!("{what}; baseline: {name}");
            let target = Target::default();
            table.rows.push(Row { what, unit, ours: one(ours), baseline: one(baseline), target });
        };
        row("processor time", Unit::Share, ours.share, share);
        row("resident memory", Unit::Bytes, all, resident.all);
    }
    Ok(())
}

/// What being looked at costs workloads.
fn disturbs(
    worker: &Path,
    busy: &BusyMachine,
    service: u32,
    effort: Effort,
    table: &mut Table,
) -> io::Result<()> {
    let (span, turns) = match effort {
        Effort::Full => (WATCHED, TOIL),
        Effort::Quick => (WATCHED / 3, (TOIL.0 / 10, TOIL.1)),
        Effort::Once => (Duration::from_millis(100), (1000, 1)),
    };
    let idle = workload::idle(busy, service, span)?;
    let target = Target { at_most: Some(0.001), ..Target::default() };
    table.rows.push(Row {
        what: "an idle workload's processor time; baseline: service halted".to_owned(),
        unit: Unit::Share,
        ours: one(idle.share),
        baseline: one(idle.without),
        target,
    });
    let [without, with] = workload::toiling(worker, busy, service, turns)?;
    table.rows.push(Row {
        what: "work of a busy workload; baseline: service halted".to_owned(),
        unit: Unit::Time,
        ours: Some(Measurements::new(with)),
        baseline: Some(Measurements::new(without)),
        target: Target::default(),
    });
    Ok(())
}

/// Queries through gRPC, decoded, and what the rules cost.
fn answers(busy: &BusyMachine, effort: Effort, table: &mut Table) -> io::Result<()> {
    let mut asker = Asker::connect(busy.root())?;
    let last = asker.ask(true)?.snapshot;
    if !is_whole(&last, busy) {
        return Err(io::Error::other("the service does not show what was started"));
    }
    let (mut fresh, mut collected, mut latest) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.repeats() as u64 * effort.operations(FRESH) {
        thread::sleep(PACE);
        let asked = asker.ask(true)?;
        fresh.push(asked.elapsed_ns);
        collected.push(asked.snapshot.collected_in_ns as f64);
    }
    for _ in 0..effort.repeats() as u64 * effort.operations(LATEST) {
        latest.push(asker.ask(false)?.elapsed_ns);
    }
    let at_most = |most| Target { at_most: Some(most), ..Target::default() };
    let [of_fresh, of_latest] = [&fresh, &latest].map(|all| Measurements::new(vec![late(all)]));
    let steps = effort.operations(STEPS);
    let options = CollectOptions { root: busy.root().to_owned(), ..CollectOptions::default() };
    let mut collector = Collector::new(options).map_err(io::Error::other)?;
    collector.collect();
    collector.watch();
    let sweeps = effort.operations(SWEEPS);
    let [stepped, swept] = interleave(
        effort.repeats(),
        [
            rules::contender(&last, steps)?,
            Box::new(|| {
                time_ns(sweeps, || {
                    for _ in 0..sweeps {
                        collector.read_memory(|_, _| {});
                    }
                })
            }),
        ],
    );
    table.rows.extend([
        time("a fresh query, each endpoint asked", Measurements::new(fresh), at_most(10e6)),
        time("the same, 99 of 100", of_fresh, at_most(10e6)),
        time("of it, collecting", Measurements::new(collected), Target::default()),
        time("a query for the latest", Measurements::new(latest), at_most(1e6)),
        time("the same, 99 of 100", of_latest, Target::default()),
        time("memory of all ledgers at hand", swept, at_most(50e3)),
        time("the default rules, a snapshot", stepped, Target::default()),
    ]);
    Ok(())
}

/// The 99th of a hundred.
fn late(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * 99).div_ceil(100).max(1) - 1]
}

/// Whether all chips and all workloads are there, each workload by its ledger.
fn is_whole(snapshot: &Snapshot, busy: &BusyMachine) -> bool {
    let by_ledger = snapshot.processes.iter().filter(|process| {
        process.known_by == Some(ProcessSource::Ledger)
            && process.devices.len() == busy.size().chips()
    });
    let counts = (snapshot.devices.len(), by_ledger.count());
    counts == (busy.size().chips(), busy.workloads())
}

/// Memory over as many processes as come and go in an hour with one each second.
fn hour(
    worker: &Path,
    busy: &BusyMachine,
    service: u32,
    effort: Effort,
    table: &mut Table,
) -> io::Result<()> {
    let plan = (effort.operations(HOUR.0).max(5), HOUR.1);
    let settled = if effort == Effort::Once { Duration::ZERO } else { SETTLED };
    let churned = upkeep::churn(worker, busy, service, plan, settled)?;
    let Churned { processes, resident, round, share } = churned;
    for (at, memory) in resident.iter().enumerate() {
        let what = match at {
            0 => "resident memory before processes come and go".to_owned(),
            _ => format!("after {} processes", at as u64 * processes),
        };
        let target = Target { at_most: Some(15.0 * MEBIBYTE), ..Target::default() };
        let ours = one(memory.all);
        table.rows.push(Row { what, unit: Unit::Bytes, ours, baseline: None, target });
    }
    let own: Vec<String> =
        resident.iter().map(|memory| format!("{:.1}", memory.own / MEBIBYTE)).collect();
    table.remarks.push(format!(
        "resident without pages of files, before and after each round, in MiB: {}",
        own.join(", ")
    ));
    table.remarks.push(format!(
        "a round of {processes} processes took {:.0} s: {:.0} of them a second, and {:.1} % of a \
         processor for the service",
        round.as_secs_f64(),
        processes as f64 / round.as_secs_f64(),
        share * 100.0
    ));
    Ok(())
}
