//! Emulated machines of every kind, whole and broken.

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{
    ChipDescription, Fault, InjectedErrno, Machine, MachineKind, MachineOptions, PidsFault,
};
use telltale_harness::Scratch;
use telltale_schema::chip::{BoardType, ChipFacts};
use telltale_schema::health::FaultKind;
use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, Snapshot};

/// An emulated machine and a collector that checks it.
struct Bench {
    machine: Machine,
    collector: Collector,
    _scratch: Scratch,
}

impl Bench {
    fn new(kind: MachineKind) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("machine");
        let machine = Machine::create(&root, kind, &MachineOptions::default()).unwrap();
        let timeout = std::time::Duration::from_millis(150);
        let options = CollectOptions { root, timeout, ..CollectOptions::default() };
        Self { machine, collector: Collector::new(options).unwrap(), _scratch: scratch }
    }

    fn with_fault(kind: MachineKind, fault: Fault) -> Snapshot {
        let mut bench = Self::new(kind);
        bench.machine.inject(fault).unwrap();
        bench.collector.collect()
    }
}

fn absence<T>(reading: &Reading<T>) -> Option<Absence> {
    reading.absence().map(|(reason, _)| reason)
}

fn errors(snapshot: &Snapshot) -> Vec<(String, Absence)> {
    let errors = snapshot.sources.iter().flat_map(|source| &source.errors);
    errors.map(|error| (error.subject.clone(), error.reason)).collect()
}

#[test]
fn every_kind_of_machine_is_read_as_it_is() {
    let kinds = [
        (MachineKind::N150, 1, "n150"),
        (MachineKind::N300, 2, "n300"),
        (MachineKind::T3000, 8, "n300"),
        (MachineKind::GalaxyWormhole, 32, "galaxy-wormhole"),
        (MachineKind::GalaxyBlackhole, 32, "galaxy-blackhole"),
        (MachineKind::P150, 1, "p150"),
        (MachineKind::P300, 2, "p300"),
    ];
    for (kind, devices, board) in kinds {
        let mut bench = Bench::new(kind);
        let snapshot = bench.collector.collect();
        assert_eq!(errors(&snapshot), [], "{board}");
        assert_eq!(snapshot.devices.len(), devices, "{board}");
        let mut described: Vec<ChipDescription> = (0..bench.machine.chip_count())
            .flat_map(|place| bench.machine.descriptions(place))
            .collect();
        for device in &snapshot.devices {
            assert_eq!(device.identity.product(), board);
            check_device(device, &mut described);
        }
        assert!(described.is_empty(), "{board}: not shown: {described:?}");
        let places: Vec<_> = (snapshot.devices.iter())
            .filter_map(|device| device.identity.chip().filter(|chip| chip.pci.is_some()))
            .map(|chip| (chip.galaxy, chip.pci))
            .collect();
        assert!(places.is_sorted(), "{board}");
    }
}

/// Compares a device with the emulator's own description of it.
fn check_device(device: &Device, described: &mut Vec<ChipDescription>) {
    let place = described.iter().position(|one| one.identity.display_id() == device.id);
    let one = described.swap_remove(place.unwrap_or_else(|| panic!("{} is not there", device.id)));
    assert_eq!(device.identity, one.identity.into());
    assert_eq!(device.facts.value(), Some(&one.facts));
    let dram = device.space(MemorySpace::Dram).unwrap();
    assert_eq!(dram.capacity_bytes.value(), Some(&one.facts.dram_capacity_bytes));
    assert_eq!(dram.used_bytes.value(), Some(&0));
    if device.identity.is_remote() {
        assert_eq!(absence(&device.telemetry.power_watts), Some(Absence::Unsupported));
    } else {
        let telemetry = &device.telemetry;
        for reading in
            [&telemetry.temperature_celsius, &telemetry.power_watts, &telemetry.voltage_volts]
        {
            assert!(reading.value().is_some(), "{}: {reading:?}", device.id);
        }
        assert!(telemetry.aiclk_hertz.value().is_some());
        assert_eq!(telemetry.pcie.len(), 12);
        assert!(telemetry.firmware.contains_key("tt_fw_bundle_ver"));
        assert_eq!(device.holders.value(), Some(&Vec::new()));
    }
}

