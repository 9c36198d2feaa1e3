//! A process with two ledgers: its own, and the one that the library of `telltale run` keeps.

use telltale_emulator::MachineKind;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{DeviceEntry, LedgerOwner, SealedLedger};
use telltale_runtime::{Device, DeviceDescription, Options, Runtime};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{ProcessState, Snapshot};

use crate::collecting::bench::{Bench, subjects};

const OWN_BYTES: u64 = 1_000;
const HOST_BYTES: u64 = 20_000;
/// Of the device that both record.
const SEEN_TWICE_BYTES: u64 = 700;

fn own(bench: &Bench) -> Device {
    let directory = Some(bench.directory.clone());
    let runtime =
        Runtime::start(Options { directory, ..Options::from_variables("test 1", |_| None) });
    let identity = bench.chips[0].clone();
    let device = runtime.open_device(DeviceDescription { identity, logical_id: 0, facts: None });
    device.allocate(MemoryKind::Dram, 0x1000, OWN_BYTES);
    device
}

fn preloaded(bench: &Bench) -> SealedLedger {
    let directory = RuntimeDirectory::open(&bench.directory, Purpose::Writing).unwrap();
    let owner = LedgerOwner::of_this_process("telltale run 1", Timestamp(1)).unwrap();
    let ledger = SealedLedger::create(&directory, &owner).unwrap();
    let count = |entry: &DeviceEntry, kind, bytes| {
        let device = ledger.add_device(entry).unwrap();
        ledger.account(device, kind).unwrap().allocated(bytes);
    };
    let host = DeviceEntry { is_host: true, ..DeviceEntry::default() };
    count(&host, MemoryKind::SystemMemory, HOST_BYTES);
    let identity = bench.chips[0].clone();
    let shared = DeviceEntry { identity, ..DeviceEntry::default() };
    count(&shared, MemoryKind::Dram, SEEN_TWICE_BYTES);
    ledger
}

#[track_caller]
fn check(snapshot: &Snapshot) {
    let [process] = snapshot.processes.as_slice() else { panic!("{:?}", snapshot.processes) };
    assert_eq!(process.state, ProcessState::Alive);
    let bytes = |kind| {
        let of_kind = process.devices.iter().flat_map(|held| &held.kinds);
        let of_kind = of_kind.filter(|one| one.kind == kind);
        of_kind.map(|one| one.usage.live_bytes()).sum::<u64>()
    };
    assert_eq!(bytes(MemoryKind::Dram), OWN_BYTES, "{:?}", subjects(snapshot));
    assert_eq!(bytes(MemoryKind::SystemMemory), HOST_BYTES);
    let chip = snapshot.devices[0].kind(MemoryKind::Dram).unwrap();
    assert_eq!((chip.processes_bytes, chip.total_bytes), (OWN_BYTES, OWN_BYTES));
    let host = snapshot.devices.iter().find(|device| device.identity.is_host()).unwrap();
    assert_eq!(host.kind(MemoryKind::SystemMemory).unwrap().total_bytes, HOST_BYTES);
}

#[test]
fn both_ledgers_of_a_process_are_shown_and_no_device_counts_twice() {
    let bench = Bench::new(MachineKind::N150);
    for own_first in [true, false] {
        let mut collector = bench.collector();
        let (device, ledger) = match own_first {
            true => {
                let device = own(&bench);
                (device, preloaded(&bench))
            }
            false => {
                let ledger = preloaded(&bench);
                (own(&bench), ledger)
            }
        };
        check(&collector.collect());
        check(&bench.collector().collect());
        drop(device);
        ledger.remove();
    }
}
