//! An interpreter that was built without a thought of this.

use std::path::Path;

use telltale_harness::skip;

use crate::running::{Place, Running};

const PYTHON: &str = "/usr/bin/python3";

const BLOCKS: &str = "
import os, sys, subprocess, multiprocessing
def look(what):
    print(what, os.getpid(), flush=True)
    sys.stdin.readline()
kept = [bytearray(10_000_000) for _ in range(3)]
for _ in range(100):
    bytearray(20_000_000)
look('blocks')
def child(kept):
    del kept[:]
    more = bytearray(40_000_000)
    print('child', os.getpid(), flush=True)
    os.read(0, 10)
process = multiprocessing.get_context('fork').Process(target=child, args=(kept,))
process.start()
process.join()
assert process.exitcode == 0
assert subprocess.run(['true']).returncode == 0
look('after')
";

#[test]
fn pythons_bytearrays_are_recorded_in_the_process_that_has_them() {
    let test = "pythons_bytearrays_are_recorded_in_the_process_that_has_them";
    if !Path::new(PYTHON).exists() {
        return skip(test, "needs Debian's python3");
    }
    let place = Place::new();
    let mut command = place.command(PYTHON);
    // Above what the interpreter has for itself.
    command.args(["-W", "error", "-c", BLOCKS]).env("TELLTALE_RUN_THRESHOLD", "8000000");
    let mut running = Running::start(&mut command);
    let parent = running.says("blocks");
    let usage = place.host(parent);
    // One byte more each: bytearrays end with a zero.
    assert_eq!((usage.live_buffers, usage.live_bytes), (3, 30_000_003));
    assert_eq!(usage.allocations, 103);
    running.go_on();
    let child = running.says("child");
    assert_eq!(place.host(child).live_bytes, 40_000_001);
    assert_eq!(place.host(parent).live_bytes, 30_000_003);
    running.go_on();
    running.says("after");
    assert_eq!(place.ledgers().len(), 1, "the child's has gone with it");
    running.go_on();
    assert_eq!(running.ends().code(), Some(0));
}