#[test]
fn faults_cost_what_they_hit_and_are_reported() {
    let attribute = || "tt_aiclk".to_owned();
    let cases = [
        (Fault::Missing { ordinal: 0, attribute: attribute() }, Absence::Unsupported, None),
        (
            Fault::Error { ordinal: 0, attribute: attribute(), errno: InjectedErrno::Io },
            Absence::Failed,
            Some("tenstorrent!0/tt_aiclk"),
        ),
        (
            Fault::Error { ordinal: 0, attribute: attribute(), errno: InjectedErrno::Access },
            Absence::Permission,
            Some("tenstorrent!0/tt_aiclk"),
        ),
        (
            "garbage:0:tt_aiclk".parse().unwrap(),
            Absence::Implausible,
            Some("tenstorrent!0/tt_aiclk"),
        ),
        (
            "garbage:0:tt_aiclk:long".parse().unwrap(),
            Absence::Implausible,
            Some("tenstorrent!0/tt_aiclk"),
        ),
        (
            "garbage:0:tt_aiclk:binary".parse().unwrap(),
            Absence::Implausible,
            Some("tenstorrent!0/tt_aiclk"),
        ),
        (
            Fault::Hang { ordinal: 0, attribute: attribute() },
            Absence::TimedOut,
            Some("tenstorrent!0/tt_aiclk"),
        ),
    ];
    for (fault, reason, subject) in cases {
        let words = fault.to_string();
        let snapshot = Bench::with_fault(MachineKind::N300, fault);
        let telemetry = &snapshot.devices[0].telemetry;
        assert_eq!(absence(&telemetry.aiclk_hertz), Some(reason), "{words}");
        assert!(telemetry.temperature_celsius.value().is_some(), "{words}");
        let errors = errors(&snapshot);
        match subject {
            None => assert_eq!(errors, [], "{words}"),
            Some(subject) => assert_eq!(errors[0], (subject.to_owned(), reason), "{words}"),
        }
    }
}

#[test]
fn a_machine_whose_driver_hangs_everywhere_is_read_in_bounded_time() {
    let mut bench = Bench::new(MachineKind::GalaxyWormhole);
    for ordinal in 0..32 {
        for attribute in ["tt_aiclk", "temp1_input"] {
            let attribute = attribute.to_owned();
            bench.machine.inject(Fault::Hang { ordinal, attribute }).unwrap();
        }
    }
    let started = std::time::Instant::now();
    for _ in 0..3 {
        let snapshot = bench.collector.collect();
        assert_eq!(snapshot.devices.len(), 32);
        let hung = |device: &Device| absence(&device.telemetry.aiclk_hertz);
        assert!(snapshot.devices.iter().all(|one| hung(one) == Some(Absence::TimedOut)));
        let reported = errors(&snapshot);
        assert!(reported.iter().any(|(subject, _)| subject == "sysfs"), "{reported:?}");
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stuck = threads.filter(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        name.trim() == "telltale-read"
    });
    assert!(stuck.count() < 60, "threads left behind are bounded, other tests' included");
}

