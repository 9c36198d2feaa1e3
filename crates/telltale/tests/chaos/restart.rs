//! The service is killed and started again while processes work: the history has no hole beyond the
//! time without a service and what was not written yet, no process is lost, and the processes
//! notice nothing.
//!
//! What is written is written each second here (`history.write_seconds`, 10 by default):
//! that much before a kill may be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};
use telltale_harness::{Scratch, rounds, wait_until};
use telltale_node::access::Visibility;
use telltale_node::history::{HistoryReader, database_in};
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{Ending, ProcessReport, UsageReport};
use telltale_schema::snapshot::{HeldUsage, ProcessState, Snapshot};

use crate::chaos::random::Random;
use crate::chaos::service::Service;
use crate::chaos::truth::is_the_truth;
use crate::chaos::workload::{TIMEOUT, Workload, WorkloadReport};

/// Processes that live through all of it.
const WORKLOADS: usize = 4;
/// How often each allocates or frees a few buffers, in milliseconds.
const PACE_MS: u64 = 4;
/// Allocations of all together after which a median means something.
const ENOUGH: u64 = 600;
/// What is not written yet when the service is killed: a second, and what a busy machine adds to a
/// collection and a transaction.
const UNWRITTEN: Duration = Duration::from_millis(1_000 + 1_500);
/// How late a collection may be on a busy machine.
const LATE: Duration = Duration::from_secs(5);
/// How closely the history is scanned.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// What the history's time and the clock differ by at most.
const SLACK_NS: u64 = 100_000_000;

struct Fixture {
    emulator: Emulator,
    root: PathBuf,
    state: PathBuf,
    random: Random,
    workloads: Vec<Workload>,
    _scratch: Scratch,
}

/// A time without a service, by the wall clock.
#[derive(Debug, Clone, Copy)]
struct Away {
    from: Timestamp,
    until: Timestamp,
}

// === impl Fixture ===

impl Fixture {
    fn new(random: Random) -> Self {
        let scratch = Scratch::new();
        let (root, state) = (scratch.join("m"), scratch.join("state"));
        let kind = MachineKind::N300;
        let emulator = Emulator::start(&root, kind, EmulatorOptions::default()).unwrap();
        let workloads = Vec::new();
        let mut fixture = Self { emulator, root, state, random, workloads, _scratch: scratch };
        for _ in 0..WORKLOADS {
            let workload = fixture.start();
            fixture.workloads.push(workload);
        }
        fixture
    }

    fn start(&mut self) -> Workload {
        let mut workload = Workload::start(&self.root, 0, PACE_MS, self.random.seed());
        assert!(workload.begins());
        workload
    }

    fn serve(&self) -> Service {
        Service::start(&self.root, &self.state)
    }

    /// Waits until the workloads have allocated enough, and gives what they say: the sums, and the
    /// greatest of their medians.
    fn hear(&mut self) -> WorkloadReport {
        let before: u64 = self.workloads.iter_mut().map(|one| one.tells().allocations).sum();
        let mut all = WorkloadReport::default();
        wait_until("the workloads to work", TIMEOUT, || {
            let reported: Vec<WorkloadReport> =
                self.workloads.iter_mut().map(Workload::tells).collect();
            all = reported.iter().fold(WorkloadReport::default(), |all, one| WorkloadReport {
                allocations: all.allocations + one.allocations,
                failed: all.failed + one.failed,
                problems: all.problems + one.problems,
                median_ns: all.median_ns.max(one.median_ns),
            });
            all.allocations >= before + ENOUGH
        });
        all
    }

    /// What is written of each process so far.
    fn written(&self) -> BTreeMap<u32, ProcessReport> {
        let reader = HistoryReader::open(&database_in(&self.state)).unwrap();
        // All of them are this program, by whose name they are known.
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        let all = &name.trim_end().parse().unwrap();
        let reports = reader.report(all, Visibility::Everything).unwrap_or_default();
        reports.into_iter().map(|report| (report.process.identity.pid, report)).collect()
    }

