//! Memory of real processes, by ledger and by endpoint, and after their end.

use std::fs;
use std::process::Command;
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector, EndpointUse};
use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, wait_until};
use telltale_schema::memory::MemoryKind;
use telltale_schema::process::ProcessStat;
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{Accounting, ProcessSource, ProcessState, Snapshot};

use crate::collecting::bench::{Bench, dram, process, subjects};
use crate::collecting::workload::{Child, Role, command, let_begin, start};

const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn processes_are_counted_once_whatever_they_offer() {
    let bench = Bench::new(MachineKind::N300);
    let roles = [
        (Role::Ledger, 1_000, ProcessSource::Ledger),
        (Role::LedgerAndEndpoint, 20_000, ProcessSource::Ledger),
        (Role::Endpoint, 300_000, ProcessSource::Endpoint),
        (Role::HandedLedger, 4_000_000, ProcessSource::Ledger),
    ];
    let children: Vec<_> =
        roles.iter().map(|(role, bytes, _)| start(&bench.child(*role, *bytes))).collect();
    for endpoints in [EndpointUse::WhereNeeded, EndpointUse::Always] {
        let options = CollectOptions { endpoints, ..bench.options() };
        let mut collector = Collector::new(options).unwrap();
        for round in 0..3 {
            let snapshot = collector.collect();
            assert_eq!(subjects(&snapshot), Vec::<String>::new(), "{endpoints:?}, round {round}");
            for (child, (role, bytes, source)) in children.iter().zip(&roles) {
                let process = process(&snapshot, child.id());
                assert_eq!(process.state, ProcessState::Alive);
                assert_eq!(process.known_by, Some(*source), "{role:?}");
                assert_eq!(process.devices.len(), 2);
                assert_eq!(process.devices[0].kinds[0].usage.live_bytes(), *bytes);
                assert!(process.command.value().unwrap().contains("workload::role"));
                assert!(process.uptime_seconds.value().is_some());
            }
            for device in 0..2 {
                let parts = dram(&snapshot, device);
                assert_eq!((parts.total_bytes, parts.processes_bytes), (4_321_000, 4_321_000));
            }
        }
    }
}

#[test]
fn without_endpoints_only_ledgers_are_read() {
    let bench = Bench::new(MachineKind::N150);
    let _ledger = start(&bench.child(Role::Ledger, 1));
    let _endpoint = start(&bench.child(Role::Endpoint, 2));
    let options = CollectOptions { endpoints: EndpointUse::Never, ..bench.options() };
    let snapshot = Collector::new(options).unwrap().collect();
    assert_eq!(dram(&snapshot, 0).total_bytes, 1);
}

#[test]
fn an_end_before_the_watch_begins_is_reported_by_it() {
    let bench = Bench::new(MachineKind::N150);
    let mut killed = start(&bench.child(Role::Ledger, 70));
    let mut collector = bench.collector();
    assert_eq!(dram(&collector.collect(), 0).total_bytes, 70);
    killed.kill();
    assert!(collector.watch(), "nothing else would tell");
    assert!(!collector.watch(), "it is told once");
    let snapshot = collector.collect();
    assert!(snapshot.devices[0].kind(MemoryKind::Dram).is_none_or(|one| one.total_bytes == 0));
}

#[test]
fn a_list_of_holders_that_is_older_than_an_end_brings_nobody_back() {
    let mut bench = Bench::new(MachineKind::N150);
    let mut killed = start(&bench.child(Role::Ledger, 70));
    bench.machine.set_holders(0, &[killed.id()]).unwrap();
    let mut collector = bench.collector();
    let living = |snapshot: &Snapshot| {
        let alive = snapshot.processes.iter().filter(|one| one.state == ProcessState::Alive);
        alive.map(|one| one.pid).collect::<Vec<_>>()
    };
    assert_eq!(living(&collector.collect()), [Some(killed.id())]);
    assert!(!collector.watch());
    killed.kill();
    // The driver has not taken it off its list yet, or it was read before the end.
    let snapshot = collector.collect();
    assert_eq!(living(&snapshot), [], "{:?}", snapshot.processes);
}

#[test]
fn a_killed_process_is_in_no_total_and_its_last_values_are_shown() {
    let bench = Bench::new(MachineKind::N150);
    let mut killed = start(&bench.child(Role::LedgerAndEndpoint, 70));
    let lives = start(&bench.child(Role::Ledger, 5));
    let mut running = bench.collector();
    assert_eq!(dram(&running.collect(), 0).total_bytes, 75);
    running.watch();
    let mut pids = Vec::new();
    running.read_memory(|pid, reading| {
        assert_eq!(reading.owner.pid, pid);
        pids.push(pid);
    });
    assert_eq!(pids.len(), 2);
    killed.kill();
    wait_until("the end to be noticed", TIMEOUT, || {
        let mut count = 0;
        running.read_memory(|_, _| count += 1);
        count == 1
    });
    for snapshot in [running.collect(), bench.collector().collect()] {
        assert_eq!(dram(&snapshot, 0).total_bytes, 5);
        let dead = process(&snapshot, killed.id());
        assert_eq!(dead.state, ProcessState::Dead);
        // Its file still tells whose it was.
        assert_eq!(dead.uid.value(), Some(&rustix::process::geteuid().as_raw()));
        assert_eq!(dead.user.value(), process(&snapshot, lives.id()).user.value());
        assert_eq!(dead.command.absence(), Some((Absence::Ended, "")));
        assert_eq!(dead.uptime_seconds.absence(), Some((Absence::Ended, "")));
        assert_eq!(dead.devices[0].kinds[0].usage.live_bytes(), 70);
        assert_eq!(subjects(&snapshot), Vec::<String>::new());
    }
}