#[test]
fn a_reset_and_a_lost_chip_are_seen_and_so_is_their_end() {
    let mut bench = Bench::new(MachineKind::T3000);
    assert_eq!(bench.collector.collect().devices.len(), 8);
    let reset = Fault::Reset { ordinal: 1 };
    bench.machine.inject(reset.clone()).unwrap();
    let snapshot = bench.collector.collect();
    let resetting = |snapshot: &Snapshot| {
        let chips = snapshot.devices.iter();
        chips.filter(|one| absence(&one.telemetry.aiclk_hertz) == Some(Absence::Resetting)).count()
    };
    assert_eq!(resetting(&snapshot), 1);
    assert_eq!(snapshot.devices.len(), 8, "who the chip is was known before");
    bench.machine.clear(&reset).unwrap();
    assert_eq!(resetting(&bench.collector.collect()), 0);
    let vanish = Fault::Vanish { ordinal: 1, returns_as: Some(9) };
    bench.machine.inject(vanish.clone()).unwrap();
    let snapshot = bench.collector.collect();
    assert_eq!(snapshot.devices.len(), 8, "a card and its remote chip keep their rows");
    let lost = snapshot.devices.iter().filter(|one| one.fault(FaultKind::Vanished).is_some());
    assert_eq!(lost.map(|one| absence(&one.holders)).collect::<Vec<_>>(), [Some(Absence::Gone); 2]);
    bench.machine.clear(&vanish).unwrap();
    let snapshot = bench.collector.collect();
    assert_eq!(snapshot.devices.len(), 8);
    assert!(
        snapshot
            .devices
            .iter()
            .any(|one| one.identity.chip().is_some_and(|chip| chip.driver_ordinal == Some(9)))
    );
    let kinds = |device: &Device| device.faults.iter().map(|one| one.kind).collect::<Vec<_>>();
    let events: Vec<_> = snapshot.devices.iter().flat_map(kinds).collect();
    let expected = [FaultKind::CameBack, FaultKind::WasReset, FaultKind::CameBack];
    assert_eq!(events, expected, "events, and no faults: one of the two was reset before");
    assert_eq!(errors(&snapshot), []);
}

#[test]
fn while_a_chip_resets_its_ledgers_tell_its_board() {
    let mut bench = crate::collecting::bench::Bench::new(MachineKind::N150);
    bench.machine.inject(Fault::Reset { ordinal: 0 }).unwrap();
    let capacity = |snapshot: &Snapshot| {
        snapshot.devices[0].space(MemorySpace::Dram).unwrap().capacity_bytes.clone()
    };
    let alone = bench.collector().collect();
    assert_eq!(absence(&capacity(&alone)), Some(Absence::Resetting), "nobody else knows it");
    let _workload = crate::collecting::workload::start(
        &bench.child(crate::collecting::workload::Role::Ledger, 7),
    );
    let snapshot = bench.collector().collect();
    assert_eq!(snapshot.devices.len(), 1);
    assert_eq!(snapshot.devices[0].facts.value(), ChipFacts::of_board(BoardType::N150).as_ref());
    assert!(capacity(&snapshot).value().is_some());
    assert_eq!(absence(&snapshot.devices[0].telemetry.aiclk_hertz), Some(Absence::Resetting));
}

#[test]
fn an_old_driver_is_named_and_use_without_its_list_is_unknown() {
    let snapshot = Bench::with_fault(MachineKind::N150, Fault::OldDriver);
    let device = &snapshot.devices[0];
    assert_eq!(absence(&device.holders), Some(Absence::Unsupported));
    let dram = device.space(MemorySpace::Dram).unwrap();
    assert_eq!(absence(&dram.used_bytes), Some(Absence::Unsupported));
    assert!(errors(&snapshot).iter().any(|(subject, _)| subject.starts_with("tt-kmd 2.4")));
}

#[test]
fn lists_of_openers_are_read_for_what_they_are() {
    let lines = |lines| Fault::Pids { ordinal: 0, lines };
    let snapshot = Bench::with_fault(MachineKind::N150, lines(PidsFault::Zero));
    let holders = snapshot.devices[0].holders.value().unwrap();
    assert_eq!(holders.iter().filter(|holder| holder.pid.is_none()).count(), 1);
    let snapshot = Bench::with_fault(MachineKind::N150, lines(PidsFault::Junk));
    assert_eq!(errors(&snapshot)[0].1, Absence::Implausible);
    let mut bench = Bench::new(MachineKind::N150);
    let me = std::process::id();
    bench.machine.set_holders(0, &[me]).unwrap();
    bench.machine.inject(lines(PidsFault::Duplicates)).unwrap();
    let snapshot = bench.collector.collect();
    let holders = snapshot.devices[0].holders.value().unwrap();
    assert_eq!((holders[0].pid, holders[0].open_descriptors), (Some(me), 3));
    assert!(!holders[0].memory_known);
    assert_eq!(snapshot.processes[0].pid, Some(me));
    let used = &snapshot.devices[0].space(MemorySpace::Dram).unwrap().used_bytes;
    assert!(used.absence().unwrap().1.contains(&me.to_string()), "{used:?}");
}
