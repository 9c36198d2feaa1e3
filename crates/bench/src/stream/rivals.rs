//! What the debug stream is measured beside. Each carries as many bytes an event.

use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use nexus_logbuf::mpsc;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use rustix::time::{ClockId, clock_gettime};
use telltale_debug_stream::TensorEvent;

use super::{DATA_BYTES, DEEP, EVENT_BYTES, tensor};
use crate::pinning::Pinned;
use crate::sample::{processor_time_ns, reading_ns, time_ns};

/// Room of an event in a ring of the other crate, its own header included.
const RING_BYTES_AN_EVENT: u64 = EVENT_BYTES as u64 + 64;

/// The fastest queue crate for events of any size and many producers that we know. It has no bound
/// on events, no descriptor, no sequence and no time.
pub(super) struct Ring {
    producer: mpsc::Producer,
    consumer: mpsc::Consumer,
    /// Whether no thread need be woken; always true here.
    awake: AtomicBool,
}

/// What is done for an event in the other crate's ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RivalJob {
    /// One copy from one place, which is all that the crate offers.
    Copy,
    /// What a stream made of it would do as well: the parts of a tensor from where they are, the
    /// time as of the kernel's last tick, and a look whether the reader must be woken. The reader
    /// may count sequence numbers. Still no bound on events, and no losses reported.
    Same,
}

/// A buffer that events are copied into, one behind the other.
pub(super) struct Copies(Vec<u8>);

// === impl Ring ===

impl Ring {
    pub(super) fn new(depth: u64) -> Self {
        let bytes = usize::try_from(depth * RING_BYTES_AN_EVENT).expect("it fits into memory");
        let (producer, consumer) = mpsc::new(bytes.next_power_of_two());
        Self { producer, consumer, awake: AtomicBool::new(true) }
    }

    pub(super) fn publish_ns(&mut self, events: u64, depth: u64, job: RivalJob) -> f64 {
        let _pinned = Pinned::to(0);
        let (event, data) = (vec![7; EVENT_BYTES], vec![7; DATA_BYTES]);
        let (mut busy_ns, mut done) = (0.0, 0);
        while done < events {
            let started = reading_ns(ClockId::ThreadCPUTime);
            match job {
                RivalJob::Copy => (0..depth).for_each(|_| self.copy(black_box(&event))),
                RivalJob::Same => (0..depth).for_each(|_| {
                    let published =
                        publish(&mut self.producer, &self.awake, &tensor(black_box(&data)));
                    assert!(published, "the ring has room for all");
                }),
            }
            busy_ns += reading_ns(ClockId::ThreadCPUTime) - started;
            while let Some(event) = self.consumer.try_claim() {
                black_box(event.to_vec());
            }
            done += depth;
        }
        busy_ns / done as f64
    }

    fn copy(&mut self, event: &[u8]) {
        let mut claim = self.producer.try_claim(EVENT_BYTES).expect("the ring has room for all");
        claim.copy_from_slice(event);
        claim.commit();
    }

    /// From one thread to another, which never sleeps: the crate has nothing to wake it by.
    pub(super) fn passing_ns(&mut self, events: u64) -> f64 {
        let Self { producer, consumer, awake } = self;
        time_ns(events, || {
            thread::scope(|scope| {
                scope.spawn(move || {
                    let _pinned = Pinned::to(0);
                    let data = vec![7; DATA_BYTES];
                    for _ in 0..events {
                        while !publish(producer, awake, &tensor(black_box(&data))) {
                            spin_loop();
                        }
                    }
                });
                let _pinned = Pinned::to(1);
                let mut got = 0;
                while got < events {
                    match consumer.try_claim() {
                        Some(event) => {
                            black_box(event.to_vec());
                            got += 1;
                        }
                        None => spin_loop(),
                    }
                }
            });
        })
    }
}