#[test]
fn memory_alone_is_read_without_a_collection() {
    let bench = Bench::new(MachineKind::N300);
    let both = start(&bench.child(Role::LedgerAndEndpoint, 70));
    let ledger = start(&bench.child(Role::Ledger, 5));
    let endpoint = start(&bench.child(Role::Endpoint, 600));
    let _liar = start(&Child { named: ledger.id(), ..bench.child(Role::Squatter, 8_000) });
    let mut killed = start(&bench.child(Role::LedgerAndEndpoint, 90_000));
    killed.kill();
    let mut read = Vec::new();
    bench.collector().read_memory_once(|pid, reading| {
        assert_eq!(reading.owner.pid, pid);
        read.push((pid, reading.usage.iter().map(|(_, _, usage)| usage.live_bytes).sum::<u64>()));
    });
    let mut asked = Vec::new();
    bench.collector().ask_memory_once(|pid, report| {
        let kinds = report.devices.iter().flat_map(|device| &device.kinds);
        asked.push((pid, kinds.map(|kind| kind.usage.live_bytes).sum::<u64>()));
    });
    read.retain(|(pid, _)| [both.id(), ledger.id(), endpoint.id(), killed.id()].contains(pid));
    let sorted = |mut found: Vec<(u32, u64)>| {
        found.sort_unstable();
        found
    };
    assert_eq!(sorted(read), sorted(vec![(both.id(), 140), (ledger.id(), 10)]));
    assert_eq!(sorted(asked), sorted(vec![(both.id(), 140), (endpoint.id(), 1_200)]));
}

#[test]
fn a_process_that_ends_well_is_gone_from_a_running_collector() {
    let bench = Bench::new(MachineKind::N150);
    let mut ends = start(&bench.child(Role::Ledger, 70));
    let mut running = bench.collector();
    assert_eq!(running.collect().processes.len(), 1);
    drop(ends.child().stdin.take());
    ends.wait_within("the workload to end", TIMEOUT);
    let snapshot = running.collect();
    assert_eq!(snapshot.processes.len(), 0);
    assert_eq!(snapshot.devices[0].kind(MemoryKind::Dram), None);
}

#[test]
fn a_holder_is_tied_to_its_memory() {
    let mut bench = Bench::new(MachineKind::N150);
    let child = start(&bench.child(Role::Ledger, 9));
    let silent = std::process::id();
    bench.machine.set_holders(0, &[child.id(), child.id(), silent]).unwrap();
    let snapshot = bench.collector().collect();
    let mut holders = snapshot.devices[0].holders.value().unwrap().clone();
    holders.sort_by_key(|holder| holder.memory_known);
    assert_eq!((holders[0].pid, holders[0].memory_known), (Some(silent), false));
    assert_eq!((holders[1].pid, holders[1].memory_known), (Some(child.id()), true));
    assert_eq!(process(&snapshot, child.id()).devices[0].open_descriptors, 2);
    let silent_process = process(&snapshot, silent);
    assert_eq!(silent_process.known_by, None);
    // The kernel shows who it is, as the ledger of the other one says.
    let (shown, recorded) = (silent_process.identity, process(&snapshot, child.id()).identity);
    let (shown, recorded) = (shown.unwrap(), recorded.unwrap());
    assert_eq!(shown.pid, silent);
    assert_eq!(shown.boot_id, recorded.boot_id);
    assert_eq!(shown.pid_namespace, recorded.pid_namespace);
    let stat = fs::read("/proc/self/stat").unwrap();
    assert_eq!(shown.start_time_ticks, ProcessStat::parse(&stat).unwrap().start_time_ticks);
}

#[test]
fn a_gateway_is_open_and_nothing_is_there() {
    let mut bench = Bench::new(MachineKind::N300);
    let child = start(&Child { chips: &bench.chips[1..], ..bench.child(Role::Ledger, 9) });
    bench.machine.set_holders(0, &[child.id()]).unwrap();
    let snapshot = bench.collector().collect();
    let held = process(&snapshot, child.id()).devices.iter();
    let accounting: Vec<Accounting> = held.map(|held| held.accounting).collect();
    assert_eq!(accounting, [Accounting::OpenOnly, Accounting::Recorded]);
}

#[test]
fn a_process_that_links_the_runtime_is_known_in_full() {
    let bench = Bench::new(MachineKind::N300);
    let start = command(&bench.child(Role::Runtime, 4_096), |program| Command::new(program));
    let mut child = ChildGuard::spawn(&mut { start });
    let_begin(&mut child);
    for endpoints in [EndpointUse::Never, EndpointUse::WhereNeeded, EndpointUse::Always] {
        let options = CollectOptions { endpoints, ..bench.options() };
        let mut collector = Collector::new(options).unwrap();
        for _ in 0..2 {
            let snapshot = collector.collect();
            assert_eq!(subjects(&snapshot), Vec::<String>::new());
            assert_eq!(dram(&snapshot, 0).total_bytes, 4_096);
            assert_eq!(dram(&snapshot, 1).total_bytes, 4_096);
            let process = process(&snapshot, child.id());
            assert_eq!(process.known_by, Some(ProcessSource::Ledger));
            let names: Vec<&str> = process.metrics.iter().map(|one| one.name.as_str()).collect();
            if endpoints == EndpointUse::Always {
                assert!(names.contains(&"steps"), "{names:?}");
                assert!(names.contains(&"telltale_process_operations_total"), "{names:?}");
            } else {
                assert_eq!(names, Vec::<&str>::new());
            }
        }
    }
}