    /// Waits until it is written how the process ended.
    #[track_caller]
    fn ended(&self, pid: u32, ending: Ending) {
        wait_until("the end of a process to be written", TIMEOUT, || {
            self.written().get(&pid).is_some_and(|report| report.ending == Some(ending))
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
        command.args(["report", &pid.to_string(), "--json", "--state-dir"]).arg(&self.state);
        let output = command.output().unwrap();
        let report: ProcessReport = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((report.process.identity.pid, report.ending), (pid, Some(ending)));
    }

    /// Has all stand still, and compares what the service says with the emulator's values and with
    /// the workloads' own count.
    fn compare(&mut self, service: &Service, when: &str) {
        let own: Vec<WorkloadReport> = self
            .workloads
            .iter_mut()
            .map(|one| {
                assert!(one.pause(), "{when}: a workload ended");
                one.tells()
            })
            .collect();
        let pids: Vec<u32> = self.workloads.iter().map(Workload::pid).collect();
        wait_until("the emulator to free what the dead had", TIMEOUT, || {
            let usage = self.emulator.usage();
            usage.iter().flat_map(|chip| &chip.processes).all(|(pid, _)| pids.contains(pid))
        });
        let snapshot = service.fresh();
        is_the_truth(&self.emulator, &snapshot, when);
        for (pid, reported) in pids.iter().zip(&own) {
            assert_eq!(allocations(&snapshot, *pid), reported.allocations, "{when}: of {pid}");
        }
        self.workloads.iter_mut().for_each(|one| assert!(one.go_on()));
    }
}

/// Allocations that a snapshot counts for a process.
fn allocations(snapshot: &Snapshot, pid: u32) -> u64 {
    let process = snapshot.processes.iter().find(|one| one.pid == Some(pid)).unwrap();
    assert_eq!(process.state, ProcessState::Alive);
    let faults = process.faults;
    assert_eq!((faults.unrecorded_events, faults.unknown_frees, faults.double_frees), (0, 0, 0));
    let kinds = process.devices.iter().flat_map(|held| &held.kinds);
    let recorded = kinds.map(|one| match one.usage {
        HeldUsage::Recorded(usage) => usage.allocations,
        other => panic!("{other:?} of {pid}"),
    });
    recorded.sum()
}

fn now() -> Timestamp {
    Timestamp(u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap())
}

#[test]
fn a_service_that_is_killed_again_and_again_loses_nothing_and_nobody_notices() {
    let _alone = crate::chaos::ALONE.lock();
    let mut fixture = Fixture::new(Random::announced("restart"));
    let alone = fixture.hear();
    let began = now();
    let mut service = fixture.serve();
    let steady = fixture.hear();
    let early = fixture.start();
    let early_pid = early.pid();
    wait_until("the early one to be written", TIMEOUT, || {
        fixture.written().contains_key(&early_pid)
    });
    assert!(early.quit());
    fixture.ended(early_pid, Ending::Gone);
    fixture.compare(&service, "before the first kill");

    let mut away = Vec::new();
    for round in 0..rounds(3, 12) {
        // The process that ends unobserved.
        let leaving = fixture.start();
        let pid = leaving.pid();
        wait_until("the leaving one to be written", TIMEOUT, || {
            fixture.written().contains_key(&pid)
        });
        // The moment is what is random: a wait for a condition would choose it.
        std::thread::sleep(Duration::from_millis(fixture.random.below(1_500)));
        let before = fixture.written();
        let from = now();
        service.kill();
        assert!(leaving.quit());
        std::thread::sleep(Duration::from_millis(fixture.random.below(1_500)));
        service = fixture.serve();
        let until = service.fresh().taken_at;
        away.push(Away { from, until });
        fixture.ended(pid, Ending::Unseen);
        keeps_what_it_had(&before, &fixture.written());
        fixture.compare(&service, &format!("round {round}"));
    }
    let late = fixture.start();
    let late_pid = late.pid();
    wait_until("the late one to be written", TIMEOUT, || fixture.written().contains_key(&late_pid));
    late.kill();
    fixture.ended(late_pid, Ending::Killed);

    let after = fixture.hear();
    println!(
        "recording takes {} ns alone, {} ns with a service, {} ns with one that is killed: the \
        worst process's median",
        alone.median_ns, steady.median_ns, after.median_ns
    );
    assert_eq!((after.failed, after.problems), (0, 0), "{after:?}");
    // What else the machine does changes a median several times over; a service that is waited for
    // would add milliseconds.
    let bound_ns = 5 * steady.median_ns.max(alone.median_ns) + 20_000;
    assert!(after.median_ns < bound_ns, "{steady:?}, then {after:?}");
    let pids: Vec<u32> = fixture.workloads.iter().map(Workload::pid).collect();
    let ended = now();
    service.end();
    for pid in &pids {
        assert_eq!(fixture.written()[pid].ending, None, "{pid} lives");
    }
    has_no_other_holes(&fixture.state, began, ended, &away);
    for workload in fixture.workloads.drain(..) {
        assert!(workload.quit(), "a workload ended badly, or by a signal");
    }
    fixture.emulator.shutdown().unwrap();
}

/// What was written before a kill is there after it, and has only grown.
fn keeps_what_it_had(before: &BTreeMap<u32, ProcessReport>, after: &BTreeMap<u32, ProcessReport>) {
    for (pid, old) in before {
        let new = after.get(pid).unwrap_or_else(|| panic!("process {pid} was lost"));
        assert_eq!(new.process.identity, old.process.identity);
        assert_eq!(new.first_seen, old.first_seen);
        assert!(new.last_seen >= old.last_seen);
        // A value counts until the next collection, also the one that finds the process gone.
        let last = new.ended.unwrap_or(new.last_seen);
        let lived = Duration::from_nanos(last.since_ns(new.first_seen)).as_secs_f64();
        for had in &old.usage {
            // It may have more kinds by now.
            let is_same = |has: &&UsageReport| (&has.device, has.kind) == (&had.device, had.kind);
            let has = new.usage.iter().find(is_same).unwrap_or_else(|| panic!("{had:?} was lost"));
            assert!(has.byte_seconds >= had.byte_seconds && has.peak_bytes >= had.peak_bytes);
            assert!(has.watched_seconds >= had.watched_seconds);
            assert!(has.watched_seconds <= lived + 0.001, "nothing counts twice: {new:?}");
        }
    }
}

/// The history lacks the time without a service and what was not written when it was killed, and
/// nothing else.
fn has_no_other_holes(state: &Path, began: Timestamp, ended: Timestamp, away: &[Away]) {
    let reader = HistoryReader::open(&database_in(state)).unwrap();
    let mut samples = BTreeSet::from([ended]);
    for moment in (began.0..ended.0).step_by(usize::try_from(POLL_INTERVAL.as_nanos()).unwrap()) {
        // Before the first collection there is nothing.
        let Ok(past) = reader.snapshot_at(Timestamp(moment)) else { continue };
        samples.insert(past.snapshot.taken_at);
    }
    let samples: Vec<Timestamp> = samples.into_iter().collect();
    assert!(samples.len() > 10, "{samples:?}");
    let mut longest = Duration::ZERO;
    for pair in samples.windows(2) {
        let hole = Duration::from_nanos(pair[1].since_ns(pair[0]));
        let inside: Vec<&Away> = away
            .iter()
            .filter(|away| away.from < pair[1] && away.until.0 + SLACK_NS > pair[0].0)
            .collect();
        let without: u64 = inside.iter().map(|away| away.until.since_ns(away.from)).sum();
        let unwritten = if inside.is_empty() { LATE } else { UNWRITTEN };
        let allowed = Duration::from_nanos(without) + unwritten;
        assert!(hole < allowed, "{hole:?} at {pair:?}, and {allowed:?} are allowed; {away:?}");
        longest = longest.max(hole - hole.min(Duration::from_nanos(without)));
    }
    println!("{} samples; beyond the time without a service {longest:?}", samples.len());
}
