//! What the debug stream is measured beside. Each carries as many bytes an event.

use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::Instant;

use nexus_logbuf::mpsc;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use super::{DEEP, EVENT_BYTES};
use crate::pinning::Pinned;
use crate::sample::time_ns;

/// Room of an event in a ring of the other crate, its own header included.
const RING_BYTES_AN_EVENT: u64 = EVENT_BYTES as u64 + 64;

/// The fastest queue crate for events of any size and many producers that we know. No bound on
/// events, no descriptor, no sequence and no time.
pub(super) struct Ring {
    producer: mpsc::Producer,
    consumer: mpsc::Consumer,
}

/// A buffer that events are copied into, one behind the other.
pub(super) struct Copies(Vec<u8>);

// === impl Ring ===

impl Ring {
    pub(super) fn new(depth: u64) -> Self {
        let bytes = usize::try_from(depth * RING_BYTES_AN_EVENT).expect("it fits into memory");
        let (producer, consumer) = mpsc::new(bytes.next_power_of_two());
        Self { producer, consumer }
    }

    pub(super) fn publish_ns(&mut self, events: u64, depth: u64) -> f64 {
        let _pinned = Pinned::to(0);
        let data = vec![7; EVENT_BYTES];
        let (mut busy_ns, mut done) = (0, 0);
        while done < events {
            let started = Instant::now();
            for _ in 0..depth {
                let mut claim =
                    self.producer.try_claim(EVENT_BYTES).expect("the ring has room for all");
                claim.copy_from_slice(black_box(&data));
                claim.commit();
            }
            busy_ns += started.elapsed().as_nanos();
            while let Some(event) = self.consumer.try_claim() {
                black_box(event.to_vec());
            }
            done += depth;
        }
        busy_ns as f64 / done as f64
    }
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
        time_ns(rounds * depth, || {
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
    let data = vec![7; EVENT_BYTES];
    Ok(time_ns(events, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                let _pinned = Pinned::to(0);
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
    let data = vec![7; EVENT_BYTES];
    let (to, from) = sync_channel::<Box<[u8]>>(usize::try_from(DEEP).unwrap_or(usize::MAX));
    time_ns(events, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                let _pinned = Pinned::to(0);
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
    let data = vec![7; bytes];
    let (to, from) = channel::<Vec<u8>>();
    let (back, free) = channel();
    for _ in 0..buffers {
        back.send(vec![1; bytes]).expect("the other end is open");
    }
    time_ns(events, || {
        thread::scope(|scope| {
            let (data, to, free) = (&data, to, free);
            scope.spawn(move || {
                let _pinned = Pinned::to(0);
                for _ in 0..events {
                    let mut buffer: Vec<u8> = loop {
                        match free.try_recv() {
                            Ok(buffer) => break buffer,
                            Err(_) => spin_loop(),
                        }
                    };
                    buffer.copy_from_slice(black_box(data));
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
