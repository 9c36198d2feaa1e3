//! The table of a port's GIDs: as long as it may be, and read as a whole from time to time only.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::hardware::{HostPartKind, HostParts};
use telltale_schema::clock::{Clock, ManualClock, Timestamp};
use telltale_schema::reading::Absence;

use super::{PORT, Value, furnished, part, values};
use crate::hardware::tree::Machine;

const SECOND: u64 = 1_000_000_000;
const NONE: &str = "0000:0000:0000:0000:0000:0000:0000:0000\n";
const ROUTABLE: &str = "fd00:0000:0000:0000:b8ce:f6ff:fe00:0001\n";

/// A machine with a port, and what reads it as time passes.
struct Bench {
    machine: Machine,
    clock: Arc<ManualClock>,
    parts: HostParts,
}

impl Bench {
    fn new() -> Self {
        let machine = furnished();
        let clock = Arc::new(ManualClock::starting_at(Timestamp(1_700_000_000 * SECOND)));
        let limits = (Duration::from_secs(20), Duration::from_secs(60));
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let parts = HostParts::new(machine.tree(), shared, limits);
        Self { machine, clock, parts }
    }

    fn set(&self, entry: usize, gid: &str) {
        self.machine.write(&format!("{PORT}/gids/{entry}"), gid);
    }

    /// How many GIDs are set, and how many are routable, so many seconds later.
    fn after(&mut self, seconds: u64) -> [Value; 2] {
        self.clock.advance_ns(seconds * SECOND);
        let reading = self.parts.read();
        let port = values(part(&reading, HostPartKind::InfinibandPort, "mlx5_0/1"));
        ["gids", "routable_gids"].map(|name| port[name])
    }
}

#[test]
fn every_entry_of_the_longest_table_counts() {
    let mut bench = Bench::new();
    (0..256).for_each(|entry| bench.set(entry, ROUTABLE));
    assert_eq!(bench.after(1), [Ok(256.0), Ok(256.0)]);
}

#[test]
fn a_routable_gid_is_watched_and_the_whole_table_is_read_from_time_to_time() {
    let mut bench = Bench::new();
    assert_eq!(bench.after(1), [Ok(2.0), Ok(1.0)]);
    // What is added is seen later, and what is lost at once.
    bench.set(5, ROUTABLE);
    assert_eq!([bench.after(1), bench.after(8)], [[Ok(2.0), Ok(1.0)]; 2]);
    assert_eq!(bench.after(1), [Ok(3.0), Ok(2.0)]);
    bench.set(2, NONE);
    bench.set(5, NONE);
    assert_eq!(bench.after(1), [Ok(1.0), Ok(0.0)]);
    // So is any that is set while there is none.
    bench.set(7, ROUTABLE);
    assert_eq!(bench.after(1), [Ok(2.0), Ok(1.0)]);
}

#[test]
fn a_table_that_was_empty_is_read_until_it_has_a_routable_gid() {
    let mut bench = Bench::new();
    (0..3).for_each(|entry| bench.set(entry, NONE));
    assert_eq!(bench.after(1), [Ok(0.0), Ok(0.0)]);
    bench.set(6, ROUTABLE);
    assert_eq!(bench.after(1), [Ok(1.0), Ok(1.0)]);
}

#[test]
fn a_text_that_is_no_gid_says_nothing_of_the_port() {
    let mut bench = Bench::new();
    assert_eq!(bench.after(1), [Ok(2.0), Ok(1.0)]);
    for text in ["", "\n", "none\n", "fe80::1\n"] {
        bench.set(2, text);
        assert_eq!(bench.after(1), [Err(Absence::Implausible); 2], "{text:?}");
    }
    bench.set(2, ROUTABLE);
    assert_eq!(bench.after(1), [Ok(2.0), Ok(1.0)]);
}

#[test]
fn the_table_is_read_whatever_the_wall_s_clock_does() {
    let mut bench = Bench::new();
    assert_eq!(bench.after(1), [Ok(2.0), Ok(1.0)]);
    bench.set(5, ROUTABLE);
    bench.clock.set_wall(Timestamp(SECOND));
    assert_eq!(bench.after(0), [Ok(3.0), Ok(2.0)]);
}
