//! The parts of an emulated machine that are no accelerators, sound and failing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use telltale_collector::hardware::{HostPart, HostPartKind, HostParts};
use telltale_collector::tree::Tree;
use telltale_emulator::{Fault, Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;
use telltale_schema::clock::ManualClock;
use telltale_schema::reading::Reading;

/// Long enough for a machine that does much else.
const LIMITS: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(60));

/// An emulated machine and what reads its parts.
struct Bench {
    machine: Machine,
    parts: HostParts,
    _scratch: Scratch,
}

/// A reading by the kind and the name of its part and its own name.
type Readings = BTreeMap<(HostPartKind, String, &'static str), Reading<f64>>;

impl Bench {
    fn new(kind: MachineKind) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("machine");
        let machine = Machine::create(&root, kind, &MachineOptions::default()).unwrap();
        let tree = Arc::new(Tree::open(&root).unwrap());
        let parts = HostParts::new(tree, Arc::new(ManualClock::default()), LIMITS);
        Self { machine, parts, _scratch: scratch }
    }

    fn read(&mut self) -> Vec<HostPart> {
        let reading = self.parts.read();
        assert_eq!(reading.status.errors, []);
        reading.parts
    }

    fn readings(&mut self) -> Readings {
        let of_part = |part: HostPart| {
            let HostPart { kind, name, readings } = part;
            readings.into_iter().map(move |(reading, value)| ((kind, name.clone(), reading), value))
        };
        self.read().into_iter().flat_map(of_part).collect()
    }
}

/// The parts of which some readings differ, each with these readings.
fn differences(before: &Readings, after: &Readings) -> BTreeSet<(String, &'static str)> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differing = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differing.map(|(kind, name, reading)| (format!("{} {name}", kind.name()), *reading)).collect()
}

#[test]
fn every_part_of_a_server_is_read_and_every_reading_is_known() {
    for kind in [MachineKind::N150, MachineKind::GalaxyBlackhole] {
        let parts = Bench::new(kind).read();
        let names: Vec<_> =
            parts.iter().map(|part| format!("{} {}", part.kind.name(), part.name)).collect();
        assert_eq!(
            names,
            [
                "fan nct6798/fan1",
                "fan nct6798/fan2",
                "fan nct6798/fan3",
                "fan nct6798/fan4",
                "fan nct6798/fan5",
                "power_supply pmbus-7-0058",
                "power_supply pmbus-7-0059",
                "voltage nct6798/in0",
                "voltage nct6798/in1",
                "voltage nct6798/in2",
                "voltage nct6798/in3",
                "voltage nct6798/in4",
                "voltage nct6798/in5",
                "voltage nct6798/in6",
                "voltage nct6798/in7",
                "network_interface eth0",
                "network_interface eth1",
                "infiniband_port mlx5_0/1",
                "infiniband_port mlx5_1/1",
                "memory_controller mc0",
            ],
            "{kind}"
        );
        for part in parts {
            let absent = part.readings.iter().find(|(_, reading)| reading.value().is_none());
            assert_eq!(absent, None, "{}", part.name);
        }
    }
}

#[test]
fn the_values_are_those_of_the_files() {
    let readings = Bench::new(MachineKind::P300).readings();
    let value = |kind, name: &str, reading| {
        *readings[&(kind, String::from(name), reading)].value().unwrap()
    };
    let (nic, port) = (HostPartKind::NetworkInterface, HostPartKind::InfinibandPort);
    for (kind, name, reading, expected) in [
        (HostPartKind::Fan, "nct6798/fan1", "minimum_revolutions_per_minute", 1500.0),
        (HostPartKind::Voltage, "nct6798/in0", "volts", 12.096),
        (HostPartKind::Voltage, "nct6798/in0", "minimum_volts", 10.8),
        (HostPartKind::Voltage, "nct6798/in0", "maximum_volts", 13.2),
        (nic, "eth0", "speed_bits_per_second", 200e9),
        (nic, "eth0", "pcie_width", 16.0),
        (nic, "eth0", "pcie_generation_max", 4.0),
        (nic, "eth0", "has_been_up", 1.0),
        (port, "mlx5_1/1", "rate_bits_per_second", 200e9),
        (port, "mlx5_1/1", "physical_state", 5.0),
        (port, "mlx5_1/1", "gids", 2.0),
        (port, "mlx5_1/1", "is_infiniband", 1.0),
    ] {
        let found = value(kind, name, reading);
        assert!((found - expected).abs() < 1e-9, "{name} {reading}: {found}");
    }
    assert!(value(HostPartKind::Fan, "nct6798/fan4", "revolutions_per_minute") > 5000.0);
    assert!(value(HostPartKind::PowerSupply, "pmbus-7-0059", "watts") > 100.0);
}

