//! Threads that claim cells at the same time get distinct ones, and none is lost to a reader.

use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::cell::{Cell, CellType, TAG, Tag};
use crate::claims::{Claims, PairClaims, publish};
use crate::sync::{AtomicU64, Ordering};

const THREADS: u16 = 2;
const CELLS: usize = 3;

struct ClaimingModel {
    used: AtomicU64,
    cells: [Cell; CELLS],
    registry: Mutex<(Claims, PairClaims)>,
}

fn tag(shard: u16) -> Tag {
    Tag { device: 0, kind: 0, shard, cell_type: CellType::Thread.code() }
}

/// Two threads claim a cell each with `claim`, while a third checks the tags.
fn run(claim: fn(&ClaimingModel, u16)) {
    let ledger = Arc::new(ClaimingModel {
        used: AtomicU64::new(0),
        cells: Default::default(),
        // Room for two thread cells and the shared one that is owed to them.
        registry: Mutex::new((Claims::new(CELLS), PairClaims::default())),
    });
    let other = Arc::clone(&ledger);
    let other = thread::spawn(move || claim(&other, 1));
    claim(&ledger, 0);
    other.join().unwrap();
    let used = usize::try_from(ledger.used.load(Ordering::Acquire)).unwrap();
    let mut shards: Vec<u16> = ledger.cells[..used]
        .iter()
        .map(|cell| Tag::from_word(cell.word(TAG).load(Ordering::Acquire)).shard)
        .collect();
    shards.sort_unstable();
    assert_eq!(shards, [0, 1], "each thread has a cell of its own");
    let (claims, pair) = &mut *ledger.registry.lock().unwrap();
    assert!(claims.thread_cell(pair).is_none(), "the last cell is owed");
    assert_eq!(claims.shared_cell(pair), Some(usize::from(THREADS)));
}

#[test]
fn claimed_cells_are_distinct_and_none_is_lost() {
    crate::model(3, || {
        run(|ledger, shard| {
            let mut registry = ledger.registry.lock().unwrap();
            let (claims, pair) = &mut *registry;
            let index = claims.thread_cell(pair).unwrap();
            publish(&ledger.used, &ledger.cells[index], index, tag(shard));
        });
    });
}

#[test]
#[should_panic(expected = "each thread has a cell of its own")]
fn without_the_lock_two_threads_would_share_one() {
    crate::model(3, || {
        run(|ledger, shard| {
            let index = usize::try_from(ledger.used.load(Ordering::Acquire)).unwrap();
            publish(&ledger.used, &ledger.cells[index], index, tag(shard));
        });
    });
}
