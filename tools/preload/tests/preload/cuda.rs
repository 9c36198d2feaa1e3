//! The driver's memory: every function, found in every way, with a driver that is none.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use telltale_harness::compile_c;
use telltale_ledger::LedgerReading;
use telltale_schema::memory::{MemoryKind, MemoryUsage};

use crate::preload::running::{Place, Running};

/// A folder with the driver that stands in.
static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload-driver");
    std::fs::create_dir_all(&folder).unwrap();
    // As the real one, it calls itself and not another with the same names.
    let flags = ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,libcuda.so.1"];
    compile_c(&source("libcuda.c"), &folder.join("libcuda.so.1"), &flags);
    folder
});

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn program(name: &str, flags: &[&str]) -> PathBuf {
    compile_c(&source("cuda.c"), &Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), flags)
}

static ASKING: LazyLock<PathBuf> = LazyLock::new(|| program("preload-cuda", &["-ldl"]));
static LINKED: LazyLock<PathBuf> = LazyLock::new(|| {
    let driver = DRIVER.join("libcuda.so.1");
    program("preload-cuda-linked", &["-DLINKED", "-w", "-std=gnu17", driver.to_str().unwrap()])
});

/// A program that is linked with a runtime that stands in.
static RUNTIME: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = DRIVER.join("libcudart.so.12");
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libcudart.so.12", "-ldl"];
    compile_c(&source("cudart.c"), &library, &flags);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload-runtime");
    compile_c(&source("runtime.c"), &program, &[library.to_str().unwrap()])
});

/// What the ledger says of a kind on the device with this bus number.
fn usage(reading: &LedgerReading, bus: u8, kind: MemoryKind) -> MemoryUsage {
    let is_it = |slot: usize| {
        let pci = reading.devices[slot].identity.pci;
        pci.is_some_and(|pci| (pci.domain, pci.bus, pci.device) == (0, bus, 0))
    };
    let found = reading.usage.iter().find(|(slot, of, _)| is_it(slot.index()) && *of == kind);
    found.map(|(.., usage)| *usage).unwrap_or_default()
}

fn live(reading: &LedgerReading, bus: u8, kind: MemoryKind) -> (u64, u64) {
    let usage = usage(reading, bus, kind);
    (usage.live_bytes, usage.live_buffers)
}

/// Runs the program and compares its ledger with what it says it did.
#[track_caller]
fn check(program: &Path, way: &str) {
    let place = Place::new();
    let mut command = place.command(program);
    command.arg(way).env("LD_LIBRARY_PATH", &*DRIVER);
    let mut running = Running::start(&mut command);
    let pid = running.says("sums");
    let sums = place.reading(pid);
    let first = usage(&sums, 0x17, MemoryKind::Dram);
    let kept = 1_000_000 + 10_240 + 3_000_000 + 4_000_000;
    assert_eq!((first.live_bytes, first.live_buffers), (kept, 4), "{way}");
    assert_eq!(first.allocated_bytes, kept + 2_000_000 + 5_000_000 + 6_000_000, "{way}");
    assert_eq!((first.allocations, first.failed_allocations), (7, 1), "{way}");
    let locked = usage(&sums, 0x17, MemoryKind::SystemMemory);
    assert_eq!((locked.live_bytes, locked.allocated_bytes), (7_000_000, 15_000_000), "{way}");
    assert_eq!(live(&sums, 0xb1, MemoryKind::Dram), (9_000_000, 1), "{way}");
    let gpu = sums.devices.iter().find(|device| device.identity.pci.is_some()).unwrap();
    assert_eq!(gpu.dram_capacity_bytes, Some(80 << 30));

    let mut other = |what: &str| {
        running.go_on();
        assert_eq!(running.says(what), pid);
        live(&place.reading(pid), 0xb1, MemoryKind::Dram)
    };
    let volume = 64 * 32 * 10 * 4;
    let arrays = 12_000_000 + volume + (volume + 32 * 16 * 5 * 4);
    assert_eq!(other("arrays"), (9_000_000 + arrays, 4), "{way}: arrays have their elements");
    assert_eq!(other("array"), (9_000_000 + 12_000_000, 2), "{way}");
    let mib = |count: u64| count << 20;
    assert_eq!(other("mapped"), (9_000_000 + mib(48), 3), "{way}: what is mapped is there");
    assert_eq!(other("held"), (9_000_000 + mib(32), 2), "{way}: so is what is held");
    assert_eq!(other("released"), (9_000_000, 1), "{way}");
    assert_eq!(other("reset"), (0, 0), "{way}: a context takes its blocks with it");
    running.go_on();
    if program == *ASKING {
        running.says("again");
        let first = usage(&place.reading(pid), 0x17, MemoryKind::Dram);
        assert_eq!(first.live_bytes, kept + 10_000_000, "{way}: recorded after dlclose");
        running.go_on();
    }
    assert_eq!(running.ends().code(), Some(0), "{way}");
    assert!(place.ledgers().is_empty(), "{way}");
}

#[test]
fn a_program_that_is_linked_with_the_driver_is_recorded() {
    check(&LINKED, "linked");
}

#[test]
fn a_program_that_asks_the_loader_for_the_driver_is_recorded() {
    check(&ASKING, "dlsym");
}

#[test]
fn programs_that_ask_the_driver_itself_as_cudas_runtime_does_are_recorded() {
    for way in ["before-12", "since-12", "per-thread"] {
        check(&ASKING, way);
    }
}

#[test]
fn a_program_that_is_linked_with_cudas_runtime_is_recorded_through_it() {
    let place = Place::new();
    let mut command = place.command(&*RUNTIME);
    let mut running = Running::start(command.env("LD_LIBRARY_PATH", &*DRIVER));
    let pid = running.says("has");
    let reading = place.reading(pid);
    let first = usage(&reading, 0x17, MemoryKind::Dram);
    assert_eq!((first.live_bytes, first.live_buffers), (1_000_000 + 4_000_000 + 32_000_000, 3));
    assert_eq!(first.allocated_bytes, first.live_bytes + 2_000_000 + 8_000_000 + 1_024);
    assert_eq!(live(&reading, 0x17, MemoryKind::SystemMemory), (16_000_000, 1));
    running.go_on();
    assert_eq!(running.says("reset"), pid);
    let reading = place.reading(pid);
    assert_eq!(live(&reading, 0x17, MemoryKind::Dram), (0, 0), "a reset takes all blocks");
    assert_eq!(live(&reading, 0x17, MemoryKind::SystemMemory), (0, 0));
    running.go_on();
    assert_eq!(running.ends().code(), Some(0));
}
