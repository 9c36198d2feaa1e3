//! Foreign SQLite clients look into the history of a running service, which is killed, or whose log is
//! removed: nothing that was written once is lost, and nothing stands still in silence.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};
use telltale_harness::{Scratch, rounds, skip, wait_until};
use telltale_node::history::database_in;

use crate::chaos::service::{Service, get};
use crate::chaos::workload::TIMEOUT;

/// Counts blocks by a SQLite that is not ours, as anybody would: read-write, and read-only.
const CLIENT: &str = "import sqlite3, sys
client = sqlite3.connect(sys.argv[1], uri=True, timeout=10)
print(client.execute('SELECT count(*) FROM block').fetchone()[0])
client.close()";

struct Fixture {
    emulator: Emulator,
    root: PathBuf,
    state: PathBuf,
    _scratch: Scratch,
}

// === impl Fixture ===

impl Fixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        let (root, state) = (scratch.join("m"), scratch.join("state"));
        let emulator =
            Emulator::start(&root, MachineKind::N150, EmulatorOptions::default()).unwrap();
        Self { emulator, root, state, _scratch: scratch }
    }

    fn database(&self) -> PathBuf {
        database_in(&self.state)
    }

    /// Which file the log is; none where there is none.
    fn log(&self) -> Option<(u64, u64)> {
        let found = std::fs::metadata(self.state.join("history.db-wal")).ok()?;
        Some((found.dev(), found.ino()))
    }

    /// Blocks, as a foreign client counts them that ends again.
    fn counted(&self, mode: &str) -> u64 {
        let uri = format!("file:{}?mode={mode}", self.database().display());
        let output = Command::new("python3").args(["-c", CLIENT, &uri]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// Waits until there are two more blocks than `before`.
    fn grows(&self, before: u64) -> u64 {
        let mut count = 0;
        wait_until("the history to grow", TIMEOUT, || {
            count = self.counted("ro");
            count >= before + 2
        });
        count
    }
}

/// Whether the process has a POSIX lock on the file.
fn has_lock(pid: u32, file: &Path) -> bool {
    let inode = std::fs::metadata(file).unwrap().ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, _, holder, place, ..] = fields[..] else { return false };
        holder == pid.to_string() && place.rsplit(':').next() == Some(&inode)
    })
}

fn has_no_client(test: &str) -> bool {
    let tried = Command::new("python3").args(["-c", "import sqlite3"]).output();
    let lacks = !tried.is_ok_and(|output| output.status.success());
    if lacks {
        skip(test, "needs python3 with sqlite3");
    }
    lacks
}

#[test]
fn foreign_clients_beside_a_service_that_is_killed_cost_the_history_nothing() {
    if has_no_client("chaos::foreign_clients_beside_a_service_that_is_killed") {
        return;
    }
    let _alone = crate::chaos::ALONE.lock();
    let fixture = Fixture::new();
    let mut written = 0;
    for round in 0..rounds(2, 20) {
        let service = Service::start(&fixture.root, &fixture.state);
        written = match round {
            // Before the first block there is nothing to count.
            0 => {
                wait_until("a log", TIMEOUT, || fixture.log().is_some());
                fixture.grows(0)
            }
            _ => fixture.grows(written),
        };
        let log = fixture.log();
        assert!(has_lock(service.id(), &fixture.database()), "round {round}: before a query");
        for mode in ["ro", "rw"] {
            for path in ["/api/v1/history", "/api/v1/history?device=none"] {
                let (status, body) = get(&service.http, path);
                assert!(status.ends_with(" OK") || status.ends_with(" Not Found"), "{body}");
                assert!(has_lock(service.id(), &fixture.database()), "round {round}: after {path}");
            }
            written = written.max(fixture.counted(mode));
            assert_eq!(fixture.log(), log, "round {round}: a client took the log away");
        }
        written = fixture.grows(written);
        let metrics = service.metrics();
        assert_eq!(metrics.sum("telltale_history_up", &[]), Some(1.0), "{}", service.said());
        assert_eq!(metrics.sum("telltale_history_failures_total", &[]), Some(0.0));
        service.kill();
        let left = fixture.counted("rw");
        assert!(left >= written, "round {round}: {left} blocks of {written} are left");
        written = left;
    }
    fixture.emulator.shutdown().unwrap();
}

#[test]
fn a_log_that_is_removed_under_a_service_is_reported_and_what_it_had_is_kept() {
    if has_no_client("chaos::a_log_that_is_removed_under_a_service") {
        return;
    }
    let _alone = crate::chaos::ALONE.lock();
    let fixture = Fixture::new();
    let service = Service::start(&fixture.root, &fixture.state);
    wait_until("a log", TIMEOUT, || fixture.log().is_some());
    let written = fixture.grows(0);
    let log = fixture.log();
    for suffix in ["wal", "shm"] {
        std::fs::remove_file(fixture.state.join(format!("history.db-{suffix}"))).unwrap();
    }
    wait_until("the removal to be counted and mended", TIMEOUT, || {
        let metrics = service.metrics();
        metrics.sum("telltale_history_failures_total", &[]) > Some(0.0)
            && metrics.sum("telltale_history_up", &[]) == Some(1.0)
    });
    let said = service.said();
    assert!(said.contains("was removed while it was open"), "{said}");
    assert!(said.contains("nothing of it was lost"), "{said}");
    assert!(fixture.log().is_some() && fixture.log() != log, "there is a new log");
    let (status, body) = get(&service.http, "/api/v1/history");
    assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
    let written = fixture.grows(written);
    service.kill();
    assert!(fixture.counted("rw") >= written);
    fixture.emulator.shutdown().unwrap();
}
