//! Files that are damaged, foreign, newer or taken, and directories of others.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::Duration;

use telltale_harness::{Scratch, needs_root};
use telltale_node::access::Visibility;
use telltale_node::history::{
    DatabaseError, DirectoryError, HistoryError, HistoryOptions, HistoryReader, HistoryWriter,
    database_in,
};
use telltale_schema::clock::ManualClock;
use telltale_schema::history::ProcessChoice;

use crate::history::machine::{Kept, after, device, integrity, process};

fn start(scratch: &Scratch) -> Result<HistoryWriter, HistoryError> {
    let clock = Arc::new(ManualClock::starting_at(after(0)));
    HistoryWriter::start(scratch.path(), &HistoryOptions::default(), Duration::from_secs(1), clock)
}

#[test]
fn a_damaged_history_is_moved_aside_as_it_is_and_a_new_one_begun() {
    let mut kept = Kept::new();
    kept.see_for(30, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    kept.stop();
    let garbage = vec![0x5a; 40_000];
    fs::write(kept.path(), &garbage).unwrap();
    kept.start();
    kept.see_for(30, &[device(0, 1, None)], &[process(12, 5, &[0])]);
    kept.stop();
    let aside = kept.scratch.join("history.db.broken.1");
    assert_eq!(fs::read(&aside).unwrap(), garbage);
    assert_eq!(kept.report("12").usage[0].byte_seconds, 29 * 5);
    assert_eq!(integrity(&kept.path()), "ok");
}

#[test]
fn damage_that_is_found_while_writing_costs_the_old_file_and_not_the_service() {
    let mut kept = Kept::new();
    kept.see_for(40, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    kept.stop();
    kept.start();
    // All pages but the first, which has the tables' definitions.
    let file = fs::OpenOptions::new().write(true).open(kept.path()).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0xa5; usize::try_from(length - 4096).unwrap()], 4096).unwrap();
    kept.see_for(60, &[device(0, 1, None)], &[process(12, 5, &[0])]);
    let metrics = kept.writer().metrics();
    assert!(metrics.failures > 0, "{metrics:?}");
    assert_eq!(metrics.problem, None, "it recovered");
    kept.stop();
    assert!(kept.scratch.join("history.db.broken.1").exists());
    assert_eq!(integrity(&kept.path()), "ok");
    assert_eq!(kept.report("12").process.name, "job12");
}

