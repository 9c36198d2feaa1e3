//! The service and its view, at the boundary that servers see.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{HostUsage, Snapshot};

use super::{FreshError, NotReady, Published, Publisher, Service, ServiceOptions, View};
use crate::history::{HistoryOptions, HistoryReader, HistoryWriter, database_in};
use telltale_collector::CollectOptions;
use telltale_collector::clock::SystemClock;
use telltale_harness::{Scratch, wait_until};

const TIMEOUT: Duration = Duration::from_secs(20);

fn start(interval: Duration) -> (Scratch, Service) {
    let root = Scratch::new();
    let collect = CollectOptions { root: root.path().to_owned(), ..CollectOptions::default() };
    let service =
        Service::start(ServiceOptions { collect, interval, legacy: None, known: None }).unwrap();
    (root, service)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(future)
}

#[test]
fn something_is_published_at_once_and_again_each_interval() {
    let (_root, service) = start(Duration::from_millis(5));
    let view = service.view();
    assert!(view.latest().sequence >= 1);
    wait_until("three more", TIMEOUT, || view.latest().sequence >= 4);
    let latest = view.latest();
    assert!(latest.service.collections >= latest.sequence - 1, "{latest:?}");
    assert_eq!(latest.snapshot.sources[0].name, "tenstorrent");
}

#[test]
fn those_who_wait_for_a_fresh_one_share_it() {
    let (publisher, view) = published_once(Duration::from_secs(3600));
    let Published { snapshot, service, .. } = (*view.latest()).clone();
    // Nothing begins before both have asked: `join` polls in order.
    let publish = async {
        assert!(publisher.is_wanted());
        publisher.begin();
        publisher.publish(snapshot, service);
    };
    let (one, two, ()) =
        wait(async { tokio::join!(view.fresh(TIMEOUT), view.fresh(TIMEOUT), publish) });
    let (one, two) = (one.unwrap().sequence, two.unwrap().sequence);
    assert_eq!(one, two);
    assert!(!publisher.is_wanted(), "one collection answers both");
}

#[test]
fn who_asks_later_gets_a_later_one() {
    let (_root, service) = start(Duration::from_secs(3600));
    let view = service.view();
    let first = wait(view.fresh(TIMEOUT)).unwrap().sequence;
    assert!(wait(view.fresh(TIMEOUT)).unwrap().sequence > first);
}

#[test]
fn after_the_end_nothing_is_ready_and_nobody_waits() {
    let (_root, service) = start(Duration::from_secs(3600));
    let view = service.view();
    assert_eq!(view.is_ready(), Ok(()));
    let asked = Instant::now();
    drop(service);
    assert!(asked.elapsed() < TIMEOUT);
    assert_eq!(view.is_ready(), Err(NotReady::Stopped));
    assert!(matches!(wait(view.fresh(TIMEOUT)), Err(FreshError::Stopped)));
    wait(view.stopped());
    assert!(view.latest().sequence >= 1, "what was published last is still there");
}

fn published_once(interval: Duration) -> (Publisher, View) {
    let (_root, service) = start(Duration::from_secs(3600));
    let first = service.view().latest();
    Publisher::new(interval, Arc::clone(&first.snapshot), first.service.clone()).unwrap()
}

#[test]
fn what_is_too_old_is_not_ready_and_timeout_ends() {
    let (publisher, view) = published_once(Duration::from_millis(1));
    let old = || matches!(view.is_ready(), Err(NotReady::TooOld { .. }));
    wait_until("it to be too old", TIMEOUT, old);
    let asked = wait(view.fresh(Duration::from_millis(1)));
    assert!(matches!(asked, Err(FreshError::TimedOut(_))));
    assert!(publisher.is_wanted());
    publisher.begin();
    assert!(!publisher.is_wanted());
}

/// A host with this share of its processors' time.
fn host(cpu_ratio: Reading<f64>) -> HostUsage {
    HostUsage {
        cpu_ratio,
        processors: Reading::absent(Absence::Permission, ""),
        used_bytes: Reading::absent(Absence::Permission, ""),
        memory_bytes: Reading::absent(Absence::Permission, ""),
        load_1: Reading::absent(Absence::Permission, ""),
        load_5: Reading::absent(Absence::Permission, ""),
        load_15: Reading::absent(Absence::Permission, ""),
    }
}

