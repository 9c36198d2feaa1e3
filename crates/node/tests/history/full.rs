//! A disk without room: the service goes on, says so, and writes again when there is room.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use telltale_harness::{on_small_disk, wait_until};
use telltale_node::access::Visibility;
use telltale_node::history::{
    HistoryOptions, HistoryReader, HistoryWriter, check_directory, database_in,
};
use telltale_schema::clock::{Clock, ManualClock};
use telltale_schema::history::HistoryQuery;

use crate::history::machine::{SECOND, after, device, integrity, process, series, snapshot};

#[test]
fn a_full_disk_costs_history_and_nothing_else() {
    on_small_disk(
        "history::full::a_full_disk_costs_history_and_nothing_else",
        1024,
        fill_and_make_room,
    );
}

#[test]
fn a_disk_that_takes_nothing_is_reported_before_a_service_begins() {
    on_small_disk(
        "history::full::a_disk_that_takes_nothing_is_reported_before_a_service_begins",
        256,
        close,
    );
}

fn close(disk: &Path) {
    let state = disk.join("state");
    fs::create_dir(&state).unwrap();
    assert!(check_directory(&state).is_ok());
    let closed = Command::new("mount").args(["-o", "remount,ro"]).arg(disk).status().unwrap();
    assert!(closed.success());
    for path in [state, disk.join("none")] {
        let refused = check_directory(&path).expect_err("nobody writes there").to_string();
        assert!(refused.starts_with("cannot use the state directory"), "{refused}");
    }
}

fn fill_and_make_room(disk: &Path) {
    let clock = Arc::new(ManualClock::starting_at(after(0)));
    let given = Arc::clone(&clock) as Arc<dyn Clock>;
    let options = HistoryOptions::default();
    let writer = HistoryWriter::start(disk, &options, Duration::from_secs(1), given).unwrap();
    let mut offered = 0;
    let mut see_for = |seconds: u64| {
        for second in 0..seconds {
            let jobs: Vec<_> =
                (1..60).map(|pid| process(pid, second * u64::from(pid) * 4_999, &[0])).collect();
            writer.offer(Arc::new(snapshot(clock.now(), &[device(0, second, None)], &jobs)));
            offered += 1;
            clock.advance_ns(SECOND);
            wait_until("it to be taken in", Duration::from_secs(20), || {
                writer.metrics().recorded + writer.metrics().missed == offered
            });
        }
        writer.metrics()
    };
    let fine = see_for(30);
    assert_eq!((fine.failures, fine.problem), (0, None));
    let filler = disk.join("filler");
    // Written until there is no room, which is its error.
    let _ = fs::write(&filler, vec![1; 2 << 20]);
    let full = see_for(200);
    assert!(full.failures > 0 && full.lost_blocks > 0, "{full:?}");
    assert!(full.problem.as_ref().is_some_and(|words| words.contains("full")), "{full:?}");
    assert_eq!((full.recorded, full.missed), (230, 0), "nothing waits for the disk");
    fs::remove_file(&filler).unwrap();
    let again = see_for(30);
    assert_eq!(again.problem, None);
    drop(writer);
    let path = database_in(disk);
    assert_eq!(integrity(&path), "ok");
    let query = HistoryQuery { step_ms: Some(10_000), ..HistoryQuery::over(after(0), after(259)) };
    let answer = HistoryReader::open(&path).unwrap().query(&query, Visibility::Everything).unwrap();
    let used = &series(&answer, "device_memory_used", "dram").mean;
    assert!(used[0].is_some() && used[24].is_some(), "{used:?}");
    assert_eq!(used[8], None, "what had no room is missing, and not made up");
}