/// Whether there was room.
#[inline(never)]
fn publish(producer: &mut mpsc::Producer, awake: &AtomicBool, event: &TensorEvent<'_>) -> bool {
    let Ok(mut claim) = producer.try_claim(EVENT_BYTES) else { return false };
    let (data, rest) = claim.split_at_mut(event.data.len());
    data.copy_from_slice(event.data);
    let (shape, rest) = rest.split_at_mut(8 * event.shape.len());
    for (to, dimension) in shape.chunks_exact_mut(8).zip(event.shape) {
        to.copy_from_slice(&dimension.to_ne_bytes());
    }
    let (prefix, rest) = rest.split_at_mut(event.prefix.len());
    prefix.copy_from_slice(event.prefix.as_bytes());
    let (dtype, rest) = rest.split_at_mut(16);
    dtype.fill(0);
    dtype[..event.dtype.len()].copy_from_slice(event.dtype.as_bytes());
    let now = clock_gettime(ClockId::MonotonicCoarse);
    rest[..8].copy_from_slice(&(now.tv_sec * 1_000_000_000 + now.tv_nsec).to_ne_bytes());
    rest[8..12].copy_from_slice(&event.pipe.to_ne_bytes());
    claim.commit();
    fence(Ordering::SeqCst);
    assert!(awake.load(Ordering::Relaxed), "nobody sleeps here");
    true
}

// === impl Copies ===

impl Copies {
    pub(super) fn new(depth: u64) -> Self {
        Self(vec![1; usize::try_from(depth).expect("it fits into memory") * EVENT_BYTES])
    }

    pub(super) fn copy_ns(&mut self, events: u64, depth: u64) -> f64 {
        let _pinned = Pinned::to(0);
        let data = vec![7; EVENT_BYTES];
        let rounds = events.div_ceil(depth);
        processor_time_ns(rounds * depth, || {
            for _ in 0..rounds {
                for event in self.0.chunks_exact_mut(EVENT_BYTES) {
                    event.copy_from_slice(black_box(&data));
                }
                black_box(&self.0);
            }
        })
    }
}

/// A socket pair that keeps messages apart: a system call for each end of each event.
pub(super) fn socket_pair_ns(events: u64) -> io::Result<f64> {
    let flags = SocketFlags::CLOEXEC;
    let (to, from) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok(time_ns(events, || {
        thread::scope(|scope| {
            scope.spawn(move || {
                let _pinned = Pinned::to(0);
                let data = vec![7; EVENT_BYTES];
                for _ in 0..events {
                    send(&to, black_box(&data), SendFlags::empty()).expect("the other end is open");
                }
            });
            let _pinned = Pinned::to(1);
            for _ in 0..events {
                let mut event = vec![0; EVENT_BYTES];
                recv(&from, &mut event, RecvFlags::empty()).expect("the other end is open");
                black_box(event);
            }
        });
    }))
}

/// A channel of boxes, with room for as many events as ours.
pub(super) fn boxes_ns(events: u64) -> f64 {
    let (to, from) = sync_channel::<Box<[u8]>>(usize::try_from(DEEP).unwrap_or(usize::MAX));
    time_ns(events, || {
        thread::scope(|scope| {
            scope.spawn(move || {
                let _pinned = Pinned::to(0);
                let data = vec![7; EVENT_BYTES];
                for _ in 0..events {
                    to.send(black_box(&data).as_slice().into()).expect("the other end is open");
                }
            });
            let _pinned = Pinned::to(1);
            for _ in 0..events {
                black_box(from.recv().expect("the other end is open"));
            }
        });
    })
}

/// Two copies of a large tensor: into a buffer on one thread, out of it into memory of its own on
/// the other. The buffers go round.
pub(super) fn two_copies_ns(events: u64, bytes: usize, buffers: usize) -> f64 {
    let (to, from) = channel::<Vec<u8>>();
    let (back, free) = channel();
    for _ in 0..buffers {
        back.send(vec![1; bytes]).expect("the other end is open");
    }
    time_ns(events, || {
        thread::scope(|scope| {
            scope.spawn(move || {
                let _pinned = Pinned::to(0);
                let data = vec![7; bytes];
                for _ in 0..events {
                    let mut buffer: Vec<u8> = loop {
                        match free.try_recv() {
                            Ok(buffer) => break buffer,
                            Err(_) => spin_loop(),
                        }
                    };
                    buffer.copy_from_slice(black_box(&data));
                    to.send(buffer).expect("the other end is open");
                }
            });
            let _pinned = Pinned::to(1);
            for _ in 0..events {
                let buffer = from.recv().expect("the other end is open");
                black_box(buffer.to_vec());
                // At the end, the other thread may be gone.
                let _ = back.send(buffer);
            }
        });
    })
}