#[test]
fn a_directory_that_was_removed_is_made_again_and_what_follows_is_kept() {
    let mut kept = Kept::new();
    kept.see_for(40, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    assert_eq!(kept.writer().metrics().failures, 0);
    fs::remove_dir_all(kept.scratch.path()).unwrap();
    kept.see_for(60, &[device(0, 1, None)], &[process(12, 5, &[0])]);
    let metrics = kept.writer().metrics();
    assert!(metrics.failures > 0 && metrics.lost_blocks > 0, "{metrics:?}");
    assert_eq!(metrics.problem, None, "it is written again");
    assert_eq!(fs::metadata(kept.scratch.path()).unwrap().mode() & 0o777, 0o700);
    assert_eq!(kept.report("12").process.name, "job12");

    // The database alone.
    fs::remove_file(kept.path()).unwrap();
    kept.see_for(60, &[device(0, 1, None)], &[process(13, 5, &[0])]);
    assert_eq!(kept.writer().metrics().problem, None);
    assert_eq!(kept.report("13").process.name, "job13");
    assert!(matches!(start(&kept.scratch), Err(HistoryError::Directory(_))), "it has the lock");
    kept.stop();
    assert_eq!(integrity(&kept.path()), "ok");
}

#[test]
fn a_log_that_is_removed_costs_nothing_and_is_reported_until_the_next_writing() {
    let mut kept = Kept::new();
    kept.see_for(40, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", kept.path().display())).unwrap();
    }
    kept.see_for(10, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    let metrics = kept.writer().metrics();
    assert_eq!((metrics.failures, metrics.lost_blocks), (1, 0), "{metrics:?}");
    assert!(metrics.problem.unwrap().contains("was removed while it was open"));
    kept.see_for(20, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    assert_eq!(kept.writer().metrics().problem, None);
    kept.stop();
    assert_eq!(kept.report("11").usage[0].byte_seconds, 69 * 5, "70 collections, and no gap");
    assert_eq!(integrity(&kept.path()), "ok");
}

#[test]
fn a_query_that_fails_is_counted_and_no_other_is_needed_to_be_well_again() {
    let kept = Kept::new();
    kept.see_for(40, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    let (reader, choice) = (kept.writer().reader(), "job11".parse::<ProcessChoice>().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ask = || {
        let choice = choice.clone();
        runtime.block_on(reader.read(move |reader| reader.report(&choice, Visibility::Everything)))
    };
    assert!(ask().is_ok());
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", kept.path().display())).unwrap();
    }
    let failed = ask().unwrap_err().to_string();
    let metrics = kept.writer().metrics();
    assert_eq!(metrics.failures, 1, "{failed}");
    assert!(metrics.problem.is_some(), "{failed}");
    kept.see_for(30, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    let metrics = kept.writer().metrics();
    assert_eq!((metrics.problem, metrics.lost_blocks), (None, 0));
    assert!(ask().is_ok());
}

#[test]
fn a_damaged_page_is_reported_until_a_query_succeeds_however_often_is_written() {
    let mut kept = Kept::new();
    let many: Vec<_> = (1000..1400).map(|pid| process(pid, 5, &[0])).collect();
    kept.see_for(20, &[device(0, 1, None)], &many);
    kept.see_for(20, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    kept.stop();
    damage_usage_of_the_first(&kept.path());
    kept.start();
    let reader = kept.writer().reader();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ask = |name: &str| {
        let choice = name.parse::<ProcessChoice>().unwrap();
        runtime.block_on(reader.read(move |reader| reader.report(&choice, Visibility::Everything)))
    };
    for failures in 1..=3 {
        let failed = ask("job1000").unwrap_err();
        kept.see_for(20, &[device(0, 1, None)], &[process(11, 5, &[0])]);
        let metrics = kept.writer().metrics();
        assert_eq!((metrics.failures, metrics.lost_blocks), (failures, 0), "{failed}");
        assert!(metrics.problem.unwrap().contains("malformed"), "{failed}");
    }
    assert!(ask("job11").is_ok());
    assert_eq!(kept.writer().metrics().problem, None);
}

/// Overwrites the page that has what the first processes used, which nothing but a query about them
/// reads.
fn damage_usage_of_the_first(database: &std::path::Path) {
    let connection = rusqlite::Connection::open(database).unwrap();
    let first = "SELECT pageno FROM dbstat WHERE name = 'usage' AND pagetype = 'leaf' \
                 ORDER BY path LIMIT 1";
    let page: u32 = connection.query_row(first, [], |row| row.get(0)).unwrap();
    let size: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    drop(connection);
    let file = fs::OpenOptions::new().write(true).open(database).unwrap();
    let zeros = vec![0; usize::try_from(size).unwrap()];
    file.write_all_at(&zeros, u64::from(page - 1) * u64::from(size)).unwrap();
}

#[test]
fn a_database_that_is_replaced_is_reported_and_what_is_there_goes_on() {
    let (mut kept, mut other) = (Kept::new(), Kept::new());
    other.see_for(20, &[device(0, 1, None)], &[process(12, 5, &[0])]);
    other.stop();
    kept.see_for(40, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    fs::rename(other.path(), kept.path()).unwrap();
    kept.see_for(10, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    let metrics = kept.writer().metrics();
    assert_eq!((metrics.failures, metrics.lost_blocks), (1, 1), "{metrics:?}");
    assert!(metrics.problem.unwrap().contains("removed or replaced"));
    kept.see_for(30, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    assert_eq!(kept.writer().metrics().problem, None);
    kept.stop();
    assert_eq!(kept.report("12").process.name, "job12", "what was there is read");
    assert_eq!(kept.report("11").process.name, "job11");
    assert_eq!(integrity(&kept.path()), "ok");
}

#[test]
fn a_newer_history_is_refused_and_left_alone() {
    let mut kept = Kept::new();
    kept.see_for(12, &[device(0, 1, None)], &[]);
    kept.stop();
    let connection = rusqlite::Connection::open(kept.path()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let refused = start(&kept.scratch).unwrap_err();
    let newer = |error: &DatabaseError| matches!(error, DatabaseError::Newer { found: 99, .. });
    assert!(matches!(&refused, HistoryError::Database(error) if newer(error)), "{refused}");
    assert!(refused.to_string().contains("use a newer telltale"), "{refused}");
    assert!(newer(&HistoryReader::open(&kept.path()).unwrap_err()));
    assert!(!kept.scratch.join("history.db.broken.1").exists());
}

#[test]
fn there_is_one_writer_and_any_number_of_readers() {
    let mut kept = Kept::new();
    kept.see_for(21, &[device(0, 1, None)], &[process(11, 5, &[0])]);
    let second = start(&kept.scratch).unwrap_err();
    assert!(matches!(second, HistoryError::Directory(DirectoryError::Taken { .. })), "{second}");
    let reader = kept.reader();
    assert_eq!(reader.snapshot_at(after(15)).unwrap().snapshot.processes.len(), 1);
    kept.see_for(20, &[device(0, 1, None)], &[]);
    assert!(reader.snapshot_at(after(35)).unwrap().snapshot.processes.is_empty());
    kept.stop();
    for file in fs::read_dir(kept.scratch.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    if !needs_root("telltale-node::history::a_directory_of_another_user_is_refused") {
        return;
    }
    let scratch = Scratch::new();
    std::os::unix::fs::chown(scratch.path(), Some(61_004), None).unwrap();
    let refused = start(&scratch).unwrap_err();
    let is_owner =
        |error: &DirectoryError| matches!(error, DirectoryError::Owner { owner: 61_004, .. });
    assert!(matches!(&refused, HistoryError::Directory(error) if is_owner(error)), "{refused}");
    assert!(!database_in(scratch.path()).exists());
}

#[test]
fn where_there_is_no_history_it_is_said_how_one_is_begun() {
    let scratch = Scratch::new();
    let missing = HistoryReader::open(&database_in(scratch.path())).unwrap_err();
    assert!(missing.to_string().contains("`telltale serve` keeps one"), "{missing}");
    assert!(!database_in(scratch.path()).exists(), "reading makes nothing");
}
