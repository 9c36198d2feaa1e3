//! A process that stands still keeps what it has counted for as long as it lives: the sum over its row
//! must not fall.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use telltale_collector::clock::SystemClock;
use telltale_collector::{CollectOptions, Collector, EndpointUse};
use telltale_emulator::MachineKind;
use telltale_schema::clock::{Clock, ManualClock};
use telltale_schema::snapshot::{MetricValue, Snapshot};

use crate::collecting::bench::{Bench, process};
use crate::collecting::workload::{Role, command, let_begin};

/// The counters of the process, by name.
fn counters(snapshot: &Snapshot, pid: u32) -> BTreeMap<String, u64> {
    let metrics = &process(snapshot, pid).metrics;
    let counter = |value: &MetricValue| match value {
        MetricValue::Counter(count) => Some(*count),
        MetricValue::Gauge(_) | MetricValue::Histogram { .. } => None,
    };
    let counters = metrics.iter().filter_map(|one| Some((one.name.clone(), counter(&one.value)?)));
    counters.collect()
}

#[test]
fn a_stopped_process_keeps_its_counters_while_it_lives() {
    let bench = Bench::new(MachineKind::N150);
    let mut started = command(&bench.child(Role::Runtime, 1), |program| Command::new(program));
    let mut child = telltale_harness::ChildGuard::spawn(&mut started);
    let_begin(&mut child);
    let clock = Arc::new(ManualClock::starting_at(SystemClock.now()));
    let options = CollectOptions { endpoints: EndpointUse::Always, ..bench.options() };
    let mut collector = Collector::with_clock(options, Arc::clone(&clock) as Arc<_>).unwrap();
    let before = counters(&collector.collect(), child.id());
    assert_eq!((before["steps"], before["telltale_process_operations_total"]), (7, 11));
    child.pause();
    for seconds in [1, 58, 1, 1, 3_600] {
        clock.advance_ns(seconds * 1_000_000_000);
        assert_eq!(counters(&collector.collect(), child.id()), before, "{seconds} s later");
    }
    child.resume();
}
