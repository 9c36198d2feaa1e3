//! A process that restarts under the same identity: a collector that goes on must follow it.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector, EndpointUse};
use telltale_emulator::MachineKind;
use telltale_harness::wait_until;
use telltale_ledger::directory::{Purpose, RuntimeDirectory, endpoint_name};
use telltale_runtime::{DeviceDescription, Options, Runtime};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{ProcessSource, Snapshot};

use crate::collecting::bench::{Bench, dram, process, subjects};
use crate::collecting::workload::hand_out;

const TIMEOUT: Duration = Duration::from_secs(60);

fn used(snapshot: &Snapshot) -> Option<u64> {
    snapshot.devices[0].kind(MemoryKind::Dram).map(|one| one.total_bytes)
}

#[test]
fn devices_that_are_closed_and_opened_again_are_followed() {
    let bench = Bench::new(MachineKind::N150);
    let options = CollectOptions { endpoints: EndpointUse::Never, ..bench.options() };
    let mut collectors = [bench.collector(), Collector::new(options).unwrap()];
    let directory = Some(bench.directory.clone());
    let runtime =
        Runtime::start(Options { directory, ..Options::from_variables("test 1", |_| None) });
    let identity = bench.chips[0].clone();
    let open = || {
        let identity = identity.clone();
        runtime.open_device(DeviceDescription { identity, logical_id: 0, facts: None })
    };
    for bytes in [1_000, 20_000, 300_000] {
        let device = open();
        device.allocate(MemoryKind::Dram, 0x1000, bytes);
        for collector in &mut collectors {
            let snapshot = collector.collect();
            assert_eq!(used(&snapshot), Some(bytes), "{:?}", subjects(&snapshot));
            // What the next opening must be indistinguishable from.
            collector.watch();
            let mut seen = Vec::new();
            collector.read_memory(|_, reading| seen.push(reading.usage[0].2.live_bytes));
            assert_eq!(seen, [bytes]);
        }
        drop(device);
    }
}

#[test]
fn a_ledger_that_an_endpoint_hands_out_is_let_go_with_its_socket() {
    let bench = Bench::new(MachineKind::N150);
    let directory = RuntimeDirectory::open(&bench.directory, Purpose::Writing).unwrap();
    let name = endpoint_name(std::process::id(), None);
    let mut collector = bench.collector();
    for bytes in [1_000, 20_000, 300_000] {
        let ledger = hand_out(&directory, &name, bench.chips.clone(), bytes);
        let mut snapshot = collector.collect();
        // Asked the second time, it is the ledger that is followed.
        wait_until("the ledger to be followed", TIMEOUT, || {
            snapshot = collector.collect();
            process(&snapshot, std::process::id()).known_by == Some(ProcessSource::Ledger)
        });
        assert_eq!(dram(&snapshot, 0).total_bytes, bytes, "{:?}", subjects(&snapshot));
        directory.remove(&name).unwrap();
        drop(ledger);
    }
}

/// How many descriptors of this process are of this file.
fn open_descriptors(file: &File) -> usize {
    let meant = file.metadata().unwrap();
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    // Other tests open and close theirs meanwhile.
    let open = entries.filter_map(|entry| fs::metadata(entry.unwrap().path()).ok());
    open.filter(|one| (one.dev(), one.ino()) == (meant.dev(), meant.ino())).count()
}

#[test]
fn a_ledger_that_shrinks_after_it_was_handed_out_leaves_its_process_to_its_answers() {
    let bench = Bench::new(MachineKind::N150);
    let directory = RuntimeDirectory::open(&bench.directory, Purpose::Writing).unwrap();
    let name = endpoint_name(std::process::id(), None);
    let ledger = hand_out(&directory, &name, bench.chips.clone(), 5_000);
    // It has no name any more, but its process has it open.
    let open = ledger.read_only_descriptor().unwrap();
    let path = format!("/proc/self/fd/{}", open.as_raw_fd());
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut whole = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut whole, 0).unwrap();
    let mut collector = bench.collector();
    let known_by = |snapshot: &Snapshot| process(snapshot, std::process::id()).known_by;
    let mut descriptors = Vec::new();
    // Behind its header a ledger may say anything of its own process, zeros as well.
    for cut in [32, 16, 1, 0] {
        wait_until("the ledger to be followed", TIMEOUT, || {
            known_by(&collector.collect()) == Some(ProcessSource::Ledger)
        });
        collector.watch();
        file.set_len(cut).unwrap();
        collector.read_memory(|_, _| {});
        let snapshot = collector.collect();
        assert_eq!(known_by(&snapshot), Some(ProcessSource::Endpoint), "cut to {cut}");
        assert_eq!(dram(&snapshot, 0).total_bytes, 5_000, "{:?}", subjects(&snapshot));
        assert_eq!(subjects(&snapshot).len(), 1, "{:?}", subjects(&snapshot));
        file.write_all_at(&whole, 0).unwrap();
        descriptors.push(open_descriptors(&file));
    }
    assert!(descriptors[3] <= descriptors[1], "what failed was kept: {descriptors:?}");
}
