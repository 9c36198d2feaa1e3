//! The parts of a machine that are no accelerators: files as the kernel shows them, and files that no
//! driver should have written.

mod gids;
mod hostile;
mod sensor_chips;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_collector::hardware::{HostPart, HostPartKind, HostParts, PartsReading};
use telltale_schema::reading::{Absence, Reading};

use crate::hardware::tree::Machine;

const BOARD: &str = "sys/devices/platform/nct6775.656/hwmon/hwmon3";
const SUPPLY: &str = "sys/devices/pci0000:00/0000:00:14.0/i2c-7/7-0058/hwmon/hwmon4";
const NIC: &str = "sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0";
const PORT: &str = "sys/devices/pci0000:40/0000:40:02.1/0000:42:00.0/infiniband/mlx5_0/ports/1";
const CONTROLLER: &str = "sys/devices/system/edac/mc/mc0";

/// A chip of sensors in its class, with its device.
fn hwmon(machine: &Machine, path: &str, driver: &str) {
    machine.write(&format!("{path}/name"), driver);
    let (device, name) = path.split_once("/hwmon/").unwrap();
    machine.link(&format!("{path}/device"), &format!("../../../{}", last(device)));
    machine.link(&format!("sys/class/hwmon/{name}"), &format!("../../../{path}"));
}

/// An interface of this function in its class.
fn interface(machine: &Machine, function: &str, name: &str) {
    let path = format!("{function}/net/{name}");
    for (file, text) in [
        ("flags", "0x1003\n"),
        ("carrier", "1\n"),
        ("carrier_up_count", "2\n"),
        ("carrier_down_count", "1\n"),
        ("speed", "200000\n"),
    ] {
        machine.write(&format!("{path}/{file}"), text);
    }
    machine.link(&format!("{path}/device"), &format!("../../../{}", last(function)));
    machine.link(&format!("sys/class/net/{name}"), &format!("../../../{path}"));
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// One part of each kind, and a voltage and a fan more.
fn furnish(machine: &Machine) {
    hwmon(machine, BOARD, "nct6798\n");
    for (file, text) in [
        ("fan1_input", "6200\n"),
        ("fan1_min", "1500\n"),
        ("fan1_alarm", "0\n"),
        ("fan2_input", "0\n"),
        ("fan2_label", "Other Fan\n"),
        ("fan2_min_alarm", "0\n"),
        ("fan2_fault", "1\n"),
        ("in0_input", "12096\n"),
        ("in0_min_alarm", "0\n"),
        ("in0_max_alarm", "0\n"),
        ("in1_input", "3300\n"),
    ] {
        machine.write(&format!("{BOARD}/{file}"), text);
    }
    hwmon(machine, SUPPLY, "pmbus\n");
    for (file, text) in [
        ("power1_label", "pout1\n"),
        ("power1_input", "310000000\n"),
        ("power2_label", "pin\n"),
        ("power2_input", "330000000\n"),
        ("power2_alarm", "0\n"),
        ("in1_lcrit_alarm", "0\n"),
    ] {
        machine.write(&format!("{SUPPLY}/{file}"), text);
    }
    interface(machine, NIC, "eth0");
    machine.write(&format!("{NIC}/../vendor"), "0x1022\n");
    for (file, text) in [
        ("current_link_speed", "16.0 GT/s PCIe\n"),
        ("current_link_width", "8\n"),
        ("max_link_speed", "16.0 GT/s PCIe\n"),
        ("max_link_width", "16\n"),
        ("aer_dev_correctable", "RxErr 3\nTOTAL_ERR_COR 3\n"),
        ("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 2\n"),
        ("aer_dev_fatal", "TOTAL_ERR_FATAL 1\n"),
    ] {
        machine.write(&format!("{NIC}/{file}"), text);
    }
    let (port, _) = NIC.rsplit_once('/').unwrap();
    machine.write(&format!("{port}/vendor"), "0x1022\n");
    for (file, text) in [
        ("link_layer", "Ethernet\n"),
        ("state", "4: ACTIVE\n"),
        ("phys_state", "5: LinkUp\n"),
        ("rate", "100 Gb/sec (4X EDR)\n"),
        ("counters/link_downed", "1\n"),
        ("counters/link_error_recovery", "2\n"),
        ("counters/symbol_error", "3\n"),
        ("counters/port_rcv_errors", "4\n"),
        ("gids/0", "fe80:0000:0000:0000:b8ce:f6ff:fe00:0001\n"),
        ("gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001\n"),
        ("gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n"),
    ] {
        machine.write(&format!("{PORT}/{file}"), text);
    }
    let (adapter, _) = PORT.split_once("/ports").unwrap();
    machine.link("sys/class/infiniband/mlx5_0", &format!("../../../{adapter}"));
    machine.write(&format!("{CONTROLLER}/ce_count"), "12\n");
    machine.write(&format!("{CONTROLLER}/ue_count"), "0\n");
}

fn furnished() -> Machine {
    let machine = Machine::new();
    furnish(&machine);
    machine
}

/// What reads a machine of which no file hangs, however much else this machine does.
fn parts_of(machine: &Machine) -> HostParts {
    let limits = (Duration::from_secs(20), Duration::from_secs(60));
    HostParts::new(machine.tree(), Arc::new(SystemClock), limits)
}

fn part<'a>(reading: &'a PartsReading, kind: HostPartKind, name: &str) -> &'a HostPart {
    let found = reading.parts.iter().find(|part| part.kind == kind && part.name == name);
    found.unwrap_or_else(|| panic!("no {} {name}: {:?}", kind.name(), names(reading)))
}

