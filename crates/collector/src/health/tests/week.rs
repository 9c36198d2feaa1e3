//! Healthy nodes for a while, in which everything happens that is no fault: no verdict.
//!
//! A few nodes for a day; 1,024 nodes for a week with
//! `TELLTALE_SIMULATED_HOURS=168 TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-collector --lib
//! week -- --nocapture`.

use std::collections::BTreeMap;

use telltale_schema::chip::ChipIdentity;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::health::FaultKind;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Device, DeviceErrors, Load, MemoryCounts, PcieLink, Snapshot, Telemetry,
};

use crate::hardware::{HostPart, HostPartKind};
use crate::health::Judge;
use crate::rate::SampledAt;
use crate::tenstorrent::ChipReading;
use crate::tenstorrent::faults::{DriverListing, Faults};

const SECOND: u64 = 1_000_000_000;
/// From one collection to the next, in seconds.
const STEP: u64 = 30;
/// A thing of each kind happens to a node once in so many seconds.
const ONCE_IN: u64 = 3 * 3600;

/// How long a link trains, in seconds.
const TRAINING: u64 = 12;
/// What is wrong with links meanwhile.
const DOWN: [FaultKind; 2] = [FaultKind::NetworkLinkDown, FaultKind::InfinibandPortDown];

/// Numbers that look random and are the same in each run (Vigna's splitmix64).
struct Random(u64);

/// What goes on with a node for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The chip is reset: nothing of it is read, then its counters start again.
    Reset,
    /// A virtual machine has the chip.
    PassedOn,
    /// A GPU is plugged in.
    PluggedIn,
    /// Load: software caps the clocks, for power or heat.
    Capped,
    /// For a moment the hardware holds the clocks down.
    Brake,
    /// A network interface is disabled, and the RoCE port that it is of is down with it.
    Disabled,
    /// Links come up late, as after a switch was started again: they are down, which is no alert yet.
    Training,
    /// A network interface is in a container.
    InContainer,
    /// Calls are late once, as on a machine that was suspended.
    Late,
}

const HAPPENINGS: [(Happening, u64); 9] = [
    (Happening::Reset, 60),
    (Happening::PassedOn, 1800),
    (Happening::PluggedIn, 3600),
    (Happening::Capped, 1200),
    (Happening::Brake, 1),
    (Happening::Disabled, 600),
    (Happening::Training, TRAINING),
    (Happening::InContainer, 900),
    (Happening::Late, 1),
];

struct Node {
    random: Random,
    now: SampledAt,
    judge: Judge,
    chips: Faults,
    heartbeat: u64,
    carrier_downs: f64,
    corrected: u64,
    xids: u64,
    /// Until when, on the monotonic clock in seconds.
    going_on: BTreeMap<Happening, u64>,
}

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, once_in: u64) -> bool {
        self.next().is_multiple_of(once_in.div_ceil(STEP).max(1))
    }
}

impl Node {
    fn new(number: u64) -> Self {
        let at = Timestamp(1_700_000_000 * SECOND);
        Self {
            random: Random(number),
            now: SampledAt { at, monotonic_ns: 1000 * SECOND },
            judge: Judge::default(),
            chips: Faults::default(),
            heartbeat: 1_000_000,
            carrier_downs: 1.0,
            corrected: 3,
            xids: 0,
            going_on: BTreeMap::new(),
        }
    }

    fn is(&self, happening: Happening) -> bool {
        self.going_on.contains_key(&happening)
    }

