//! The debug stream beside what could stand in its place: another queue crate, a socket pair, a
//! channel of boxes, and the bare copies. Every contender carries the same 1,152 bytes an event.
//!
//! Threads that are timed together share nothing but the contender: each has its own copy of what
//! it publishes. Work of a single thread is reported in its CPU time.

mod client;
mod rivals;

pub use client::ClientProgram;

use std::hint::{black_box, spin_loop};
use std::io;
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd, poll};
use rustix::time::ClockId;
use telltale_debug_stream::{
    EventReader, Published, Publisher, Stream, StreamOptions, TensorEvent,
};

use crate::pinning::Pinned;
use crate::sample::{
    Contender, Effort, Measurements, interleave, processor_time_ns, reading_ns, time_ns,
};
use crate::table::{Row, Table, Target, Unit};

/// What an event has: a name of a type in 16 bytes, two numbers and a time in 16, a dimension of 8,
/// a prefix, and the rest data. Headers of a contender's own come on top.
const EVENT_BYTES: usize = 1_152;
const DATA_BYTES: usize = EVENT_BYTES - 16 - 16 - 8 - PREFIX.len();
const PREFIX: &str = "layer.07.act.out";
/// Events that wait when the ring is said to be warm: the caches hold them.
const SHALLOW: u64 = 256;
/// Events that wait when it is deep, just below the bound.
const DEEP: u64 = 60_000;
/// Events that go from thread to thread: so many that how it starts does not show.
const PASSING: u64 = 5 * DEEP;
const LARGE_BYTES: usize = 256 << 10;
/// Large tensors that may wait, in both contenders.
const LARGE_WAITING: usize = 16;

/// One stream with a reader, which stays for all repeats, as in a program.
struct Bench {
    stream: Stream,
    publisher: Publisher,
    reader: EventReader,
}

// === impl Bench ===

impl Bench {
    fn new(options: StreamOptions) -> io::Result<Self> {
        let stream = Stream::new(0, options);
        let publisher = stream.publisher();
        let reader = stream.connect_for_events().map_err(io::Error::other)?;
        Ok(Self { stream, publisher, reader })
    }

    fn drain(&mut self) -> u64 {
        let mut events = 0;
        while read(&mut self.reader).is_some() {
            events += 1;
        }
        events
    }
}

/// Publishes until it is accepted.
fn publish(publisher: &Publisher, data: &[u8]) {
    while publisher.tensor(&tensor(data)) != Published::Queued {
        spin_loop();
    }
}

fn tensor(data: &[u8]) -> TensorEvent<'_> {
    TensorEvent { prefix: PREFIX, dtype: "float32", shape: &[274], data, pipe: 0 }
}

/// Takes one event as a copy of one's own.
fn read(reader: &mut EventReader) -> Option<Vec<u8>> {
    reader.read(|event| event.data.to_vec()).expect("this process connected")
}

/// Nanoseconds to publish one event, `depth` at a time into a ring that is drained in between.
fn publish_ns(bench: &mut Bench, events: u64, depth: u64) -> f64 {
    let _pinned = Pinned::to(0);
    let data = vec![7; DATA_BYTES];
    let (mut busy_ns, mut done) = (0.0, 0);
    while done < events {
        let started = reading_ns(ClockId::ThreadCPUTime);
        for _ in 0..depth {
            publish(&bench.publisher, black_box(&data));
        }
        busy_ns += reading_ns(ClockId::ThreadCPUTime) - started;
        assert_eq!(bench.drain(), depth, "all that was published is read");
        done += depth;
    }
    busy_ns / done as f64
}

/// Nanoseconds an event from one thread to another, which sleeps in `poll` when there is nothing.
fn end_to_end_ns(bench: &mut Bench, events: u64, bytes: usize) -> f64 {
    let Bench { publisher, reader, .. } = bench;
    let publisher = publisher.clone();
    time_ns(events, || {
        thread::scope(|scope| {
            scope.spawn(move || {
                let _pinned = Pinned::to(0);
                let (publisher, data) = (&publisher, vec![7; bytes]);
                (0..events).for_each(|_| publish(publisher, black_box(&data)));
            });
            let _pinned = Pinned::to(1);
            let mut got = 0;
            while got < events {
                match read(reader) {
                    Some(event) => {
                        black_box(event);
                        got += 1;
                    }
                    None => wait(reader),
                }
            }
        });
    })
}

fn wait(reader: &EventReader) {
    let mut set = [PollFd::new(reader, PollFlags::IN)];
    poll(&mut set, None).expect("a descriptor of ours can be polled");
}

