//! Each fault of an emulated machine becomes what its rule says within two seconds, and nothing else
//! does; what ends it ends it.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{ChipLoad, Fault, Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;
use telltale_schema::clock::{Clock, ManualClock, Timestamp};
use telltale_schema::health::{FaultKind, HealthState};
use telltale_schema::snapshot::Snapshot;

const SECOND: u64 = 1_000_000_000;
/// After so many collections, one a second, a fault is found: the seconds that its rule must hold and
/// two more.
const SOON: u64 = 2;

/// What is injected, what is found and of which part (none for the first chip), and whether it is over
/// as soon as the fault is.
pub(crate) const INJECTED: [(&str, FaultKind, Option<&str>, bool); 17] = [
    ("stop:0", FaultKind::HeartbeatStopped, None, true),
    ("vanish:0", FaultKind::Vanished, None, true),
    ("trip:0", FaultKind::ThermalTrip, None, false),
    ("link:0:32:4", FaultKind::PcieWidthBelowSlot, None, true),
    ("link:0:2.5:16", FaultKind::PcieSpeedBelowSlot, None, true),
    ("raise:0:aer_dev_fatal:1", FaultKind::PcieErrorsFatal, None, false),
    ("raise:0:aer_dev_nonfatal:2", FaultKind::PcieErrorsNonfatal, None, false),
    ("raise:0:aer_dev_correctable:150", FaultKind::PcieErrorsCorrectedRising, None, false),
    ("fan:nct6798/fan2:stopped", FaultKind::FanFailed, Some("nct6798/fan2"), true),
    ("power-supply:pmbus-7-0058:failed", FaultKind::PowerSupplyFailed, Some("pmbus-7-0058"), true),
    ("voltage:nct6798/in1:alarm", FaultKind::VoltageOutOfRange, Some("nct6798/in1"), true),
    ("nic:eth0:down", FaultKind::NetworkLinkDown, Some("eth0"), true),
    ("nic:eth1:slow", FaultKind::NetworkSpeedLow, Some("eth1"), true),
    ("nic:eth1:narrow", FaultKind::NetworkPcieWidthBelowSlot, Some("eth1"), true),
    ("nic:eth0:gone", FaultKind::NetworkCardGone, Some("eth0"), true),
    ("port:mlx5_0/1:down", FaultKind::InfinibandPortDown, Some("mlx5_0/1"), true),
    ("port:mlx5_1/1:no-gid", FaultKind::RdmaGidMissing, Some("mlx5_1/1"), true),
];

/// An emulated machine that is collected once a second.
struct Bench {
    machine: Machine,
    collector: Collector,
    clock: Arc<ManualClock>,
    _scratch: Scratch,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self::with(&[]);
        for _ in 0..3 {
            assert_eq!(bench.wrong(), [], "it is well");
        }
        bench
    }

    /// One that has these faults before it is collected for the first time.
    fn with(faults: &[&str]) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("machine");
        let mut machine =
            Machine::create(&root, MachineKind::P150, &MachineOptions::default()).unwrap();
        faults.iter().for_each(|fault| machine.inject(fault.parse().unwrap()).unwrap());
        let clock = Arc::new(ManualClock::starting_at(Timestamp(1_700_000_000 * SECOND)));
        let options =
            CollectOptions { root, timeout: Duration::from_secs(5), ..CollectOptions::default() };
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let collector = Collector::with_clock(options, shared).unwrap();
        Self { machine, collector, clock, _scratch: scratch }
    }

    fn next(&mut self) -> Snapshot {
        self.clock.advance_ns(SECOND);
        self.machine.tick(self.clock.monotonic_ns(), &[ChipLoad::default()]).unwrap();
        self.collector.collect()
    }

    fn wrong(&mut self) -> Vec<(FaultKind, String)> {
        let snapshot = self.next();
        let wrong = snapshot.wrong().map(|(_, fault)| (fault.kind, fault.part.clone()));
        wrong.collect()
    }
}

#[test]
fn each_injected_fault_is_found_in_time_and_is_over_in_time() {
    for (text, kind, part, ends) in INJECTED {
        let mut bench = Bench::new();
        let fault: Fault = text.parse().unwrap();
        bench.machine.inject(fault.clone()).unwrap();
        let within = kind.rule().thresholds.hold_seconds + SOON;
        let expected = (kind, part.unwrap_or_default().to_owned());
        let found = (0..within).map(|_| bench.wrong()).find(|wrong| !wrong.is_empty());
        let found = found.unwrap_or_else(|| panic!("{text} is not found in {within} s"));
        assert!(found.contains(&expected), "{text}: {found:?}");
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        let snapshot = bench.next();
        let (name, fault_found) = snapshot.wrong().next().unwrap();
        let place = part.map_or(snapshot.devices[0].id.as_str(), |part| part);
        assert_eq!(name, place);
        let has_evidence = !fault_found.evidence.is_empty() || kind == FaultKind::Vanished;
        assert!(has_evidence && fault_found.detail.contains(';'), "{text}: {fault_found:?}");
        let state = match part {
            Some(_) => snapshot.host_health().state,
            None => snapshot.devices[0].health().state,
        };
        assert_eq!(state, kind.state(), "{text}");
        bench.machine.clear(&fault).unwrap();
        if ends {
            let over = (0..SOON + 1).any(|_| bench.wrong().is_empty());
            assert!(over, "{text} is over: {:?}", bench.wrong());
        } else {
            let quiet = kind.rule().thresholds.quiet_seconds;
            assert_eq!(bench.wrong(), std::slice::from_ref(&expected), "{text}");
            bench.clock.advance_ns(quiet * SECOND);
            assert_eq!(bench.wrong(), [], "{text}");
        }
    }
}

#[test]
fn a_fan_that_stands_still_from_the_start_is_found_and_an_empty_header_is_not() {
    let fan = (FaultKind::FanFailed, "nct6798/fan2".to_owned());
    assert_eq!(Bench::with(&["fan:nct6798/fan2:stopped"]).wrong(), [fan]);
}

#[test]
fn what_counters_of_the_machine_show_is_found() {
    let mut bench = Bench::new();
    let mut raise = |text: &str| {
        bench.machine.inject(text.parse().unwrap()).unwrap();
        bench.wrong()
    };
    let port = (FaultKind::InfinibandRecoveriesRising, "mlx5_0/1".to_owned());
    assert_eq!(raise("port:mlx5_0/1:recovered:2"), []);
    assert_eq!(raise("port:mlx5_0/1:recovered:1"), std::slice::from_ref(&port));
    let memory = (FaultKind::HostMemoryUncorrected, "mc0".to_owned());
    assert_eq!(raise("memory:mc0:uncorrected:1"), [port, memory]);
}

#[test]
fn resets_returns_and_steps_of_the_clock_are_no_faults() {
    let mut bench = Bench::new();
    let reset: Fault = "reset:0".parse().unwrap();
    bench.machine.inject(reset.clone()).unwrap();
    for _ in 0..30 {
        let snapshot = bench.next();
        assert_eq!(snapshot.wrong().count(), 0);
        assert_eq!(snapshot.devices[0].health().state, HealthState::Unknown);
    }
    bench.machine.clear(&reset).unwrap();
    let snapshot = bench.next();
    assert_eq!(snapshot.devices[0].health().state, HealthState::Ok);
    bench.clock.set_wall(Timestamp(SECOND));
    assert_eq!(bench.wrong(), []);
    bench.clock.set_wall(Timestamp(2_000_000_000 * SECOND));
    assert_eq!(bench.wrong(), []);
}
