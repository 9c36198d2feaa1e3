//! The history never takes more than it may; the oldest goes first.

use telltale_harness::rounds;
use telltale_node::history::HistoryOptions;
use telltale_schema::clock::Clock;

use crate::history::machine::{Kept, SECOND, device, integrity, process, snapshot};

#[test]
fn the_oldest_goes_first_and_the_limit_is_never_passed() {
    let limit = 4 << 20;
    let mut kept = Kept::with(HistoryOptions { max_mebibytes: 4, ..HistoryOptions::default() });
    let mut most = 0;
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    for step in 0..u64::from(rounds(1_200, 8_000)) {
        // Processes that come and go, and never have the same twice.
        let jobs: Vec<_> = (0..40)
            .map(|place| {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                let pid = u32::try_from(step / 20 * 40 + place).unwrap();
                process(pid, noise >> 24, &[0, 1, 2, 3])
            })
            .collect();
        let devices: Vec<_> = (0..4).map(|number| device(number, noise >> 30, None)).collect();
        let snapshot = snapshot(kept.clock.now(), &devices, &jobs);
        kept.writer().offer(std::sync::Arc::new(snapshot));
        kept.count_offer();
        kept.clock.advance_ns(SECOND);
        kept.settle();
        if step % 10 == 0 {
            most = most.max(bytes(&kept));
        }
    }
    assert_eq!(kept.writer().metrics().failures, 0, "{:?}", kept.writer().metrics());
    kept.stop();
    assert!(most <= limit, "{most} bytes of {limit}");
    assert!(most > limit / 2, "the test fills it: {most}");
    assert_eq!(integrity(&kept.path()), "ok");
    let connection = rusqlite::Connection::open(kept.path()).unwrap();
    let number = |text: &str| connection.query_row(text, [], |row| row.get::<_, i64>(0)).unwrap();
    let (oldest, newest) = (
        number("SELECT min(start_ms) FROM block") / 1000,
        number("SELECT max(end_ms) FROM block") / 1000,
    );
    assert!(newest - oldest < 1_150 && newest - oldest > 200, "{oldest} to {newest}");
    assert!(number("SELECT count(*) FROM process") < 2_400);
    let orphans = "SELECT count(*) FROM usage WHERE process NOT IN (SELECT id FROM process)";
    assert_eq!(number(orphans), 0);
    let orphans = "SELECT count(*) FROM part WHERE block NOT IN (SELECT id FROM block)";
    assert_eq!(number(orphans), 0);
}

fn bytes(kept: &Kept) -> u64 {
    let files = std::fs::read_dir(kept.scratch.path()).unwrap();
    files.map(|file| file.unwrap().metadata().map_or(0, |found| found.len())).sum()
}
