//! The service sees processes come and go at once: here its interval is an hour.

use std::fs;
use std::time::{Duration, Instant};

use telltale_emulator::MachineKind;
use telltale_harness::wait_until;
use telltale_node::service::{Service, ServiceOptions, View};
use telltale_schema::snapshot::{Process, ProcessState};

use crate::collecting::bench::Bench;
use crate::collecting::workload::{Role, start};

const TIMEOUT: Duration = Duration::from_secs(60);

fn serve(bench: &Bench) -> Service {
    let interval = Duration::from_secs(3600);
    Service::start(ServiceOptions { collect: bench.options(), interval, legacy: None, known: None })
        .unwrap()
}

fn process(view: &View, pid: u32) -> Option<Process> {
    let latest = view.latest();
    latest.snapshot.processes.iter().find(|one| one.pid == Some(pid)).cloned()
}

fn is_alive(view: &View, pid: u32) -> bool {
    process(view, pid).is_some_and(|one| one.state == ProcessState::Alive)
}

#[test]
fn a_process_is_seen_when_it_begins_and_when_it_is_killed() {
    let bench = Bench::new(MachineKind::N150);
    let service = serve(&bench);
    let view = service.view();
    for role in [Role::Ledger, Role::LedgerAndEndpoint, Role::Endpoint, Role::HandedLedger] {
        let mut child = start(&bench.child(role, 1000));
        let pid = child.id();
        wait_until("its begin to be seen", TIMEOUT, || is_alive(&view, pid));
        wait_until("its memory to be seen", TIMEOUT, || {
            view.latest().snapshot.devices[0].kinds.iter().any(|kind| kind.total_bytes == 1000)
        });
        child.kill();
        wait_until("its end to be seen", TIMEOUT, || !is_alive(&view, pid));
        let latest = view.latest();
        let total = latest.snapshot.devices[0].kinds.iter().map(|kind| kind.total_bytes);
        assert_eq!(total.sum::<u64>(), 0, "{role:?}: the dead are in no total");
        telltale_collector::clean(bench.options()).unwrap();
        wait_until("what it left to be gone", TIMEOUT, || process(&view, pid).is_none());
    }
}

#[test]
fn who_asks_once_what_is_used_gets_rates() {
    let bench = Bench::new(MachineKind::N150);
    let service = serve(&bench);
    let view = service.view();
    let child = start(&bench.child(Role::Ledger, 1000));
    wait_until("its begin to be seen", TIMEOUT, || is_alive(&view, child.id()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let before = (Instant::now(), view.latest().sequence);
    let found = runtime.block_on(view.with_usage());
    let milliseconds = u64::try_from(before.0.elapsed().as_millis()).unwrap();
    // One each quarter of a second, each with one that looks again, and one for the process's begin.
    let collections = found.sequence - before.1;
    let most = 2 * (milliseconds / 250 + 1) + 1;
    assert!(collections <= most, "{collections} in {milliseconds} ms");
    let host = found.snapshot.host.as_ref().unwrap();
    assert!(host.cpu_ratio.value().is_some());
    let used = found.snapshot.processes.iter().find(|one| one.pid == Some(child.id()));
    assert!(used.unwrap().usage.as_ref().unwrap().cpu_ratio.value().is_some());
}

#[test]
fn usage_is_read_while_it_is_watched_and_not_after() {
    let bench = Bench::new(MachineKind::N150);
    let service = serve(&bench);
    let view = service.view();
    let child = start(&bench.child(Role::Ledger, 1000));
    let used = || process(&view, child.id()).and_then(|one| one.usage);
    wait_until("its begin to be seen", TIMEOUT, || is_alive(&view, child.id()));
    assert!(used().is_none() && view.latest().snapshot.host.is_none());
    let watch = view.watch_usage();
    // At once, though the interval is an hour.
    wait_until("what it uses", TIMEOUT, || used().is_some());
    assert!(view.latest().snapshot.host.is_some());
    wait_until("a rate of it", TIMEOUT, || {
        let _begun = start(&bench.child(Role::Ledger, 1));
        used().is_some_and(|used| used.cpu_ratio.value().is_some())
    });
    drop(watch);
    wait_until("no use of it", TIMEOUT, || {
        let _begun = start(&bench.child(Role::Ledger, 1));
        used().is_none()
    });
    assert!(view.latest().snapshot.host.is_none());
}

#[test]
fn processes_of_a_directory_that_is_made_later_are_seen() {
    let bench = Bench::new(MachineKind::N150);
    fs::remove_dir(&bench.directory).unwrap();
    let service = serve(&bench);
    let view = service.view();
    for _ in 0..2 {
        assert!(!view.latest().snapshot.processes.iter().any(|one| one.pid.is_some()));
        fs::create_dir(&bench.directory).unwrap();
        let child = start(&bench.child(Role::LedgerAndEndpoint, 1000));
        wait_until("it to be seen", TIMEOUT, || is_alive(&view, child.id()));
        fs::remove_dir_all(&bench.directory).unwrap();
        wait_until("it to be gone", TIMEOUT, || process(&view, child.id()).is_none());
    }
}

#[test]
fn many_changes_are_few_collections() {
    let bench = Bench::new(MachineKind::N150);
    let service = serve(&bench);
    let view = service.view();
    let before = (Instant::now(), view.latest().sequence);
    let name = bench.directory.join("metrics_7.sock");
    for _ in 0..2000 {
        fs::write(&name, "").unwrap();
        fs::remove_file(&name).unwrap();
    }
    let collections = view.latest().sequence - before.1;
    let milliseconds = u64::try_from(before.0.elapsed().as_millis()).unwrap();
    // The gap between two is 15 ms at least.
    assert!(collections <= milliseconds / 15 + 2, "{collections} in {milliseconds} ms");
    // The last change is seen, too.
    let child = start(&bench.child(Role::Ledger, 1000));
    wait_until("a process to be seen", TIMEOUT, || is_alive(&view, child.id()));
}

#[test]
fn files_of_others_bring_no_collection() {
    let bench = Bench::new(MachineKind::N150);
    let service = serve(&bench);
    let view = service.view();
    let child = start(&bench.child(Role::Ledger, 1000));
    wait_until("a process to be seen", TIMEOUT, || is_alive(&view, child.id()));
    let before = view.latest().sequence;
    for number in 0..200 {
        fs::write(bench.directory.join(format!("{number}")), "").unwrap();
    }
    let child = start(&bench.child(Role::Ledger, 1000));
    wait_until("the next process to be seen", TIMEOUT, || is_alive(&view, child.id()));
    // Two for its begin, and perhaps two for what came just before.
    let collections = view.latest().sequence - before;
    assert!(collections <= 5, "{collections}");
}
