//! PCIe links and traffic of emulated chips.

use std::sync::Arc;

use telltale_collector::{CollectOptions, Collector, EndpointUse, Round};
use telltale_emulator::{ChipLoad, Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;
use telltale_schema::clock::ManualClock;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, LinkState, Snapshot};

const SECOND_NS: u64 = 1_000_000_000;

/// An emulated machine, its collector, and the clock of both.
struct Bench {
    machine: Machine,
    collector: Collector,
    clock: Arc<ManualClock>,
    now_ns: u64,
    _scratch: Scratch,
}

impl Bench {
    fn new(kind: MachineKind, options: &MachineOptions) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("machine");
        let machine = Machine::create(&root, kind, options).unwrap();
        let clock = Arc::new(ManualClock::default());
        let options = CollectOptions { root, ..CollectOptions::default() };
        let collector = Collector::with_clock(options, Arc::clone(&clock) as _).unwrap();
        Self { machine, collector, clock, now_ns: 0, _scratch: scratch }
    }

    /// Lets time pass in which the first chip moves so many bytes, and collects.
    fn after(&mut self, elapsed_ns: u64, [received, sent]: [u64; 2]) -> Snapshot {
        self.now_ns += elapsed_ns;
        self.clock.advance_ns(elapsed_ns);
        let load = ChipLoad {
            host_to_device_bytes: received,
            device_to_host_bytes: sent,
            ..ChipLoad::default()
        };
        self.machine.tick(self.now_ns, &[load]).unwrap();
        self.collector.collect()
    }
}

fn found(reading: &Reading<u64>) -> Result<u64, Absence> {
    reading.value().copied().ok_or_else(|| reading.absence().unwrap().0)
}

/// Received and sent bytes a second.
fn rates(device: &Device) -> [Result<u64, Absence>; 2] {
    let link = device.telemetry.link.as_ref().unwrap();
    [&link.pcie_received_bytes_per_second, &link.pcie_sent_bytes_per_second].map(found)
}

#[test]
fn every_chip_on_the_bus_has_a_link_and_no_other_has_one() {
    for (kind, words) in [
        (MachineKind::T3000, "4.0 x16"),
        (MachineKind::GalaxyWormhole, "4.0 x8"),
        (MachineKind::P300, "5.0 x8"),
    ] {
        let snapshot = Bench::new(kind, &MachineOptions::default()).collector.collect();
        for device in &snapshot.devices {
            match &device.telemetry.link {
                Some(link) => {
                    assert_eq!(link.words().value().map(String::as_str), Some(words), "{kind}");
                    assert_eq!(link.state(&device.identity), Some(LinkState::Full));
                    let second_socket = device.identity.pci().unwrap().bus >= 0x80;
                    let is_large = kind != MachineKind::P300;
                    let node = u64::from(is_large && second_socket);
                    assert_eq!(found(&link.numa_node), Ok(node), "{kind}: {}", device.id);
                }
                None => assert!(device.identity.is_remote(), "{kind}: {}", device.id),
            }
        }
    }
}

#[test]
fn a_link_that_trained_badly_is_seen() {
    let mut bench = Bench::new(MachineKind::N300, &MachineOptions::default());
    bench.machine.inject("link:0:8:4".parse().unwrap()).unwrap();
    let snapshot = bench.collector.collect();
    let device = &snapshot.devices[0];
    let link = device.telemetry.link.as_ref().unwrap();
    assert_eq!(link.words().value().map(String::as_str), Some("3.0 x4 of 4.0 x16"));
    assert_eq!(link.state(&device.identity), Some(LinkState::Reduced));
}

#[test]
fn pcie_errors_of_a_chip_are_its_own_and_of_their_severity() {
    let mut bench = Bench::new(MachineKind::P300, &MachineOptions::default());
    let totals = |device: &Device| {
        let link = device.telemetry.link.as_ref().unwrap();
        [
            &link.pcie_correctable_errors_total,
            &link.pcie_nonfatal_errors_total,
            &link.pcie_fatal_errors_total,
        ]
        .map(found)
    };
    for (severity, fault) in
        ["raise:1:aer_dev_correctable:5", "raise:1:aer_dev_nonfatal", "raise:1:aer_dev_fatal:2"]
            .into_iter()
            .enumerate()
    {
        let before = totals(&bench.after(2 * SECOND_NS, [0, 0]).devices[1]);
        bench.machine.inject(fault.parse().unwrap()).unwrap();
        let snapshot = bench.after(2 * SECOND_NS, [0, 0]);
        let mut expected = before;
        expected[severity] = Ok([5, 1, 2][severity]);
        assert_eq!(totals(&snapshot.devices[1]), expected, "{fault}");
        assert_eq!(totals(&snapshot.devices[0]), [Ok(0); 3], "{fault}");
    }
}

#[test]
fn rates_are_known_from_the_second_collection_on_and_right_across_wraps() {
    let mut bench = Bench::new(MachineKind::N300, &MachineOptions::default());
    let first = bench.after(SECOND_NS, [640_000, 64_000]);
    assert_eq!(rates(&first.devices[0]), [Err(Absence::NotYet); 2]);
    let second = bench.after(SECOND_NS / 2, [640_000, 64_000]);
    assert_eq!(rates(&second.devices[0]), [Ok(1_280_000), Ok(128_000)]);
    // 20 GB/s wrap each counter within some seconds.
    for _ in 0..20 {
        let next = bench.after(SECOND_NS, [20_000_000_000, 32]);
        assert_eq!(rates(&next.devices[0]), [Ok(20_000_000_000), Ok(32)]);
    }
    // A round without sensors repeats what was read.
    let round = Round { sensors: false, endpoints: EndpointUse::WhereNeeded };
    bench.clock.advance_ns(SECOND_NS / 4);
    let repeated = bench.collector.collect_round(round);
    assert_eq!(rates(&repeated.devices[0]), [Ok(20_000_000_000), Ok(32)]);
    // After too long a time a counter may have wrapped more than once.
    let late = bench.after(5 * SECOND_NS, [640_000, 64_000]);
    assert_eq!(rates(&late.devices[0]), [Err(Absence::Unknown); 2]);
}

#[test]
fn a_reset_is_no_traffic() {
    let mut bench = Bench::new(MachineKind::N300, &MachineOptions::default());
    bench.after(SECOND_NS, [0, 0]);
    bench.machine.inject("reset:0".parse().unwrap()).unwrap();
    let resetting = bench.after(SECOND_NS, [0, 0]);
    assert_eq!(rates(&resetting.devices[0]), [Err(Absence::Resetting); 2]);
    bench.machine.clear_all().unwrap();
    let back = bench.after(SECOND_NS, [0, 0]);
    assert_eq!(rates(&back.devices[0]), [Err(Absence::NotYet); 2]);
    let after = bench.after(SECOND_NS, [320_000, 32_000]);
    assert_eq!(rates(&after.devices[0]), [Ok(320_000), Ok(32_000)]);
    let total: u64 =
        after.devices[0].telemetry.pcie.iter().map(|it| it.bytes_total.value().unwrap()).sum();
    assert_eq!(total, 352_000, "nothing is counted twice");
}

#[test]
fn a_driver_without_counters_has_no_rates() {
    let driver_version = "1.34.0".parse().unwrap();
    let options = MachineOptions { driver_version, ..MachineOptions::default() };
    let mut bench = Bench::new(MachineKind::N150, &options);
    for _ in 0..2 {
        let snapshot = bench.after(SECOND_NS, [640, 640]);
        assert_eq!(rates(&snapshot.devices[0]), [Err(Absence::Unsupported); 2]);
    }
}
