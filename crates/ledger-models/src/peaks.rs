//! The peak is never lost: not in the step from one thread to two, and not when both post.

use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::cell::{Cell, OWN_PEAK, PEAK, POSTED_LIVE};
use crate::posting::{
    Due, PostingMode, THRESHOLD_BYTES, after_allocation, after_free, post, take_over,
};
use crate::sync::{AtomicI64, Ordering};

/// Far more than what a thread may keep to itself.
const BIG: u64 = 16 * THRESHOLD_BYTES;

struct PeakModel {
    mode: PostingMode,
    registry: Mutex<()>,
    shared: Cell,
    shards: [Shard; 2],
}

#[derive(Default)]
struct Shard {
    cell: Cell,
    posted: AtomicI64,
}

type AfterAllocation = fn(&PostingMode, &Cell, &AtomicI64, i64) -> Due;

impl PeakModel {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mode: PostingMode::new(),
            registry: Mutex::new(()),
            shared: Cell::default(),
            shards: Default::default(),
        })
    }

    fn allocate(&self, shard: usize, after: AfterAllocation) {
        let Shard { cell, posted } = &self.shards[shard];
        let net = cell.count_allocation(BIG);
        if after(&self.mode, cell, posted, net) == Due::Posting {
            self.post(shard);
        }
    }

    fn free(&self, shard: usize) {
        let Shard { cell, posted } = &self.shards[shard];
        let net = cell.count_free(BIG);
        if after_free(&self.mode, posted, net) == Due::Posting {
            self.post(shard);
        }
    }

    /// As the recorder does it.
    fn post(&self, shard: usize) {
        if self.mode.is_changing() {
            drop(self.registry.lock().unwrap());
        }
        post(&self.shared, &self.shards[shard].cell, &self.shards[shard].posted);
    }

    /// As the registry does it for the second recorder.
    fn become_several(&self) {
        let _lock = self.registry.lock().unwrap();
        self.mode.begin_several();
        take_over(&self.shared, &self.shards[0].cell, &self.shards[0].posted);
        self.mode.finish_several();
    }

    fn peak(&self) -> u64 {
        let own = self.shards.iter().map(|shard| shard.cell.word(OWN_PEAK));
        let all = own.chain([self.shared.word(PEAK)]);
        all.map(|peak| peak.load(Ordering::Relaxed)).max().unwrap()
    }
}

/// The first thread allocates while the second arrives and allocates as well. Which of them is
/// loom's first thread makes a difference to the orders it tries, so both are.
fn second_thread_arrives(spawn_the_first: bool, after: AfterAllocation) {
    let ledger = PeakModel::new();
    let first = move |ledger: &PeakModel| ledger.allocate(0, after);
    let second = move |ledger: &PeakModel| {
        ledger.become_several();
        ledger.allocate(1, after);
    };
    let other = Arc::clone(&ledger);
    if spawn_the_first {
        let other = thread::spawn(move || first(&other));
        second(&ledger);
        other.join().unwrap();
    } else {
        let other = thread::spawn(move || second(&other));
        first(&ledger);
        other.join().unwrap();
    }
    let peak = ledger.peak();
    let bound = 2 * THRESHOLD_BYTES;
    assert!(peak.abs_diff(2 * BIG) <= bound, "both allocations are in the peak: {peak}");
}

#[test]
fn nothing_is_lost_when_a_second_thread_arrives() {
    for spawn_the_first in [true, false] {
        crate::model(3, move || second_thread_arrives(spawn_the_first, after_allocation));
    }
}

#[test]
#[should_panic(expected = "both allocations are in the peak")]
fn without_the_barrier_an_allocation_could_be_lost() {
    crate::model(3, || {
        second_thread_arrives(true, |mode, cell, _, net| {
            // `after_allocation` without its barrier: the mode may be read too early.
            if mode.is_single() {
                cell.raise_own_peak(net);
                return Due::Nothing;
            }
            Due::Posting
        });
    });
}

#[test]
fn what_both_post_adds_up_and_the_peak_is_one_that_was_reached() {
    crate::model(3, || {
        let ledger = PeakModel::new();
        ledger.become_several();
        let other = Arc::clone(&ledger);
        let other = thread::spawn(move || {
            other.allocate(1, after_allocation);
            other.free(1);
        });
        ledger.allocate(0, after_allocation);
        other.join().unwrap();
        assert_eq!(ledger.shared.word(POSTED_LIVE).load(Ordering::Relaxed), BIG);
        assert!((BIG..=2 * BIG).contains(&ledger.peak()));
    });
}
