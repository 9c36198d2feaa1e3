//! Producers commit events and count losses while the consumer takes what it finds; once all are
//! done, the descriptor is readable exactly if something is left.

use loom::sync::Arc;
use loom::thread;

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, WITHOUT_FENCES, store_and_fence};
use crate::wake_up::{ConsumerProgress, Descriptor, WakeUp};

const EVENTS: usize = 3;

/// Readability, as an eventfd has it.
struct Readable(AtomicBool);

struct Shared {
    eventfd: WakeUp,
    progress: ConsumerProgress,
    readable: Readable,
    /// One flag for each event: its bytes are complete.
    committed: [AtomicU32; EVENTS],
    lost: AtomicU64,
}

impl Descriptor for Readable {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Shared {
    fn new() -> Arc<Self> {
        let progress = ConsumerProgress::new();
        progress.reported_lost.store(0, Ordering::Relaxed);
        Arc::new(Self {
            eventfd: WakeUp::new(),
            progress,
            readable: Readable(AtomicBool::new(false)),
            committed: std::array::from_fn(|_| AtomicU32::new(0)),
            lost: AtomicU64::new(0),
        })
    }

    fn commit(&self, position: usize) {
        store_and_fence(&self.committed[position], 1);
        self.eventfd.event(position as u64, &self.progress, &self.readable);
    }

    fn lose(&self) {
        let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
        self.eventfd.loss(lost, &self.progress, &self.readable);
    }

    fn is_committed(&self, position: u64) -> bool {
        let event = usize::try_from(position).ok().and_then(|next| self.committed.get(next));
        event.is_some_and(|event| event.load(Ordering::Acquire) == 1)
    }

    fn waits(&self) -> bool {
        self.is_committed(self.progress.taken.load(Ordering::Relaxed))
            || self.lost.load(Ordering::Relaxed)
                > self.progress.reported_lost.load(Ordering::Relaxed)
    }

    /// What a consumer does that does not wait to be woken.
    fn take(&self) {
        let taken = self.progress.taken.load(Ordering::Relaxed);
        let lost = self.lost.load(Ordering::Relaxed);
        if self.is_committed(taken) {
            self.progress.taken.store(taken + 1, Ordering::Relaxed);
        } else if lost > self.progress.reported_lost.load(Ordering::Relaxed) {
            self.progress.reported_lost.store(lost, Ordering::Relaxed);
        } else {
            return self.eventfd.nothing(|| self.waits(), &self.readable);
        }
        self.eventfd.taken(|| self.waits(), &self.readable);
    }

    /// What libbpf once did: it looked, and cleared, and did not check again.
    fn take_without_a_last_check(&self) {
        let taken = self.progress.taken.load(Ordering::Relaxed);
        if self.is_committed(taken) {
            self.progress.taken.store(taken + 1, Ordering::Relaxed);
            let waits = self.waits();
            self.eventfd.taken(|| waits, &self.readable);
        }
    }

    fn check(&self) {
        let readable = self.readable.0.load(Ordering::Relaxed);
        assert_eq!(readable, self.waits(), "readable is not the same as something waits");
    }
}

/// The threads run to their ends and the result is checked.
fn together(interruptions: usize, threads: &'static [fn(&Shared)], last: fn(&Shared)) {
    crate::model(interruptions, move || {
        let shared = Shared::new();
        let running: Vec<_> = threads
            .iter()
            .map(|run| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || run(&shared))
            })
            .collect();
        last(&shared);
        running.into_iter().for_each(|thread| thread.join().unwrap());
        shared.check();
    });
}

fn take_twice(shared: &Shared) {
    shared.take();
    shared.take();
}

fn commit_0_and_1(shared: &Shared) {
    shared.commit(0);
    shared.commit(1);
}

#[test]
fn one_producer_and_a_consumer_that_takes_as_it_finds() {
    together(3, &[commit_0_and_1], take_twice);
}

#[test]
fn a_consumer_that_takes_more_than_there_is() {
    together(3, &[|shared| shared.commit(0)], |shared| {
        take_twice(shared);
        shared.take();
    });
}

#[test]
fn two_producers_that_commit_in_either_order() {
    together(2, &[|shared| shared.commit(0), |shared| shared.commit(1)], take_twice);
}

#[test]
fn a_loss_beside_the_last_event() {
    together(2, &[|shared| shared.commit(0), |shared| shared.lose()], take_twice);
}

#[test]
fn a_burst_that_is_drained_between_two_events() {
    together(
        3,
        &[|shared| {
            commit_0_and_1(shared);
            shared.commit(2);
        }],
        |shared| {
            take_twice(shared);
            shared.take();
        },
    );
}

#[test]
#[should_panic(expected = "readable is not the same")]
fn without_the_fences_a_wake_up_is_lost() {
    WITHOUT_FENCES.set(true);
    together(3, &[commit_0_and_1], take_twice);
}

#[test]
#[should_panic(expected = "readable is not the same")]
fn without_the_last_check_a_wake_up_is_lost() {
    together(3, &[commit_0_and_1], Shared::take_without_a_last_check);
}
