//! The chaos run: processes come, fork, stop and die without pause, one thing after the other goes
//! wrong, and whenever all is at rest the service's values are the emulator's own.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use telltale_harness::{Scratch, long, needs_pid_namespaces, wait_until};

use crate::chaos::faults::{self, Fault};
use crate::chaos::fixture::Fixture;
use crate::chaos::random::Random;
use crate::chaos::service::{Cost, HEALTHY_WITHIN};
use crate::chaos::truth::knows;
use crate::chaos::watchers::{Checker, Pulse};
use crate::chaos::workload::{TIMEOUT, work_if_started_to};

/// Set in the namespace in which a small disk is mounted, to where that is.
const SMALL_DISK: &str = "TELLTALE_CHAOS_SMALL_DISK";
/// Under which a fault must show in its metric.
const SHOWN_WITHIN: Duration = Duration::from_secs(40);
/// How much more memory the service may have after everything than when all processes had begun:
/// what SQLite and the allocator keep for the next time, in a build without optimisation, and for
/// each process what is remembered of those that had its place before.
const GROWTH_KIB: u64 = 8 << 10;
const GROWTH_PER_PROCESS_KIB: u64 = 96;
/// Things that happen between two faults, at most and for so many processes one.
const MOST_EVENTS: usize = 30;
const PROCESSES_PER_EVENT: usize = 3;

#[test]
fn nothing_stops_the_service_and_no_total_is_ever_wrong() {
    work_if_started_to();
    let _alone = crate::chaos::ALONE.lock();
    let test = "chaos::clients::nothing_stops_the_service_and_no_total_is_ever_wrong";
    if let Some(disk) = std::env::var_os(SMALL_DISK) {
        return run(test, Some(Path::new(&disk)));
    }
    // The same right is needed for a mount of one's own as for a PID namespace.
    if !needs_pid_namespaces("telltale::chaos::clients::a_disk_that_is_full") {
        return run(test, None);
    }
    let disk = Scratch::new();
    let script = "mount -t tmpfs -o size=24m none \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", script]).arg(disk.path());
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let output = command.env(SMALL_DISK, disk.path()).output().unwrap();
    let (out, err) = (&output.stdout, &output.stderr);
    println!("{}", String::from_utf8_lossy(out));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(err));
}

fn run(test: &str, disk: Option<&Path>) {
    let begin = Instant::now();
    let workloads = if long() { 200 } else { 12 };
    let mut random = Random::announced(test);
    let mut faults = faults::all();
    random.shuffle(&mut faults);
    let mut fixture = Fixture::new(random, disk);
    let pulse = Pulse::begin(fixture.service.http.clone());
    let checker = Checker::begin(fixture.service.grpc.clone());
    let alone = settled(&fixture);
    fixture.fill(workloads);
    fixture.come_to_rest("at the beginning");
    let full = fixture.service.cost();
    for fault in &faults {
        fixture.churn(MOST_EVENTS.min(workloads / PROCESSES_PER_EVENT));
        goes_wrong(&mut fixture, fault);
        fixture.come_to_rest(fault.name);
        // As a timer does: what the dead leave must be removed, and shown until then.
        fixture.clean();
    }
    let after = fixture.service.cost();
    leaves_nothing_behind(&mut fixture, alone);
    let health = pulse.end();
    let checked = checker.end().unwrap_or_else(|wrong| panic!("{wrong}"));
    println!(
        "{workloads} processes, {:.0?}: healthy {} times, in {:.0?} at most; {checked} snapshots",
        begin.elapsed(),
        health.asked,
        health.longest
    );
    println!("alone {alone:?}, full {full:?}, after {after:?}");
    assert!(health.longest < HEALTHY_WITHIN && health.asked > 10 && checked > 10);
    let growth_kib = GROWTH_KIB + GROWTH_PER_PROCESS_KIB * workloads as u64;
    assert!(after.resident_kib < full.resident_kib + growth_kib, "{full:?}, then {after:?}");
    the_past_is_known(fixture);
}

/// What the service takes when the machine is idle; its workers come and go.
fn settled(fixture: &Fixture) -> Cost {
    fixture.service.metrics();
    fixture.service.fresh();
    let mut cost = fixture.service.cost();
    wait_until("the service to settle", TIMEOUT, || {
        let before = std::mem::replace(&mut cost, fixture.service.cost());
        (before.threads, before.descriptors) == (cost.threads, cost.descriptors)
    });
    cost
}

/// Lets one thing go wrong until its metric reports it, while everything goes on.
fn goes_wrong(fixture: &mut Fixture, fault: &Fault) {
    let before = fault.value(&fixture.service.metrics());
    let begin = Instant::now();
    let injected = fault.inject(fixture);
    loop {
        let snapshot = fixture.service.fresh();
        let errors = snapshot.sources.iter().flat_map(|source| &source.errors);
        let subject = injected.subject.as_ref();
        let reported = subject.is_none_or(|subject| {
            errors.clone().any(|error| error.subject.contains(subject.as_str()))
        });
        let now = fault.value(&fixture.service.metrics());
        // One that was stopped before and had not answered is asked again after ten seconds only.
        let mut at_rest = injected.at_rest.iter();
        let is_true = at_rest.all(|pid| knows(*pid, &fixture.emulator, &snapshot));
        if reported && is_true && fault.is_shown(before, now) {
            break;
        }
        let metric = fault.metric;
        assert!(
            begin.elapsed() < SHOWN_WITHIN,
            "{}: {metric} is {now} and was {before}; {subject:?} in {:?}, {is_true}\n{}",
            fault.name,
            snapshot.sources,
            fixture.service.said()
        );
        fixture.churn(1);
    }
    let labels: String =
        fault.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let took = begin.elapsed().as_secs_f64();
    println!("{:40} {}{{{labels}}} {:?} in {took:.1} s", fault.name, fault.metric, fault.shows);
    injected.undo(fixture);
}

/// Once all have ended and their files are cleaned away, the service is as it was.
fn leaves_nothing_behind(fixture: &mut Fixture, alone: Cost) {
    fixture.empty();
    fixture.clean();
    let mut cost = alone;
    let begin = Instant::now();
    while begin.elapsed() < TIMEOUT {
        cost = settled(fixture);
        if cost.threads <= alone.threads && cost.descriptors <= alone.descriptors {
            break;
        }
    }
    assert!(cost.threads <= alone.threads, "{alone:?}, then {cost:?}");
    assert!(cost.descriptors <= alone.descriptors, "{alone:?}, then {cost:?}");
    let empty = fixture.service.fresh();
    assert!(empty.processes.is_empty(), "{:?}", empty.processes);
    let metrics = fixture.service.metrics();
    assert_eq!(metrics.sum("telltale_history_up", &[]), Some(1.0), "{}", fixture.service.said());
    assert_eq!(metrics.sum("telltale_source_up", &[("source", "ledgers")]), Some(1.0));
    assert_eq!(metrics.sum("telltale_device_up", &[]), Some(4.0));
}

/// The history has who was killed, and ends with the service.
fn the_past_is_known(fixture: Fixture) {
    let killed = fixture.killed.expect("the least that happens").to_string();
    let Fixture { service, state, emulator, .. } = fixture;
    service.end();
    for arguments in [&["report", &killed, "--json"][..], &["history", "--since", "10m", "--json"]]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
        let output = command.args(arguments).arg("--state-dir").arg(&state).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    }
    emulator.shutdown().unwrap();
}