/// The names of the parts, with their kinds.
fn names(reading: &PartsReading) -> Vec<(HostPartKind, String)> {
    reading.parts.iter().map(|part| (part.kind, part.name.clone())).collect()
}

type Value = Result<f64, Absence>;

fn value(reading: &Reading<f64>) -> Value {
    reading.value().copied().ok_or_else(|| reading.absence().unwrap().0)
}

fn values(part: &HostPart) -> BTreeMap<&'static str, Value> {
    part.readings.iter().map(|(name, reading)| (*name, value(reading))).collect()
}

#[test]
fn each_part_has_what_the_kernel_says_of_it() {
    let reading = parts_of(&furnished()).read();
    assert_eq!(reading.status.errors, []);
    assert_eq!(reading.parts.len(), 7, "{:?}", names(&reading));
    let of = |kind, name: &str| values(part(&reading, kind, name));
    let missing = Err(Absence::Unsupported);
    let fan = "revolutions_per_minute";
    let least = "minimum_revolutions_per_minute";
    let used = ("is_used", Ok(1.0));
    let sound = [(fan, Ok(6200.0)), (least, Ok(1500.0)), used, ("alarm", Ok(0.0))];
    assert_eq!(of(HostPartKind::Fan, "nct6798/fan1"), sound.into());
    let unused = ("is_used", Ok(0.0));
    let faulty = [(fan, Ok(0.0)), (least, missing), unused, ("alarm", Ok(1.0))];
    assert_eq!(of(HostPartKind::Fan, "nct6798/fan2"), faulty.into());
    let (least, most) = (("minimum_volts", missing), ("maximum_volts", missing));
    let voltage = [("alarm", Ok(0.0)), ("volts", Ok(12.096)), least, most];
    assert_eq!(of(HostPartKind::Voltage, "nct6798/in0"), voltage.into());
    let supply = [("alarm", Ok(0.0)), ("watts", Ok(330.0))];
    assert_eq!(of(HostPartKind::PowerSupply, "pmbus-7-0058"), supply.into());
    let nic = of(HostPartKind::NetworkInterface, "eth0");
    let expected = [
        ("is_there", 1.0),
        ("up", 1.0),
        ("is_enabled", 1.0),
        ("has_been_up", 1.0),
        ("carrier_downs_total", 1.0),
        ("speed_bits_per_second", 200e9),
        ("pcie_width", 8.0),
        ("pcie_width_max", 16.0),
        ("pcie_generation", 4.0),
        ("pcie_generation_max", 4.0),
        ("pcie_correctable_errors_total", 3.0),
        ("pcie_nonfatal_errors_total", 2.0),
        ("pcie_fatal_errors_total", 1.0),
    ];
    assert_eq!(nic, expected.map(|(name, value)| (name, Ok(value))).into());
    let port = of(HostPartKind::InfinibandPort, "mlx5_0/1");
    let expected = [
        ("up", 1.0),
        ("physical_state", 5.0),
        ("has_been_up", 1.0),
        ("rate_bits_per_second", 100e9),
        ("link_downs_total", 1.0),
        ("link_recoveries_total", 2.0),
        ("symbol_errors_total", 3.0),
        ("receive_errors_total", 4.0),
        ("gids", 2.0),
        ("routable_gids", 1.0),
        ("is_infiniband", 0.0),
    ];
    assert_eq!(port, expected.map(|(name, value)| (name, Ok(value))).into());
    let memory = [("corrected_errors_total", Ok(12.0)), ("uncorrected_errors_total", Ok(0.0))];
    assert_eq!(of(HostPartKind::MemoryController, "mc0"), memory.into());
}

#[test]
fn a_machine_without_parts_has_none_and_that_is_no_error() {
    let reading = parts_of(&Machine::new()).read();
    assert_eq!((reading.parts, reading.status.errors), (Vec::new(), Vec::new()));
    assert_eq!(reading.status.name, "parts");
}

