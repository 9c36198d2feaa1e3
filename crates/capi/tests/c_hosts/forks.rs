//! Forked children: each records on its own, exactly, and the parent loses nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::c_hosts::asked::ask;
use crate::c_hosts::installed::{Linked, install, program};
use telltale_harness::{ChildGuard, Scratch, rounds};
use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::snapshot::{MetricValue, RecordingFaults};
use telltale_wire::Report;

const TIMEOUT: Duration = Duration::from_secs(60);
const CHILDREN: u64 = 8;

/// What a process counts besides its memory.
#[derive(Debug, PartialEq)]
struct Counted {
    operations: Option<u64>,
    traffic: Option<(u64, u64)>,
    throttlings: Option<u64>,
    jobs: MetricValue,
    loss: MetricValue,
    job_seconds: MetricValue,
    programs: Option<u64>,
    problems: u64,
}

impl Counted {
    fn of(report: &Report) -> Self {
        let [device] = &report.devices[..] else { panic!("one device is open: {report:?}") };
        let value = |name: &str| {
            let found = report.metrics.iter().find(|metric| metric.name == name);
            found.map(|metric| metric.value.clone())
        };
        let problems = value("telltale_problems_total").unwrap_or(MetricValue::Counter(0));
        let MetricValue::Counter(problems) = problems else { panic!("{problems:?} is no count") };
        let traffic = device.traffic;
        Self {
            operations: device.operations,
            traffic: traffic.map(|it| (it.host_to_device_bytes, it.device_to_host_bytes)),
            throttlings: device.throttling.map(|throttling| throttling.events),
            jobs: value("jobs").expect("it is registered"),
            loss: value("loss").expect("it is registered"),
            job_seconds: value("job_seconds").expect("it is registered"),
            programs: report.programs.as_ref().map(|programs| programs.cached),
            problems,
        }
    }
}

fn live_dram(report: &Report) -> u64 {
    let mut kinds = report.devices.iter().flat_map(|device| &device.kinds);
    kinds.find(|kind| kind.kind == MemoryKind::Dram).expect("it has DRAM").usage.live_bytes
}

/// What the endpoints in `directory` count, with the DRAM that tells the processes apart.
fn counted(directory: &RuntimeDirectory) -> BTreeMap<u64, Counted> {
    let listing = directory.list().expect("a sound directory");
    let reports = listing.endpoints.iter().map(|entry| ask(&directory.path().join(&entry.name)));
    reports.map(|report| (live_dram(&report), Counted::of(&report))).collect()
}

/// DRAM and faults of each process that has a ledger in `directory`.
fn recorded(directory: &RuntimeDirectory) -> BTreeMap<u32, (MemoryUsage, RecordingFaults)> {
    let listing = directory.list().expect("a sound ledger");
    assert_eq!(listing.ledgers.len(), listing.endpoints.len());
    let read = |name: &str| {
        let mut reader = LedgerReader::open_at(directory, name).expect("a sound ledger");
        let reading = reader.read().expect("a sound ledger");
        let dram = reading
            .usage
            .iter()
            .find(|(_, kind, _)| *kind == MemoryKind::Dram)
            .expect("a sound ledger")
            .2;
        (reading.owner.pid, (dram, reading.faults))
    };
    listing.ledgers.iter().map(|entry| read(&entry.name)).collect()
}

#[test]
fn children_record_exactly_and_leave_nothing() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let host = program("tests/c/forks.c", &prefix, Linked::Shared);
    for round in 0..rounds(5, 100) {
        let path = scratch.join(format!("run-{round}"));
        std::fs::create_dir(&path).unwrap();
        let mut command = Command::new(&host);
        command.arg(&path).arg(CHILDREN.to_string()).env_remove("TELLTALE_DISABLED");
        let mut parent = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(parent.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready");

        let directory = RuntimeDirectory::open(&path, Purpose::Reading).unwrap();
        let mut found = recorded(&directory);
        let (own, faults) = found.remove(&parent.id()).unwrap();
        assert_eq!((own.live_bytes, faults), (1000, RecordingFaults::default()));
        let mut held: Vec<u64> = found.values().map(|(usage, _)| usage.live_bytes).collect();
        held.sort_unstable();
        let expected: Vec<u64> = (0..CHILDREN).map(|number| 100 * number + 7).collect();
        assert_eq!(held, expected);
        for (usage, faults) in found.values() {
            assert_eq!((usage.allocations, *faults), (1, RecordingFaults::default()));
        }

        // What the parent counted is the parent's, and each child counts from 0.
        let counts = |jobs: u64| Counted {
            operations: Some(3 * jobs),
            traffic: Some((100 * jobs, 10 * jobs)),
            throttlings: Some(u64::from(jobs == 1000)),
            jobs: MetricValue::Counter(jobs),
            loss: MetricValue::Gauge(2.5),
            job_seconds: MetricValue::Histogram {
                bounds: vec![1.0],
                counts: vec![jobs, 0],
                sum: 0.5 * jobs as f64,
            },
            programs: (jobs == 1000).then_some(2),
            problems: u64::from(jobs == 1000),
        };
        let children = (0..CHILDREN).map(|number| (100 * number + 7, counts(number)));
        let expected: BTreeMap<u64, Counted> = children.chain([(1000, counts(1000))]).collect();
        assert_eq!(counted(&directory), expected);

        drop(parent.child().stdin.take());
        assert!(parent.wait_within("the parent and its children to end", TIMEOUT).success());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }
}
