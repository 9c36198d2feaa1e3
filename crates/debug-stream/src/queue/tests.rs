//! The queue's promises: order, bounds, losses in their place, exact readability, memory given back.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use telltale_harness::wait_until;

use super::*;
use crate::{Published, Stream, StreamCounters, StreamOptions};

const ROOMY: Bounds = Bounds { events: 65_536, bytes: 1 << 28 };

/// What a reader got: an event's sequence number and length, or losses.
#[derive(Debug, PartialEq)]
enum Got {
    Event(u64, usize),
    Lost(Losses),
    Nothing,
}

fn take(reader: &mut Reader) -> Got {
    let taken = reader.take(|record| {
        let Body { facts, data, .. } = record.body;
        let marks = data.iter().all(|&byte| byte == mark(facts.numbers[0]));
        assert!(marks, "the bytes are those of the event");
        Got::Event(record.sequence, data.len())
    });
    match taken {
        NextRecord::Event(got) => got,
        NextRecord::Lost(lost) => Got::Lost(lost),
        NextRecord::Nothing => Got::Nothing,
        NextRecord::Foreign => panic!("this is the process that connected"),
    }
}

fn mark(kind: u32) -> u8 {
    u8::try_from(kind % 251).unwrap()
}

fn push(queue: &Queue, kind: u32, bytes: usize) -> Result<(), QueueRefusal> {
    push_data(queue, kind, &vec![mark(kind); bytes])
}

fn push_data(queue: &Queue, kind: u32, data: &[u8]) -> Result<(), QueueRefusal> {
    let facts = Facts { numbers: [kind, 0, 0], ..Facts::default() };
    queue.push(&Draft { facts, dimensions: &[], name: b"", data })
}

