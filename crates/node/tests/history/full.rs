//! A disk without room: the service goes on, says so, and writes again when there is room.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use telltale_harness::{Scratch, needs_pid_namespaces, wait_until};
use telltale_node::access::Sight;
use telltale_node::history::{HistoryOptions, Reader, Writer, database_in};
use telltale_schema::clock::{Clock, ManualClock};
use telltale_schema::history::HistoryQuery;

use crate::machine::{SECOND, after, device, integrity, process, series, snapshot};

/// Set within the namespace in which a small disk is mounted, to where that is.
const SMALL: &str = "TELLTALE_TEST_HISTORY_SMALL_DISK";
const TEST: &str = "full::a_full_disk_costs_history_and_nothing_else";

#[test]
fn a_full_disk_costs_history_and_nothing_else() {
    if let Some(disk) = std::env::var_os(SMALL) {
        return fill_and_make_room(Path::new(&disk));
    }
    // The same right is needed for a mount of one's own as for a PID namespace.
    if !needs_pid_namespaces(&format!("telltale-node::history::{TEST}")) {
        return;
    }
    let scratch = Scratch::new();
    let script = "mount -t tmpfs -o size=1m none \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", script]).arg(scratch.path());
    command.arg(std::env::current_exe().unwrap()).args(["--exact", TEST, "--nocapture"]);
    let output = command.env(SMALL, scratch.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

fn fill_and_make_room(disk: &Path) {
    let clock = Arc::new(ManualClock::starting_at(after(0)));
    let given = Arc::clone(&clock) as Arc<dyn Clock>;
    let options = HistoryOptions::default();
    let writer = Writer::start(disk, &options, Duration::from_secs(1), given).unwrap();
    let mut offered = 0;
    let mut see_for = |seconds: u64| {
        for second in 0..seconds {
            let jobs: Vec<_> =
                (1..60).map(|pid| process(pid, second * u64::from(pid) * 4_999, &[0])).collect();
            writer.offer(Arc::new(snapshot(clock.now(), &[device(0, second, None)], &jobs)));
            offered += 1;
            clock.advance_ns(SECOND);
            wait_until("it to be taken in", Duration::from_secs(20), || {
                writer.figures().recorded + writer.figures().missed == offered
            });
        }
        writer.figures()
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
    let answer = Reader::open(&path).unwrap().query(&query, Sight::Everything).unwrap();
    let used = &series(&answer, "device_memory_used", "dram").mean;
    assert!(used[0].is_some() && used[24].is_some(), "{used:?}");
    assert_eq!(used[8], None, "what had no room is missing, and not made up");
}
