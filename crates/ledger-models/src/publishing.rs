//! A reader that sees a cell counted sees it published.

use loom::sync::Arc;
use loom::thread;

use crate::cell::{ALLOCATIONS, Cell, CellType, TAG, Tag};
use crate::claims::publish;
use crate::sync::{AtomicU64, Ordering};

#[derive(Default)]
struct Ledger {
    used: AtomicU64,
    cells: [Cell; 2],
}

fn tag(shard: u16) -> Tag {
    Tag { device: 0, kind: 0, shard, cell_type: CellType::Thread.code() }
}

/// The writer publishes two cells with `publish`; the reader takes what is counted.
fn run(publish: fn(&AtomicU64, &Cell, usize, Tag)) {
    let ledger = Arc::new(Ledger::default());
    let read = Arc::clone(&ledger);
    let reader = thread::spawn(move || {
        let used = usize::try_from(read.used.load(Ordering::Acquire)).unwrap();
        for (cell, shard) in read.cells[..used].iter().zip(0..) {
            let word = cell.word(TAG).load(Ordering::Acquire);
            assert_eq!(Tag::from_word(word), tag(shard), "a counted cell has its tag");
            assert!(cell.word(ALLOCATIONS).load(Ordering::Relaxed) <= 1);
        }
    });
    for (index, shard) in (0..2).zip(0..) {
        publish(&ledger.used, &ledger.cells[index], index, tag(shard));
        ledger.cells[index].count_allocation(64);
    }
    reader.join().unwrap();
}

#[test]
fn a_counted_cell_has_its_tag() {
    crate::model(3, || run(publish));
}

#[test]
#[should_panic(expected = "a counted cell has its tag")]
fn without_release_on_the_count_it_would_not() {
    crate::model(3, || {
        run(|used, cell, index, tag| {
            cell.word(TAG).store(tag.to_word(), Ordering::Relaxed);
            used.store(u64::try_from(index).unwrap() + 1, Ordering::Relaxed);
        });
    });
}