    /// Lets time pass, in which some things begin and others end.
    fn step(&mut self) {
        let mut passed = STEP;
        if self.random.happens(ONCE_IN) {
            // Suspended: the wall's clock goes on, the other one does not, or both do.
            let away = self.random.next() % 7200;
            self.now.at = Timestamp(self.now.at.0 + away * SECOND);
            passed += if away.is_multiple_of(2) { away } else { 0 };
        }
        if self.random.happens(ONCE_IN) {
            let step = (self.random.next() % 86_400) * SECOND;
            let back = self.random.next().is_multiple_of(2);
            self.now.at = Timestamp(if back { self.now.at.0 - step } else { self.now.at.0 + step });
        }
        self.now.monotonic_ns += passed * SECOND;
        self.now.at = Timestamp(self.now.at.0 + passed * SECOND);
        self.heartbeat += 5 * passed;
        let second = self.now.monotonic_ns / SECOND;
        if self.going_on.get(&Happening::Reset).is_some_and(|until| *until <= second) {
            (self.heartbeat, self.corrected) = (10, 0);
        }
        // What is so in two collections in a row is so in between, as far as is known: a call that is late
        // twice is of a driver that hangs, and one that is late once leaves a link down that was.
        let mut before = self.going_on.clone();
        if before.contains_key(&Happening::Training) {
            before.insert(Happening::Late, second);
        }
        self.going_on.retain(|_, until| *until > second);
        for (happening, seconds) in HAPPENINGS {
            let may_be = seconds >= STEP || !before.contains_key(&happening);
            if self.random.happens(ONCE_IN) && may_be {
                self.going_on.insert(happening, second + seconds);
            }
        }
        self.corrected += u64::from(self.random.happens(ONCE_IN));
        self.xids += u64::from(self.random.happens(ONCE_IN));
    }

    fn reading<T>(&self, value: T) -> Reading<T> {
        match self.is(Happening::Late) {
            true => Reading::absent(Absence::TimedOut, ""),
            false => Reading::new(value, self.now.at),
        }
    }

    /// What is wrong, by the judge.
    fn wrong(&mut self, broken_fan: bool) -> Vec<FaultKind> {
        let mut chips = Vec::new();
        let is_passed_on = self.is(Happening::PassedOn);
        if !is_passed_on {
            chips.push(self.chip());
        }
        let numbers: Vec<u32> = (0..chips.len()).map(|_| 0).collect();
        let has_other_driver = |_| is_passed_on;
        let listing = DriverListing {
            ordinals: Some(&numbers),
            no_driver: false,
            has_other_driver: &has_other_driver,
        };
        self.chips.annotate(&mut chips, listing, (self.now.monotonic_ns, self.now.at));
        let mut devices: Vec<Device> = chips.into_iter().map(device).collect();
        devices.push(self.gpu("0000:41:00.0"));
        if self.is(Happening::PluggedIn) {
            devices.push(self.gpu("0000:c1:00.0"));
        }
        let mut snapshot = Snapshot { devices, ..Snapshot::empty(self.now.at) };
        let parts = self.parts(broken_fan);
        self.judge.examine(&mut snapshot, &parts, (&[], self.now.at), self.now);
        snapshot.wrong().map(|(_, fault)| fault.kind).collect()
    }

    fn chip(&self) -> ChipReading {
        let mut telemetry = Telemetry::absent(Absence::Resetting, "");
        if !self.is(Happening::Reset) {
            telemetry.heartbeat_total = self.reading(self.heartbeat);
            telemetry.temperature_celsius = self.reading(60.0);
            telemetry.thermal_trips_total = self.reading(2);
        }
        let pci = Some("0000:03:00.0".parse().unwrap());
        ChipReading {
            identity: ChipIdentity { driver_ordinal: Some(0), pci, ..ChipIdentity::default() },
            facts: Reading::absent(Absence::Unknown, ""),
            telemetry,
            holders: Reading::new(Vec::new(), self.now.at),
            faults: Vec::new(),
        }
    }

    fn gpu(&self, place: &str) -> Device {
        let identity = OtherIdentity::new(place, "nvidia", DeviceClass::Gpu);
        let mut device = Device::unread(place, identity);
        let is_busy = self.is(Happening::Capped);
        let telemetry = &mut device.telemetry;
        telemetry.temperature_celsius = self.reading(if is_busy { 86.0 } else { 31.0 });
        let mut load = Load::absent(Absence::Unsupported, "");
        let mut reasons = Vec::new();
        if is_busy {
            reasons.extend(["sw_power_cap", "sw_thermal_slowdown"]);
        }
        if self.is(Happening::Brake) {
            reasons.extend(["hw_slowdown", "hw_power_brake_slowdown"]);
        }
        load.throttled_by = self.reading(reasons.into_iter().map(str::to_owned).collect());
        telemetry.load = Some(Box::new(load));
        let mut counts = MemoryCounts::absent(Absence::Unsupported, "");
        counts.corrected_errors_total = self.reading(self.corrected);
        counts.uncorrected_errors_total = self.reading(0);
        telemetry.memory_counts = Some(Box::new(counts));
        let mut errors = DeviceErrors::absent(Absence::Unsupported, "");
        errors.xid_errors_total = self.reading(self.xids);
        errors.xid_last = self.reading([13, 31, 43, 45][(self.xids % 4) as usize]);
        errors.xid_hardware_errors_total = self.reading(0);
        telemetry.errors = Some(Box::new(errors));
        let mut link = PcieLink::absent(Absence::Unsupported, "");
        link.pcie_generation = self.reading(if is_busy { 5 } else { 1 });
        link.pcie_generation_max = self.reading(5);
        (link.pcie_width, link.pcie_width_max) = (self.reading(16), self.reading(16));
        telemetry.link = Some(Box::new(link));
        device
    }