#[test]
fn who_waits_for_rates_brings_two_collections() {
    let (publisher, view) = published_once(Duration::from_secs(3600));
    let Published { snapshot, service, .. } = (*view.latest()).clone();
    let collections = Cell::new(0);
    // As the collecting thread does: rates come with a collection that is not too soon.
    let collecting = async {
        let mut first = None;
        loop {
            if publisher.shared.take_change() {
                collections.set(collections.get() + 1);
                let first = *first.get_or_insert_with(Instant::now);
                let cpu = match first.elapsed() >= Duration::from_millis(200) {
                    true => Reading::new(0.5, Timestamp(1)),
                    false => Reading::absent(Absence::NotYet, ""),
                };
                let host = Some(Box::new(host(cpu)));
                let next = Snapshot { host, ..(*snapshot).clone() };
                publisher.publish(Arc::new(next), service.clone());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let found = wait(async {
        tokio::select! {
            found = view.with_usage() => found,
            () = collecting => unreachable!("it has no end"),
        }
    });
    assert_eq!(found.snapshot.host.as_ref().unwrap().cpu_ratio.value(), Some(&0.5));
    assert_eq!(collections.get(), 2);
    // They are there now, and the next call has nothing done.
    assert_eq!(wait(view.with_usage()).sequence, found.sequence);
    assert!(!publisher.shared.take_change());
}

#[test]
fn rates_that_will_not_come_are_not_waited_for() {
    let (publisher, view) = published_once(Duration::from_secs(3600));
    let Published { snapshot, service, .. } = (*view.latest()).clone();
    let host = Some(Box::new(host(Reading::absent(Absence::Permission, ""))));
    publisher.publish(Arc::new(Snapshot { host, ..(*snapshot).clone() }), service);
    let found = wait(view.with_usage());
    assert_eq!(found.sequence, view.latest().sequence);
    assert!(!publisher.shared.take_change(), "no collection brings them");
}

#[test]
fn tallies_of_one_name_count_together() {
    let (publisher, _) = published_once(Duration::from_secs(1));
    let control = publisher.control();
    control.tally("a").add(2);
    control.tally("a").add(3);
    control.tally("b").add(1);
    let all: Vec<_> = publisher.shared.tallies().all();
    let all: Vec<_> = all.iter().map(|one| (one.queue, one.total)).collect();
    assert_eq!(all, [("a", 5), ("b", 1)]);
}

/// The system's clocks, with the wall clock set by so many seconds.
#[derive(Default)]
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        let by_ns = self.0.load(Ordering::Relaxed) * 1_000_000_000;
        Timestamp(SystemClock.now().0.saturating_add_signed(by_ns))
    }

    fn monotonic_ns(&self) -> u64 {
        SystemClock.monotonic_ns()
    }
}

#[test]
fn a_wall_clock_that_jumps_changes_neither_the_pace_nor_what_is_known() {
    let (root, state) = (Scratch::new(), Scratch::new());
    let machine =
        Machine::create(&root.join("m"), MachineKind::N150, &MachineOptions::default()).unwrap();
    let collect = CollectOptions { root: machine.root().to_owned(), ..CollectOptions::default() };
    let clock = Arc::new(Set::default());
    let options =
        ServiceOptions { collect, interval: Duration::from_millis(20), legacy: None, known: None };
    let given = || Arc::clone(&clock) as Arc<dyn Clock>;
    let service = Service::start_with_clock(options, given()).unwrap();
    let view = service.view();
    service.control().set_rules(crate::alerts::Rule::defaults());
    let kept = HistoryOptions { write_seconds: 1, ..HistoryOptions::default() };
    let writer =
        HistoryWriter::start(state.path(), &kept, Duration::from_millis(20), given()).unwrap();
    let mut walls = Vec::new();
    for jump in [86_400, -3_600, 86_400, -3_600, -30 * 86_400, -3_600, 400 * 86_400, -1, 5] {
        clock.0.fetch_add(jump, Ordering::Relaxed);
        let before = view.latest().sequence;
        wait_until("five more", TIMEOUT, || {
            let latest = view.latest();
            writer.offer(Arc::clone(&latest.snapshot));
            latest.sequence >= before + 5
        });
        let latest = view.latest();
        // Ready is who is not much later than its 20 ms, which a busy machine may be for a moment.
        wait_until("a ready service", TIMEOUT, || view.is_ready() == Ok(()));
        assert!(view.is_alive());
        assert!(latest.snapshot.taken_at.0.abs_diff(clock.now().0) < 20_000_000_000);
        let device = &latest.snapshot.devices[0];
        let heat = &device.telemetry.temperature_celsius;
        assert!(heat.value().is_some(), "after {jump} s: {heat:?}");
        assert_eq!(latest.alerts.alerts, []);
        assert!(latest.snapshot.collected_in_ns < 20_000_000_000);
        walls.push(latest.snapshot.taken_at);
    }
    let metrics = writer.metrics();
    assert_eq!((metrics.failures, metrics.problem), (0, None));
    drop(writer);
    let reader = HistoryReader::open(&database_in(state.path())).unwrap();
    for wall in walls {
        assert_eq!(reader.snapshot_at(wall).unwrap().snapshot.devices.len(), 1);
    }
}