#[test]
fn an_interface_that_is_not_enabled_is_down_and_has_no_speed() {
    let machine = furnished();
    let path = format!("{NIC}/net/eth0");
    machine.write(&format!("{path}/flags"), "0x1002\n");
    machine.fail(&format!("{path}/carrier"), "EINVAL");
    machine.write(&format!("{path}/carrier_up_count"), "0\n");
    let reading = parts_of(&machine).read();
    assert_eq!(reading.status.errors, []);
    let nic = values(part(&reading, HostPartKind::NetworkInterface, "eth0"));
    let first = ["up", "is_enabled", "has_been_up"].map(|name| nic[name]);
    assert_eq!(first, [Ok(0.0); 3]);
    assert_eq!(nic["speed_bits_per_second"], Err(Absence::Unknown));
    machine.write(&format!("{path}/carrier"), "1\n");
    machine.write(&format!("{path}/speed"), "-1\n");
    let reading = parts_of(&machine).read();
    let nic = values(part(&reading, HostPartKind::NetworkInterface, "eth0"));
    assert_eq!((nic["up"], nic["has_been_up"]), (Ok(1.0), Ok(1.0)), "what is up has been up");
    assert_eq!(nic["speed_bits_per_second"], Err(Absence::Unknown));
}

#[test]
fn what_is_virtual_or_an_accelerators_is_no_part() {
    let machine = Machine::new();
    machine.write("sys/devices/virtual/net/lo/carrier", "1\n");
    machine.link("sys/class/net/lo", "../../devices/virtual/net/lo");
    machine.write("sys/class/net/bonding_masters", "\n");
    let virtual_function = "sys/devices/pci0000:40/0000:40:01.1/0000:41:00.2";
    interface(&machine, virtual_function, "eth7");
    machine.link(&format!("{virtual_function}/physfn"), "../0000:41:00.0");
    machine.write(&format!("{NIC}/vendor"), "0x15b3\n");
    interface(&machine, NIC, "eth0_3");
    machine.write(&format!("{NIC}/net/eth0_3/phys_port_name"), "pf0vf3\n");
    for (bus, vendor, class) in [("03", "0x1e52\n", "0x120000\n"), ("04", "0x1002\n", "0x038000\n")]
    {
        let function = format!("sys/devices/pci0000:00/0000:00:01.1/0000:{bus}:00.0");
        machine.write(&format!("{function}/vendor"), vendor);
        machine.write(&format!("{function}/class"), class);
        let path = format!("{function}/hwmon/hwmon{bus}");
        hwmon(&machine, &path, "blackhole\n");
        machine.write(&format!("{path}/fan1_input"), "2000\n");
        machine.write(&format!("{path}/power1_cap_alarm"), "1\n");
    }
    for (name, kind) in [("BAT0", "Battery\n"), ("usb", "USB\n"), ("AC", "Mains\n")] {
        machine.write(&format!("sys/class/power_supply/{name}/type"), kind);
        machine.write(&format!("sys/class/power_supply/{name}/online"), "1\n");
    }
    let reading = parts_of(&machine).read();
    assert_eq!(reading.status.errors, []);
    assert_eq!(names(&reading), [(HostPartKind::PowerSupply, String::from("AC"))]);
    assert_eq!(values(&reading.parts[0]), [("online", Ok(1.0))].into());
}

/// A chip of this device, with a fan.
fn chip(machine: &Machine, device: &str, number: usize) {
    let path = format!("sys/devices/platform/{device}/hwmon/hwmon{number}");
    hwmon(machine, &path, "nct6798\n");
    machine.write(&format!("{path}/fan1_input"), "900\n");
}

#[test]
fn two_chips_of_one_driver_are_known_by_where_they_are_and_keep_their_names() {
    let fans = |parts: &mut HostParts| -> Vec<String> {
        parts.read().parts.into_iter().map(|part| part.name).collect()
    };
    let machine = Machine::new();
    chip(&machine, "nct6775.656", 3);
    let mut first = parts_of(&machine);
    assert_eq!(fans(&mut first), ["nct6798/fan1"]);
    chip(&machine, "nct6775.2592", 4);
    let expected = ["nct6798-nct6775.2592/fan1", "nct6798-nct6775.656/fan1"];
    assert_eq!(fans(&mut parts_of(&machine)), expected);
    assert_eq!(
        fans(&mut first),
        ["nct6798-nct6775.2592/fan1", "nct6798/fan1"],
        "it is the same fan"
    );
    machine.remove("sys/class/hwmon/hwmon3");
    assert_eq!(fans(&mut first), ["nct6798-nct6775.2592/fan1"]);
}

#[test]
fn channels_of_one_label_are_told_apart_and_keep_their_names() {
    let machine = Machine::new();
    hwmon(&machine, BOARD, "dell_smm\n");
    for fan in 1..=3 {
        machine.write(&format!("{BOARD}/fan{fan}_input"), "900\n");
    }
    let mut parts = parts_of(&machine);
    let before = names(&parts.read());
    for fan in 1..=3 {
        machine.write(&format!("{BOARD}/fan{fan}_label"), "Other Fan\n");
    }
    assert_eq!(names(&parts.read()), before);
    machine.remove(&format!("{BOARD}/fan2_input"));
    assert_eq!(names(&parts.read()), [before[0].clone(), before[2].clone()]);
}