fn readable(reader: &Reader) -> bool {
    let mut set = [PollFd::new(reader, PollFlags::IN)];
    poll(&mut set, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
}

/// Waits until there is something to take.
fn wait(reader: &Reader) {
    let mut set = [PollFd::new(reader, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut set, Some(&timeout)).unwrap(), 1, "waited a minute for an event");
}

fn connected(bounds: Bounds) -> (Arc<Queue>, Reader) {
    let queue = Queue::new(bounds);
    let reader = queue.connect(true, None).ok().unwrap();
    (queue, reader)
}

#[test]
fn events_of_all_sizes_come_out_in_order_and_whole() {
    let (queue, mut reader) = connected(ROOMY);
    let sizes = [0, 1, 63, 64, 65, 1_152, 65_536, 65_537, 300_000, 7, 2_000_000, 100];
    for round in 0..20 {
        for (kind, &bytes) in (0..).zip(&sizes) {
            push(&queue, kind, bytes).unwrap();
        }
        for (index, &bytes) in (0..).zip(&sizes) {
            let first = round * sizes.len() as u64;
            assert_eq!(take(&mut reader), Got::Event(first + index, bytes));
        }
    }
    assert_eq!(take(&mut reader), Got::Nothing);
}

#[test]
fn the_descriptor_is_readable_exactly_while_an_event_waits() {
    let (queue, mut reader) = connected(ROOMY);
    assert!(!readable(&reader), "nothing was published");
    for burst in [1, 2, 1_000] {
        for kind in 0..burst {
            push(&queue, kind, 100).unwrap();
            assert!(readable(&reader) && readable(&reader), "polling twice changes nothing");
        }
        for left in (0..burst).rev() {
            assert!(matches!(take(&mut reader), Got::Event(..)));
            assert_eq!(readable(&reader), left > 0);
        }
        assert_eq!(take(&mut reader), Got::Nothing);
        assert!(!readable(&reader));
    }
}

#[test]
fn after_the_end_of_a_connection_nothing_is_readable_and_nothing_accepted() {
    let (queue, reader) = connected(ROOMY);
    for kind in 0..3 {
        push(&queue, kind, 70_000).unwrap();
    }
    let kept = reader.as_fd().try_clone_to_owned().unwrap();
    assert!(matches!(queue.connect(true, None), Err(Unconnected::Occupied)));
    drop(reader);
    let mut set = [PollFd::new(&kept, PollFlags::IN)];
    assert_eq!(poll(&mut set, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap(), 0);
    assert_eq!(push(&queue, 1, 1), Err(QueueRefusal::Disconnected));
    let totals = queue.totals();
    assert_eq!((totals.reserved, totals.unread, totals.waiting_bytes), (3, 3, 0));
    assert_eq!(totals.idle_bytes, 0, "memory is given back");
    let mut reader = queue.connect(true, None).ok().unwrap();
    push(&queue, 9, 10).unwrap();
    assert_eq!(take(&mut reader), Got::Event(3, 10));
}

#[test]
fn the_newest_events_are_lost_and_reported_where_they_were_lost() {
    let (queue, mut reader) = connected(Bounds { events: 2, bytes: 1 << 20 });
    let full = Err(QueueRefusal::Lost(LossCause::Events));
    assert_eq!([(); 4].map(|()| push(&queue, 1, 8)), [Ok(()), Ok(()), full, full]);
    assert_eq!(take(&mut reader), Got::Event(0, 8));
    assert_eq!(push(&queue, 2, 16), Ok(()));
    assert_eq!(push(&queue, 2, 16), full);
    assert_eq!(take(&mut reader), Got::Event(1, 8));
    assert_eq!(take(&mut reader), Got::Lost(Losses { events: 2, ..Losses::default() }));
    assert!(readable(&reader));
    assert_eq!(take(&mut reader), Got::Event(4, 16));
    assert!(readable(&reader), "a loss waits, though no event does");
    assert_eq!(take(&mut reader), Got::Lost(Losses { events: 1, ..Losses::default() }));
    assert!(!readable(&reader));
    assert_eq!(take(&mut reader), Got::Nothing);
}

#[test]
fn an_event_above_the_byte_budget_is_lost_and_wakes_who_wants_to_know() {
    let (queue, mut reader) = connected(Bounds { events: 100, bytes: 4_096 });
    let too_large = Err(QueueRefusal::Lost(LossCause::Bytes));
    assert_eq!(push(&queue, 1, 5_000), too_large);
    assert_eq!(push(&queue, 1, 500_000), too_large);
    assert!(readable(&reader));
    assert_eq!(take(&mut reader), Got::Lost(Losses { bytes: 2, ..Losses::default() }));
    assert!(!readable(&reader));
    // 64 bytes of header belong to an event's size.
    assert_eq!(push(&queue, 1, 4_032), Ok(()));
    assert_eq!(push(&queue, 1, 0), too_large);
    assert_eq!(take(&mut reader), Got::Event(2, 4_032));
    drop(reader);
    let mut reader = queue.connect(false, None).ok().unwrap();
    assert_eq!(push(&queue, 1, 5_000), too_large);
    assert!(!readable(&reader), "this reader asked for events only");
    assert_eq!(take(&mut reader), Got::Nothing);
}

#[test]
fn what_a_burst_needed_goes_back_to_the_system() {
    let (queue, mut reader) = connected(ROOMY);
    for kind in 0..20_000 {
        push(&queue, kind, 1_152).unwrap();
    }
    let waiting = queue.totals().waiting_bytes;
    assert!(waiting >= 20_000 * 1_152, "{waiting}");
    while take(&mut reader) != Got::Nothing {}
    let after_the_burst = queue.totals().idle_bytes;
    assert!(after_the_burst >= pool::KEPT_BYTES * 2, "a burst may come again: {after_the_burst}");
    wait_until("idle memory to be given back", Duration::from_secs(60), || {
        push(&queue, 0, 8).unwrap();
        take(&mut reader);
        queue.totals().idle_bytes <= pool::KEPT_BYTES
    });
}

/// Whether `holds` in a forked child. It calls nothing but the queue, which then takes no lock and no memory.
fn in_a_child(holds: impl FnOnce() -> bool) -> bool {
    // SAFETY: as the caller sees to it, the child does nothing that needs a lock or memory, and
    // ends without running anything else.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!holds())) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above; `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status == 0
}

#[test]
fn a_child_counts_nothing_of_its_parents_events() {
    let stream = Stream::new(0, StreamOptions::default());
    let _consumer = stream.connect().unwrap();
    assert_eq!(stream.publisher().text("where", 0, "before the fork"), Published::Queued);
    assert_eq!((stream.counters().produced, stream.counters().waiting), (1, 1));
    assert!(in_a_child(|| stream.counters() == StreamCounters::default()));
}

#[test]
fn a_child_gets_errors_and_leaves_the_descriptor_alone() {
    let (queue, reader) = connected(ROOMY);
    push(&queue, 1, 70_000).unwrap();
    let mut reader = Some(reader);
    assert!(in_a_child(|| {
        let mut reader = reader.take().unwrap();
        let refused = push_data(&queue, 1, &[1; 8]) == Err(QueueRefusal::Disconnected);
        let foreign = matches!(reader.take(|_| ()), NextRecord::Foreign);
        drop(reader);
        refused && foreign
    }));
    let mut reader = reader.unwrap();
    assert!(readable(&reader));
    assert_eq!(take(&mut reader), Got::Event(0, 70_000));
    assert!(!readable(&reader));
}

#[test]
fn a_reader_that_panics_has_not_taken_the_event() {
    let (queue, mut reader) = connected(ROOMY);
    push(&queue, 5, 40).unwrap();
    let panics = std::panic::AssertUnwindSafe(|| reader.take(|_| panic!("as a sink may")));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(take(&mut reader), Got::Event(0, 40));
}

/// Pushes numbered events of changing lengths, and counts those that were refused.
fn produce(queue: &Queue, producer: u32, rounds: u64, refused: &AtomicU64) {
    let data = [mark(producer); 900];
    let facts = Facts { numbers: [producer, 0, 0], ..Facts::default() };
    for number in 0..rounds {
        let length = usize::try_from(number % 900).unwrap();
        let draft = Draft { facts, dimensions: &[number], name: b"", data: &data[..length] };
        if queue.push(&draft).is_err() {
            refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Everything that is produced is delivered or lost, in each producer's order, however the reader
/// is woken; sequence numbers leave gaps where something was lost and nowhere else.
fn stress(producers: u32, bounds: Bounds, waits_each_time: bool) {
    let rounds = u64::from(telltale_harness::rounds(20_000, 1_000_000));
    let (queue, reader) = connected(bounds);
    let refused = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let (mut events, mut lost, mut next) = (0, 0, 0);
    let mut newest = vec![None; producers as usize];
    thread::scope(|scope| {
        let workers: Vec<_> = (0..producers)
            .map(|producer| {
                let (queue, refused) = (&queue, &refused);
                scope.spawn(move || produce(queue, producer, rounds, refused))
            })
            .collect();
        let (done, queue) = (&done, &queue);
        scope.spawn(move || {
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            done.store(true, Ordering::Release);
            // Something to wake the reader by, when it has everything.
            while matches!(push_data(queue, u32::MAX, &[]), Err(QueueRefusal::Lost(_))) {
                thread::yield_now();
            }
        });
        // A failed assertion drops it here, and so lets the threads come to their ends.
        let mut reader = reader;
        loop {
            if waits_each_time {
                wait(&reader);
            }
            let taken = reader.take(|record| {
                assert_eq!(record.sequence, next, "gaps are losses that were told");
                next += 1;
                let Body { facts, data, dimensions, .. } = record.body;
                let [producer, ..] = facts.numbers;
                assert!(producer == u32::MAX || data.iter().all(|&byte| byte == mark(producer)));
                let (producer, &number) = (newest.get_mut(producer as usize)?, dimensions.first()?);
                assert!(producer.is_none_or(|before| before < number), "out of order");
                *producer = Some(number);
                Some(())
            });
            match taken {
                NextRecord::Event(Some(())) => events += 1,
                NextRecord::Event(None) => break,
                NextRecord::Lost(losses) => {
                    lost += losses.sum();
                    next += losses.sum();
                }
                NextRecord::Nothing => {
                    assert!(!waits_each_time, "readable, and nothing there");
                    thread::yield_now();
                }
                NextRecord::Foreign => panic!("this is the process that connected"),
            }
        }
        assert!(done.load(Ordering::Acquire));
        assert!(!readable(&reader) && queue.totals().waiting_bytes == 0);
    });
    let totals = queue.totals();
    assert!(lost >= refused.load(Ordering::Relaxed));
    assert_eq!(lost, totals.lost.sum());
    assert_eq!(events, rounds * u64::from(producers) - refused.load(Ordering::Relaxed));
    assert!(totals.high_water <= bounds.events, "{totals:?}");
}

#[test]
fn a_loss_beside_an_event_that_was_not_met_yet_is_not_taken_from_what_is_known() {
    let (queue, mut reader) = connected(Bounds { events: 1, bytes: 1 << 20 });
    let lose = |queue: &Queue| assert!(matches!(push(queue, 1, 8), Err(QueueRefusal::Lost(_))));
    push(&queue, 1, 8).unwrap();
    lose(&queue);
    assert_eq!(take(&mut reader), Got::Event(0, 8));
    let one = Losses { events: 1, ..Losses::default() };
    assert_eq!(take(&mut reader), Got::Lost(one));
    // Another event and another loss, between the reader's two looks.
    push(&queue, 1, 8).unwrap();
    lose(&queue);
    assert_eq!(reader.last_loss(), None, "it is behind the event");
    assert_eq!(take(&mut reader), Got::Event(2, 8));
    assert_eq!(take(&mut reader), Got::Lost(one));
}

#[test]
fn nothing_is_lost_uncounted_with_one_producer_and_a_reader_that_spins() {
    stress(1, Bounds { events: 1_000, bytes: 1 << 28 }, false);
}

#[test]
fn nothing_is_lost_uncounted_with_four_producers_and_a_reader_that_polls_for_each() {
    stress(4, Bounds { events: 64, bytes: 1 << 28 }, true);
}

#[test]
fn nothing_is_lost_uncounted_when_every_event_fills_the_queue() {
    stress(2, Bounds { events: 1, bytes: 1 << 28 }, true);
}

#[test]
fn nothing_is_lost_uncounted_with_a_tight_byte_budget() {
    stress(3, Bounds { events: 1_000, bytes: 8_192 }, true);
}
