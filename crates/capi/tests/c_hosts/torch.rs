//! PyTorch's allocator, with a driver that stands in: alone, and under `telltale run`.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use crate::c_hosts::installed::{here, install};
use telltale_harness::{ChildGuard, Scratch, cargo_library_directory, compile_c, skip};
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{LedgerReader, LedgerReading};
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::snapshot::RecordingFaults;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder with the driver that stands in.
static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("torch-driver");
    std::fs::create_dir_all(&folder).unwrap();
    let source = here().join("../../tools/preload/tests/libcuda.c");
    let flags = ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,libcuda.so.1"];
    compile_c(&source, &folder.join("libcuda.so.1"), &flags);
    folder
});

/// As CUDAPluggableAllocator begins: both functions by name, as addresses. Then what PyTorch calls.
const PYTHON: &str = "
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
alloc, give = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value
               for name in ('telltale_torch_alloc', 'telltale_torch_free'))
alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(alloc)
give = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(give)
kept, freed, other = alloc(1000000, 0, None), alloc(2000000, 0, None), alloc(4000000, 1, None)
assert kept and freed and other and alloc(1 << 50, 0, None) is None
give(freed, 2000000, 0, None)
print('has', flush=True)
sys.stdin.read()
give(kept, 1000000, 0, None)
give(other, 4000000, 1, None)
";

/// A program that holds what `tests/c/torch.c` says, and where its ledgers are.
struct Holding {
    folder: Scratch,
    child: ChildGuard,
}

impl Holding {
    #[track_caller]
    fn start(mut command: Command) -> Self {
        let folder = Scratch::new();
        folder.set_mode(0o700);
        command.env("TT_METRICS_SOCKET_DIR", folder.path()).env_remove("TELLTALE_DISABLED");
        command.env("LD_LIBRARY_PATH", &*DRIVER).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = ChildGuard::spawn(&mut command);
        let mut line = String::new();
        BufReader::new(child.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("has"), "{line}");
        Self { folder, child }
    }

    fn readings(&self) -> Vec<LedgerReading> {
        let directory = RuntimeDirectory::open(self.folder.path(), Purpose::Reading).unwrap();
        let entries = directory.list().unwrap().ledgers;
        let read =
            |name: &str| LedgerReader::open_at(&directory, name).unwrap().read().unwrap().clone();
        entries.iter().map(|entry| read(&entry.name)).collect()
    }

    /// Ends the program, which then has left nothing.
    #[track_caller]
    fn end(mut self) {
        drop(self.child.child().stdin.take());
        assert!(self.child.wait_within("the program to end", TIMEOUT).success());
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), 0);
    }
}

/// The device's own memory on the bus with this number.
fn dram(reading: &LedgerReading, bus: u8) -> MemoryUsage {
    let is_there = |slot: usize| reading.devices[slot].identity.pci.is_some_and(|at| at.bus == bus);
    let found = reading
        .usage
        .iter()
        .find(|(slot, kind, _)| is_there(slot.index()) && *kind == MemoryKind::Dram);
    found.unwrap().2
}

#[track_caller]
fn check(reading: &LedgerReading) {
    let expected = MemoryUsage {
        live_bytes: 1_000_000,
        live_buffers: 1,
        peak_bytes: 3_000_000,
        allocations: 2,
        allocated_bytes: 3_000_000,
        failed_allocations: 1,
    };
    assert_eq!(dram(reading, 0x17), expected);
    let other = dram(reading, 0xb1);
    assert_eq!((other.live_bytes, other.allocations), (4_000_000, 1));
    assert_eq!(reading.faults, RecordingFaults::default());
}

fn program(scratch: &Scratch) -> (Command, PathBuf) {
    let prefix = install(scratch);
    let include = format!("-I{}", prefix.join("include").display());
    let source = here().join("tests/c/torch.c");
    let program = compile_c(&source, &scratch.join("torch"), &["-std=gnu11", &include, "-ldl"]);
    let library = prefix.join("lib/libtelltale.so.0");
    let mut command = Command::new(program);
    command.arg(&library);
    (command, library)
}

#[test]
fn what_pytorch_allocates_is_in_the_ledger_of_the_process() {
    let scratch = Scratch::new();
    let holding = Holding::start(program(&scratch).0);
    let readings = holding.readings();
    let [reading] = readings.as_slice() else { panic!("{readings:?}") };
    check(reading);
    holding.end();
}

/// The library of `telltale run` has all of the driver's memory, so that it has this, too.
#[test]
fn under_telltale_run_it_is_in_one_ledger_and_once() {
    let scratch = Scratch::new();
    let (mut command, _) = program(&scratch);
    let preload = cargo_library_directory("telltale-preload", "telltale_preload");
    command.env("LD_PRELOAD", preload.join("libtelltale_preload.so"));
    command.env("TELLTALE_RUN_THRESHOLD", "1048576");
    let holding = Holding::start(command);
    let readings = holding.readings();
    let [reading] = readings.as_slice() else { panic!("{readings:?}") };
    assert!(reading.runtime.starts_with("telltale run "), "{reading:?}");
    check(reading);
    holding.end();
}

#[test]
fn a_preloaded_library_that_records_nothing_leaves_it_to_this_one() {
    let scratch = Scratch::new();
    let (mut command, _) = program(&scratch);
    let preload = cargo_library_directory("telltale-preload", "telltale_preload");
    command.env("LD_PRELOAD", preload.join("libtelltale_preload.so"));
    command.env_remove("TELLTALE_RUN_THRESHOLD");
    let holding = Holding::start(command);
    let readings = holding.readings();
    let [reading] = readings.as_slice() else { panic!("{readings:?}") };
    assert!(!reading.runtime.starts_with("telltale run "), "{reading:?}");
    check(reading);
    holding.end();
}

#[test]
fn without_a_driver_or_with_telltale_switched_off_the_program_has_what_there_is() {
    let scratch = Scratch::new();
    let (mut command, _) = program(&scratch);
    let output = command.env("TT_METRICS_SOCKET_DIR", scratch.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if said != "no driver\n" {
        let test = "without_a_driver_or_with_telltale_switched_off_the_program_has_what_there_is";
        return skip(&format!("capi::{test}"), "needs a machine without a CUDA driver");
    }
    command.env("TELLTALE_DISABLED", "1").env("LD_LIBRARY_PATH", &*DRIVER);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"has "), "{output:?}");
}

#[test]
fn python_finds_and_calls_it_as_pytorch_does() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        let test = "capi::python_finds_and_calls_it_as_pytorch_does";
        return skip(test, "needs Debian's python3");
    }
    let scratch = Scratch::new();
    let (_, library) = program(&scratch);
    let mut command = Command::new(python);
    command.args(["-c", PYTHON]).arg(library);
    let holding = Holding::start(command);
    let readings = holding.readings();
    let [reading] = readings.as_slice() else { panic!("{readings:?}") };
    check(reading);
    holding.end();
}
