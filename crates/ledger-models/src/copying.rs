//! A copy of a cell, taken word by word in any order while its writer goes on, is recognised as
//! torn unless it shows one moment.
//!
//! The reader is the second thread: loom remembers only the last access to a word, so that a load
//! by the first one would be forgotten when the writer loads the word itself before its store.

use loom::sync::Arc;
use loom::thread;

use crate::cell::{
    ALLOCATED_BYTES, ALLOCATIONS, CELL_WORDS, CHECK, Cell, FREED_BYTES, FREES, is_whole,
};
use crate::sync::Ordering;

const COUNTERS: [usize; 5] = [ALLOCATIONS, ALLOCATED_BYTES, FREES, FREED_BYTES, CHECK];

/// The counters before, between and after the two records of the model.
const MOMENTS: [[u64; 4]; 3] = [[0, 0, 0, 0], [1, 64, 0, 0], [1, 64, 1, 64]];

fn run(order: [usize; 5], accept: fn(&[u64; CELL_WORDS]) -> bool) {
    let cell = Arc::new(Cell::default());
    let read = Arc::clone(&cell);
    let reader = thread::spawn(move || {
        let mut copy = [0; CELL_WORDS];
        for word in order.map(|place| COUNTERS[place]) {
            copy[word] = read.word(word).load(Ordering::Relaxed);
        }
        let counters = [ALLOCATIONS, ALLOCATED_BYTES, FREES, FREED_BYTES].map(|word| copy[word]);
        let shows_one = MOMENTS.contains(&counters);
        assert!(shows_one || !accept(&copy), "an accepted copy shows one moment: {counters:?}");
    });
    cell.count_allocation(64);
    cell.count_free(64);
    reader.join().unwrap();
}

#[test]
fn an_accepted_copy_shows_one_moment_whatever_the_order() {
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        crate::model(3, move || run(order, is_whole));
    }
}

#[test]
#[should_panic(expected = "an accepted copy shows one moment")]
fn without_the_check_word_torn_copies_would_be_accepted() {
    crate::model(3, || run([0, 1, 2, 3, 4], |_| true));
}