/// Nanoseconds an event when so many threads publish at once, and no reader is active. Each
/// publishes as many, so that one that is kept back shows in the time.
fn together_ns(bench: &mut Bench, events: u64, threads: u64) -> f64 {
    let each = events / threads;
    let value = time_ns(each * threads, || {
        thread::scope(|scope| {
            for _ in 0..threads {
                let publisher = bench.publisher.clone();
                scope.spawn(move || {
                    let data = vec![7; DATA_BYTES];
                    (0..each).for_each(|_| publish(&publisher, black_box(&data)));
                });
            }
        });
    });
    assert_eq!(bench.drain(), each * threads);
    value
}

/// Nanoseconds to publish without a reader.
fn disabled_ns(events: u64) -> f64 {
    let publisher = Stream::new(0, StreamOptions::default()).publisher();
    let data = vec![7; DATA_BYTES];
    let event = tensor(&data);
    processor_time_ns(events, || {
        for _ in 0..events {
            let _ = black_box(black_box(&publisher).tensor(black_box(&event)));
        }
    })
}

/// Nanoseconds an event when each is read after a wait of its own.
fn read_after_each_wait_ns(bench: &mut Bench, events: u64) -> io::Result<f64> {
    let data = vec![7; DATA_BYTES];
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&set, &bench.reader, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    let (mut busy_ns, mut done) = (0.0, 0);
    while done < events {
        (0..SHALLOW).for_each(|_| publish(&bench.publisher, &data));
        let started = reading_ns(ClockId::ThreadCPUTime);
        for _ in 0..SHALLOW {
            let mut found = Vec::with_capacity(16);
            epoll::wait(&set, rustix::buffer::spare_capacity(&mut found), None)
                .expect("an epoll set of ours can be waited for");
            black_box(read(&mut bench.reader).expect("it was readable"));
        }
        busy_ns += reading_ns(ClockId::ThreadCPUTime) - started;
        done += SHALLOW;
    }
    Ok(busy_ns / done as f64)
}

/// Nanoseconds of a wait alone, on a descriptor that is always readable.
fn wait_ns(events: u64) -> io::Result<f64> {
    let always = eventfd(1, EventfdFlags::CLOEXEC)?;
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&set, &always, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    Ok(processor_time_ns(events, || {
        for _ in 0..events {
            let mut found = Vec::with_capacity(16);
            epoll::wait(&set, rustix::buffer::spare_capacity(&mut found), None)
                .expect("an epoll set of ours can be waited for");
            black_box(found);
        }
    }))
}

fn at_most(limit: f64) -> Target {
    Target { at_most: Some(limit), ..Target::default() }
}

fn times_better(times: f64) -> Target {
    Target { times_better: Some(times), ..Target::default() }
}

fn times_baseline(times: f64) -> Target {
    Target { times_baseline: Some(times), ..Target::default() }
}

fn row(what: &str, ours: Measurements, baseline: Option<Measurements>, target: Target) -> Row {
    Row { what: what.to_owned(), unit: Unit::Time, ours: Some(ours), baseline, target }
}

