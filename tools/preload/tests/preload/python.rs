//! An interpreter that was built without a thought of this.

use std::path::Path;
use std::process::Command;

use telltale_harness::skip;

use crate::preload::running::{Place, Running};

const PYTHON: &str = "/usr/bin/python3";

/// NumPy's arrays come from the C library, which maps memory for them, and a map of the program's own.
const ARRAYS: &str = "
import mmap, os, sys
import numpy
def look(what):
    print(what, os.getpid(), flush=True)
    sys.stdin.readline()
zeroed = numpy.zeros(2_000_000)
empty = numpy.empty(24_000_000, dtype=numpy.uint8)
grown = numpy.zeros(9_000_000, dtype=numpy.uint8)
grown.resize(12_000_000)
own = mmap.mmap(-1, 64_000_000)
view = zeroed[10:].reshape(2, -1).T
look('arrays')
sums = zeroed + 1
del zeroed, view, empty
look('sums')
";

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

#[test]
fn numpys_arrays_are_recorded_and_maps_of_the_program_are_not() {
    let trial = Command::new(PYTHON).args(["-c", "import numpy"]).output();
    if !trial.is_ok_and(|output| output.status.success()) {
        let test = "numpys_arrays_are_recorded_and_maps_of_the_program_are_not";
        return skip(test, "needs Debian's python3-numpy");
    }
    let place = Place::new();
    let mut command = place.command(PYTHON);
    // Above what the interpreter and the library have for themselves.
    command.args(["-c", ARRAYS]).env("TELLTALE_RUN_THRESHOLD", "8000000");
    let mut running = Running::start(&mut command);
    let pid = running.says("arrays");
    let arrays = place.host(pid);
    assert_eq!((arrays.live_bytes, arrays.live_buffers), (16_000_000 + 24_000_000 + 12_000_000, 3));
    assert_eq!(arrays.allocated_bytes, arrays.live_bytes + 9_000_000, "one was made larger");
    running.go_on();
    assert_eq!(running.says("sums"), pid);
    let sums = place.host(pid);
    assert_eq!((sums.live_bytes, sums.live_buffers), (16_000_000 + 12_000_000, 2));
    running.go_on();
    assert_eq!(running.ends().code(), Some(0));
}