    fn parts(&self, broken_fan: bool) -> Vec<HostPart> {
        let part = |kind, name: &str, readings: &[(&'static str, f64)]| HostPart {
            kind,
            name: name.to_owned(),
            readings: readings.iter().map(|(name, it)| (*name, self.reading(*it))).collect(),
        };
        let alarm = f64::from(u8::from(broken_fan));
        let is_enabled = f64::from(u8::from(!self.is(Happening::Disabled)));
        let is_trained = f64::from(u8::from(!self.is(Happening::Training)));
        let is_up = is_enabled * is_trained;
        let port = |is_up: f64, is_infiniband: f64| {
            [("up", is_up), ("has_been_up", 1.0), ("is_infiniband", is_infiniband)]
        };
        let interface = [
            ("is_there", 1.0),
            ("up", is_up),
            ("is_enabled", is_enabled),
            ("has_been_up", 1.0),
            ("carrier_downs_total", self.carrier_downs),
        ];
        let mut parts = vec![
            part(HostPartKind::Fan, "fan1", &[("alarm", alarm), ("is_used", 1.0)]),
            // A header without a fan, a voltage without limits, and a port without a cable.
            part(HostPartKind::Fan, "fan2", &[("alarm", 1.0), ("is_used", 0.0)]),
            part(HostPartKind::Voltage, "in3", &[("alarm", 0.0), ("volts", 1.02)]),
            part(
                HostPartKind::NetworkInterface,
                "eth1",
                &[("is_there", 1.0), ("up", 0.0), ("is_enabled", 1.0), ("has_been_up", 0.0)],
            ),
            part(HostPartKind::InfinibandPort, "mlx5_0/1", &port(is_up, 0.0)),
            part(HostPartKind::InfinibandPort, "mlx5_1/1", &port(is_trained, 1.0)),
        ];
        if !self.is(Happening::InContainer) {
            parts.push(part(HostPartKind::NetworkInterface, "eth0", &interface));
        }
        parts
    }
}

fn device(reading: ChipReading) -> Device {
    let mut device = Device::unread(reading.identity.display_id(), reading.identity);
    (device.telemetry, device.faults) = (reading.telemetry, reading.faults);
    device
}

#[test]
fn healthy_nodes_have_no_verdict_whatever_happens_to_them() {
    let is_long = std::env::var_os("TELLTALE_LONG_TESTS").is_some();
    let hours = std::env::var("TELLTALE_SIMULATED_HOURS");
    let hours: u64 = hours.map_or(24, |text| text.parse().unwrap());
    let nodes = if is_long { 1024 } else { 32 };
    let mut happened = BTreeMap::<Happening, u64>::new();
    for number in 0..nodes {
        let mut node = Node::new(number);
        for step in 0..hours * 3600 / STEP {
            let mut wrong = node.wrong(false);
            if node.is(Happening::Training) {
                let is_due = |kind: &FaultKind| kind.rule().alert_after_seconds <= TRAINING;
                wrong.retain(|kind| !DOWN.contains(kind) || is_due(kind));
            }
            assert_eq!(wrong, [], "node {number}, step {step}: {:?}", node.going_on);
            node.going_on.keys().for_each(|it| *happened.entry(*it).or_default() += 1);
            node.step();
        }
        // It is awake all the same.
        node.going_on.clear();
        assert_eq!(node.wrong(true), [FaultKind::FanFailed]);
    }
    println!(
        "{nodes} nodes for {hours} hours: no verdict; steps in which each happened: {happened:?}"
    );
    assert_eq!(happened.len(), HAPPENINGS.len(), "{happened:?}");
}
