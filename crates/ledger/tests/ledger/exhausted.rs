//! What happens when threads, cells, memory or rights run out: values stay exact as long as there
//! is a cell to share, and afterwards the loss is counted.

use std::path::PathBuf;
use std::process::Command;

use crate::ledger::machine::{Place, device};
use telltale_harness::{needs_root, skip};
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::layout::{CELLS_CAPACITY, DEVICES_CAPACITY, SHARDS_CAPACITY};
use telltale_ledger::{AddDeviceError, CreateError, Ledger, LedgerOwner, Recorder};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;

const DIRECTORY: &str = "TELLTALE_TEST_EXHAUST_IN";

#[test]
fn threads_beyond_the_shards_share_cells() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let count = u64::try_from(SHARDS_CAPACITY).unwrap() + 10;
    let recorders: Vec<Recorder> = (0..count).map(|_| ledger.recorder()).collect();
    for recorder in &recorders {
        recorder.allocated(slot, MemoryKind::Dram, 1 << 20);
    }
    let usage = ledger.usage().usage[0].2;
    assert_eq!((usage.live_bytes, usage.live_buffers), (count << 20, count));
    assert_eq!(usage.peak_bytes, count << 20);
    for recorder in &recorders {
        recorder.freed(slot, MemoryKind::Dram, 1 << 20);
    }
    let reading = place.reader(ledger.file_name()).read().unwrap().clone();
    assert_eq!(reading.usage[0].2.live_bytes, 0);
    assert_eq!(reading.faults, Default::default());
}

#[test]
fn pairs_beyond_the_cells_share_cells_and_none_is_lost() {
    let place = Place::new();
    let ledger = place.ledger();
    let slots: Vec<_> = (0..u32::try_from(DEVICES_CAPACITY).unwrap())
        .map(|number| ledger.add_device(&device(number)).unwrap())
        .collect();
    let one_more = ledger.add_device(&device(9_999));
    assert!(matches!(one_more, Err(AddDeviceError::TooMany)));
    assert_eq!(ledger.add_device(&device(3)).unwrap(), slots[3], "a known one keeps its slot");
    let recorders: Vec<Recorder> = (0..4).map(|_| ledger.recorder()).collect();
    assert!(slots.len() * MemoryKind::ALL.len() * recorders.len() > CELLS_CAPACITY);
    for recorder in &recorders {
        for slot in &slots {
            for kind in MemoryKind::ALL {
                recorder.allocated(*slot, kind, 3);
            }
        }
    }
    let mut reader = place.reader(ledger.file_name());
    let reading = reader.read().unwrap();
    assert_eq!(reading.usage.len(), DEVICES_CAPACITY * MemoryKind::ALL.len());
    assert!(reading.usage.iter().all(|(_, _, usage)| usage.live_bytes == 12));
    assert_eq!((reading.faults.unrecorded_events, reading.unknown_cells), (0, 0));
}

/// Starts this test program again to run `test` alone, by way of a shell that runs `before`.
fn run_again(test: &str, before: &str, place: &Place) {
    let script = format!("{before} && exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(DIRECTORY, place.path("inside"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complained}", output.status);
    assert!(said.contains("1 passed"), "the test ran: {said}");
}

fn create_inside() -> Option<Result<Ledger, CreateError>> {
    let path = std::env::var_os(DIRECTORY).map(PathBuf::from)?;
    let directory = RuntimeDirectory::open(&path, Purpose::Writing).unwrap();
    let owner = LedgerOwner::of_this_process("test 1", Timestamp(0)).unwrap();
    Some(Ledger::create(&directory, owner))
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_no_signal() {
    if let Some(created) = create_inside() {
        let error = created.unwrap_err();
        assert!(matches!(error, CreateError::FileSizeLimit { limit_bytes: 8192 }), "{error}");
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("inside")).unwrap();
    let test = "ledger::exhausted::a_limit_on_file_sizes_is_an_error_and_no_signal";
    // Units of 512 bytes, as POSIX says.
    run_again(test, "ulimit -f 16", &place);
}

/// Whether this is root and may mount in a mount namespace of its own.
fn can_mount(test: &str) -> bool {
    let mut trial = Command::new("unshare");
    trial.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=4k none /mnt"]);
    if !needs_root(test) {
        return false;
    }
    let works = trial.output().is_ok_and(|output| output.status.success());
    if !works {
        skip(test, "needs the right to mount, and unshare from util-linux");
    }
    works
}

#[test]
fn a_full_file_system_costs_accounting_and_never_the_workload() {
    if let Some(created) = create_inside() {
        return record_beyond_memory(&created.unwrap());
    }
    let name = "ledger::exhausted::a_full_file_system_costs_accounting_and_never_the_workload";
    if !can_mount(name) {
        return;
    }
    let place = Place::new();
    let inside = place.path("inside");
    std::fs::create_dir(&inside).unwrap();
    // Two pages: one for header and cells, one for devices; no third.
    let mount = format!("mount -t tmpfs -o size=8k,mode=700 none {}", inside.display());
    let script =
        format!("unshare --mount sh -c '{mount} && exec \"$0\" --exact {name} --nocapture'");
    // `run_again` would run the program outside of the namespace; here it is run by the script.
    let output = Command::new("sh")
        .args(["-c", &format!("{script} {}", std::env::current_exe().unwrap().display())])
        .env(DIRECTORY, &inside)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

fn record_beyond_memory(ledger: &Ledger) {
    let slots: Vec<_> = (0..20).map(|number| ledger.add_device(&device(number)).unwrap()).collect();
    let recorders = [ledger.recorder(), ledger.recorder()];
    let mut recorded = 0;
    for slot in &slots {
        for kind in MemoryKind::ALL {
            for recorder in &recorders {
                recorder.allocated(*slot, kind, 4096);
                recorded += 1;
            }
        }
    }
    // One page has 56 cells, for 180 pairs and two threads.
    let reading = ledger.usage();
    let live: u64 = reading.usage.iter().map(|(_, _, usage)| usage.live_buffers).sum();
    assert!(reading.usage.len() >= 18 && reading.usage.len() <= 56);
    assert_eq!(live + reading.faults.unrecorded_events, recorded, "each event is somewhere");
    assert!(reading.usage.iter().all(|(_, _, usage)| usage.live_buffers == 2), "or none of a pair");
    let more: Result<Vec<_>, _> =
        (20..40).map(|number| ledger.add_device(&device(number))).collect();
    assert!(matches!(more, Err(AddDeviceError::Reserve(_))), "32 devices are on the first page");
}
