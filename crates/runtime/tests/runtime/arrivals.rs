//! A second thread appears while the first one, which needs no locks until then, is busy.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::runtime::asking::{ask, numbered, started};
use telltale_harness::Scratch;
use telltale_runtime::{Device, MemoryKind};
use telltale_schema::snapshot::RecordingFaults;
use telltale_wire::{Query, QueryKind};

/// Sessions, each of which has its first thread alone at first.
const SESSIONS: u64 = 60;
/// Buffers that each thread has live at a time.
const LIVE: u64 = 300;
/// Buffers of the first thread before a second one appears, at least.
const ALONE: u64 = 1_000;
/// Buffers that each thread allocates once there are two.
const TOGETHER: u64 = 3_000;

fn address(thread: u64, buffer: u64) -> u64 {
    thread << 40 | buffer << 5
}

/// Allocates a thread's next buffer and frees the one that it allocated [`LIVE`] before.
fn step(device: &Device, thread: u64, buffer: u64) {
    device.allocate(MemoryKind::Dram, address(thread, buffer), 1 + buffer % 1_000);
    if let Some(old) = buffer.checked_sub(LIVE) {
        device.free(MemoryKind::Dram, address(thread, old));
    }
}

/// What a thread leaves live after `count` buffers.
fn left(thread: u64, count: u64) -> impl Iterator<Item = u64> {
    (count - LIVE..count).map(move |buffer| address(thread, buffer))
}

/// Churns on two threads, of which the second appears at some moment of the first one's churn.
/// Returns how many buffers were allocated. The second thread frees what the first one leaves.
fn churn(device: &Device, moment: u64) -> u64 {
    let done = AtomicU64::new(0);
    let alone = ALONE + moment;
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            while done.load(Ordering::Relaxed) < alone {
                std::hint::spin_loop();
            }
            (0..TOGETHER).for_each(|buffer| step(device, 1, buffer));
        });
        let mut count = 0;
        while count < alone + TOGETHER || !second.is_finished() {
            step(device, 0, count);
            count += 1;
            done.store(count, Ordering::Relaxed);
        }
        let third = scope.spawn(move || {
            left(0, count).for_each(|address| device.free(MemoryKind::Dram, address));
        });
        left(1, TOGETHER).for_each(|address| device.free(MemoryKind::Dram, address));
        third.join().expect("the third thread frees");
        count + TOGETHER
    })
}

#[test]
fn a_thread_that_appears_in_the_middle_loses_and_doubles_nothing() {
    let scratch = Scratch::new();
    for session in 0..SESSIONS {
        let runtime = started(&scratch);
        let device = runtime.open_device(numbered(0));
        let allocated = churn(&device, 17 * session);
        let report = ask(&scratch, Query::of(QueryKind::Memory));
        assert_eq!(report.faults, RecordingFaults::default(), "session {session}");
        let [kind] = &*report.devices[0].kinds else { panic!("one kind was used") };
        let usage = (kind.usage.allocations, kind.usage.live_buffers, kind.usage.live_bytes);
        assert_eq!(usage, (allocated, 0, 0), "session {session}");
    }
}

#[test]
fn a_thread_after_the_first_one_has_ended_finds_its_buffers() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let device = runtime.open_device(numbered(0));
    let device = &device;
    for thread in 0..3 {
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (0..LIVE).for_each(|buffer| step(device, thread, buffer));
                if let Some(before) = thread.checked_sub(1) {
                    left(before, LIVE).for_each(|live| device.free(MemoryKind::Dram, live));
                }
            });
        });
    }
    left(2, LIVE).for_each(|live| device.free(MemoryKind::Dram, live));
    let report = ask(&scratch, Query::of(QueryKind::Memory));
    assert_eq!(report.faults, RecordingFaults::default());
    assert_eq!(report.devices[0].kinds[0].usage.live_buffers, 0);
}