/// Publishing, beside another queue crate and the bare copies.
fn publishing(effort: Effort) -> io::Result<Vec<Row>> {
    let repeats = effort.repeats();
    let mut rows = Vec::new();
    for (what, full, depth, limit) in
        [("warm", 512_000, SHALLOW, 50.0), ("64K deep", 2 * DEEP, DEEP, 130.0)]
    {
        let depth = effort.operations(depth * 10).min(depth);
        let events = effort.operations(full).max(depth);
        let mut bench = Bench::new(StreamOptions::default())?;
        let mut rival = rivals::Ring::new(depth);
        let mut copies = rivals::Copies::new(depth);
        let mut bare_rival = rivals::Ring::new(depth);
        let contenders: [Contender<'_>; 4] = [
            Box::new(|| publish_ns(&mut bench, events, depth)),
            Box::new(|| rival.publish_ns(events, depth, rivals::RivalJob::Same)),
            Box::new(|| bare_rival.publish_ns(events, depth, rivals::RivalJob::Copy)),
            Box::new(|| copies.copy_ns(events, depth)),
        ];
        let [ours, rival, bare_rival, copies] = interleave(repeats, contenders);
        let target = Target { times_baseline: Some(1.0), ..at_most(limit) };
        for (job, values, target) in [
            ("nexus-logbuf, the same job", rival, target),
            ("nexus-logbuf, nothing but one copy", bare_rival, Target::default()),
        ] {
            rows.push(row(&format!("publish, {what}; {job}"), ours.clone(), Some(values), target));
        }
        let copy = format!("publish, {what}; the copy alone");
        rows.push(row(&copy, ours, Some(copies), Target::default()));
    }
    let events = effort.operations(20_000_000);
    let [disabled] = interleave(repeats, [Box::new(|| disabled_ns(events)) as Contender<'_>]);
    rows.push(row("publish without a reader", disabled, None, at_most(2.0)));
    Ok(rows)
}

/// From one thread to another. The last row is the writes to the descriptor for 1,000 events.
fn passing(effort: Effort) -> io::Result<Vec<Row>> {
    let repeats = effort.repeats();
    let events = effort.operations(PASSING);
    let mut bench = Bench::new(StreamOptions::default())?;
    let mut rival = rivals::Ring::new(DEEP);
    let mut writes = Vec::new();
    let contenders: [Contender<'_>; 4] = [
        Box::new(|| {
            let before = bench.stream.counters().descriptor_writes;
            let value = end_to_end_ns(&mut bench, events, DATA_BYTES);
            let after = bench.stream.counters().descriptor_writes;
            writes.push((after - before) as f64 * 1_000.0 / events as f64);
            value
        }),
        Box::new(|| rivals::socket_pair_ns(events).expect("a socket pair works")),
        Box::new(|| rivals::boxes_ns(events)),
        Box::new(|| rival.passing_ns(events)),
    ];
    let [ours, sockets, boxes, rival] = interleave(repeats, contenders);
    let writes = Row {
        what: "writes to the descriptor, for 1,000 events".to_owned(),
        unit: Unit::Count,
        ours: Some(Measurements::new(writes)),
        baseline: None,
        target: at_most(20.0),
    };
    Ok(vec![
        row("thread to thread; SEQPACKET pair", ours.clone(), Some(sockets), times_better(8.0)),
        row("thread to thread; channel of boxes", ours.clone(), Some(boxes), times_better(3.0)),
        row("thread to thread; nexus-logbuf, the same job", ours, Some(rival), times_baseline(1.0)),
        writes,
    ])
}

/// Several producers, large tensors, a wait for each event.
fn crowding(effort: Effort) -> io::Result<Vec<Row>> {
    let repeats = effort.repeats();
    let events = effort.operations(DEEP).max(4);
    let mut bench = Bench::new(StreamOptions::default())?;
    let mut alone = Bench::new(StreamOptions::default())?;
    let [four, one] = interleave(
        repeats,
        [
            Box::new(|| together_ns(&mut bench, events, 4)) as Contender<'_>,
            Box::new(|| together_ns(&mut alone, events, 1)),
        ],
    );
    let large_events = effort.operations(2_000);
    let max_bytes = (LARGE_WAITING * (LARGE_BYTES + 1_024)) as u64;
    let mut large = Bench::new(StreamOptions { max_bytes, ..StreamOptions::default() })?;
    let [ours, copies] = interleave(
        repeats,
        [
            Box::new(|| end_to_end_ns(&mut large, large_events, LARGE_BYTES)) as Contender<'_>,
            Box::new(|| rivals::two_copies_ns(large_events, LARGE_BYTES, LARGE_WAITING)),
        ],
    );
    let waits = effort.operations(DEEP);
    let mut waiting = Bench::new(StreamOptions::default())?;
    let [each, bare] = interleave(
        repeats,
        [
            Box::new(|| read_after_each_wait_ns(&mut waiting, waits).expect("epoll works"))
                as Contender<'_>,
            Box::new(|| wait_ns(waits).expect("epoll works")),
        ],
    );
    Ok(vec![
        row("4 producers, an event; 1 producer", four, Some(one), times_baseline(2.0)),
        row("256 KiB tensor; two copies", ours, Some(copies), times_baseline(1.0 / 0.6)),
        row("one read an epoll_wait; the wait", each, Some(bare), times_baseline(1.0 / 0.7)),
    ])
}

/// Everything about the debug stream; `client` is the program in C.
///
/// # Errors
/// When a stream, a socket or an epoll set cannot be made.
pub fn table(effort: Effort, client: &ClientProgram) -> io::Result<Table> {
    let mut rows = publishing(effort)?;
    rows.extend(passing(effort)?);
    rows.extend(crowding(effort)?);
    rows.extend(client::rows(effort, client));
    Ok(Table {
        heading: format!(
            "Debug stream, {EVENT_BYTES} bytes an event; the baseline is named in each row"
        ),
        rows,
        remarks: Vec::new(),
    })
}