/// Each failure, its part, and the readings in which it shows.
const FAILURES: [(&str, &str, &[&str]); 11] = [
    ("fan:nct6798/fan2:stopped", "fan nct6798/fan2", &["alarm", "revolutions_per_minute"]),
    ("fan:nct6798/fan3:slow", "fan nct6798/fan3", &["alarm", "revolutions_per_minute"]),
    ("power-supply:pmbus-7-0059:failed", "power_supply pmbus-7-0059", &["alarm", "watts"]),
    ("voltage:nct6798/in1:alarm", "voltage nct6798/in1", &["alarm", "volts"]),
    (
        "nic:eth1:down",
        "network_interface eth1",
        &["carrier_downs_total", "speed_bits_per_second", "up"],
    ),
    ("nic:eth0:slow", "network_interface eth0", &["speed_bits_per_second"]),
    ("nic:eth0:narrow", "network_interface eth0", &["pcie_width"]),
    (
        "port:mlx5_0/1:down",
        "infiniband_port mlx5_0/1",
        &["link_downs_total", "physical_state", "rate_bits_per_second", "up"],
    ),
    ("port:mlx5_1/1:no-gid", "infiniband_port mlx5_1/1", &["gids", "routable_gids"]),
    ("port:mlx5_1/1:recovered:7", "infiniband_port mlx5_1/1", &["link_recoveries_total"]),
    ("memory:mc0:uncorrected", "memory_controller mc0", &["uncorrected_errors_total"]),
];

#[test]
fn what_a_board_does_not_use_raises_no_alarm_and_is_not_used() {
    let mut bench = Bench::new(MachineKind::N150);
    let root = bench.machine.root().join("sys/class/hwmon/hwmon2");
    let text = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    assert_eq!([text("in3_alarm"), text("fan5_alarm")], ["1\n", "1\n"], "the chip raises them");
    let readings = bench.readings();
    let that = |is_so: fn(&str, f64) -> bool| -> Vec<&str> {
        let found = readings.iter().filter(|((.., name), it)| is_so(name, *it.value().unwrap()));
        found.map(|((_, part, _), _)| part.as_str()).collect()
    };
    assert_eq!(that(|name, value| name == "alarm" && value > 0.0), Vec::<&str>::new());
    assert_eq!(that(|name, value| name == "is_used" && value <= 0.0), ["nct6798/fan5"]);
}

#[test]
fn each_failure_shows_in_its_readings_and_in_no_other() {
    let mut bench = Bench::new(MachineKind::N300);
    for (fault, part, readings) in FAILURES {
        let before = bench.readings();
        let fault: Fault = fault.parse().unwrap();
        bench.machine.inject(fault.clone()).unwrap();
        let expected = readings.iter().map(|reading| (part.to_owned(), *reading)).collect();
        assert_eq!(differences(&before, &bench.readings()), expected, "{fault}");
        bench.machine.clear(&fault).unwrap();
        for (part, reading) in differences(&before, &bench.readings()) {
            assert!(reading.ends_with("_total"), "{fault} is over: {part} {reading}");
        }
    }
}

#[test]
fn an_interface_that_is_gone_is_known_to_be_until_it_is_back() {
    let mut bench = Bench::new(MachineKind::N150);
    let before = bench.readings();
    let fault = "nic:eth0:gone".parse().unwrap();
    bench.machine.inject(fault).unwrap();
    let parts: BTreeSet<_> =
        differences(&before, &bench.readings()).into_iter().map(|(part, _)| part).collect();
    assert_eq!(parts, BTreeSet::from([String::from("network_interface eth0")]));
    let gone: Vec<_> = bench.read().into_iter().filter(|part| part.name == "eth0").collect();
    let readings: Vec<_> = gone[0].readings.keys().copied().collect();
    assert_eq!((gone.len(), readings), (1, vec!["is_there"]), "nothing else is known of it");
    bench.machine.clear_all().unwrap();
    assert_eq!(differences(&before, &bench.readings()), BTreeSet::new());
}

#[test]
fn what_is_wrong_with_a_chip_shows_in_no_part() {
    let mut bench = Bench::new(MachineKind::P300);
    let before = bench.readings();
    for fault in ["stop:0", "trip:0", "raise:1:aer_dev_fatal:5", "link:0:8:4", "vanish:1"] {
        bench.machine.inject(fault.parse().unwrap()).unwrap();
        assert_eq!(differences(&before, &bench.readings()), BTreeSet::new(), "{fault}");
    }
}

#[test]
fn counters_of_parts_only_rise_while_the_machine_runs() {
    let mut bench = Bench::new(MachineKind::N150);
    let mut before = bench.readings();
    let faults = ["nic:eth0:down", "port:mlx5_0/1:down", "memory:mc0:uncorrected:3"];
    for second in 0..12u64 {
        let fault = faults[usize::try_from(second).unwrap() % faults.len()].parse().unwrap();
        bench.machine.inject(fault).unwrap();
        bench.machine.tick(second * 1_000_000_000, &[]).unwrap();
        if second % 4 == 3 {
            bench.machine.clear_all().unwrap();
        }
        let after = bench.readings();
        let counters = after.iter().filter(|((_, _, reading), _)| reading.ends_with("_total"));
        for (key, reading) in counters {
            assert!(reading.value() >= before[key].value(), "{key:?}");
        }
        before = after;
    }
}
