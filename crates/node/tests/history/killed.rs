//! A service that is killed at any moment loses what it had not written yet, and nothing else.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_collector::clock::SystemClock;
use telltale_harness::{ChildGuard, Scratch, rounds};
use telltale_node::access::Visibility;
use telltale_node::history::{HistoryOptions, HistoryReader, HistoryWriter, database_in};
use telltale_schema::clock::Clock;

use crate::history::machine::{device, integrity, process, snapshot};

/// Set for the process that is killed, to the directory it writes in.
const VICTIM: &str = "TELLTALE_TEST_HISTORY_VICTIM";

/// Writes as fast as it can and prints, after each sample, how many the history has for certain: what
/// was offered more than the longest time before is written.
fn write_until_killed(directory: &Path) {
    let options = HistoryOptions { write_seconds: 1, ..HistoryOptions::default() };
    let clock = Arc::new(SystemClock);
    let interval = Duration::from_millis(5);
    let writer = HistoryWriter::start(directory, &options, interval, clock).unwrap();
    let out = std::io::stdout();
    for round in 0..u64::MAX {
        let jobs: Vec<_> =
            (1..40).map(|pid| process(pid, (round * 977) << (pid % 16), &[0])).collect();
        writer.offer(Arc::new(snapshot(SystemClock.now(), &[device(0, round, Some(1.0))], &jobs)));
        let bytes = writer.metrics().bytes;
        writeln!(out.lock(), "{bytes}").unwrap();
        // A pace, so that the queue is not full; nothing waits for it.
        std::thread::park_timeout(interval);
    }
}

#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_written() {
    if let Some(directory) = std::env::var_os(VICTIM) {
        return write_until_killed(Path::new(&directory));
    }
    let scratch = Scratch::new();
    let path = database_in(scratch.path());
    let mut had = (0, 0);
    for round in 0..rounds(6, 100) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "history::killed::a_kill_at_any_moment_loses_nothing_that_was_written",
        ]);
        command.args(["--nocapture"]).env(VICTIM, scratch.path());
        let mut victim = ChildGuard::spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let lines = BufReader::new(victim.child().stdout.take().unwrap()).lines();
        // Not at a round moment: somewhere in a second or two after its first words.
        let span = Duration::from_millis(900 + u64::from(round) * 739 % 1_000);
        let mut begin = None;
        for line in lines {
            let line = line.unwrap();
            if line.parse::<u64>().is_ok() {
                begin = begin.or(Some(Instant::now()));
            }
            if begin.is_some_and(|begin: Instant| begin.elapsed() > span) {
                break;
            }
        }
        // What a reader can see was committed.
        let seen = committed(&path);
        victim.kill();
        let left = committed(&path);
        assert!(left >= seen && seen >= had, "{had:?}, then {seen:?}, and after the kill {left:?}");
        assert_eq!(integrity(&path), "ok");
        had = left;
    }
    assert!(had.0 > 0 && had.1 > 0, "{had:?}");
    let reports = HistoryReader::open(&path)
        .unwrap()
        .report(&"job3".parse().unwrap(), Visibility::Everything)
        .unwrap();
    assert_eq!(reports.len(), 1, "one process over all runs");
}

/// Blocks, and the byte-seconds of one process.
fn committed(path: &Path) -> (i64, i64) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    let number = |text: &str| connection.query_row(text, [], |row| row.get(0)).unwrap();
    let blocks = number("SELECT coalesce(max(id), 0) FROM block");
    let bytes = number(
        "SELECT coalesce(sum(byte_seconds), 0) FROM usage JOIN process ON process = process.id \
         WHERE pid = 3",
    );
    (blocks, bytes)
}
