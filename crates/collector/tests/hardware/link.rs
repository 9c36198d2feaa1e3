//! PCIe links of cards as the kernel shows them, sound and not.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector};
use telltale_schema::clock::ManualClock;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::PcieLink;

use crate::hardware::tree::Machine;

const ROOT_PORT: &str = "sys/devices/pci0000:00/0000:00:01.1";
const FILES: [&str; 4] =
    ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];
/// PCIe 4.0 x16, as it is and at most.
const SOUND: [&str; 4] = ["16.0 GT/s PCIe\n", "16\n", "16.0 GT/s PCIe\n", "16\n"];

/// A PCI function of this vendor, with its link.
fn function(machine: &Machine, path: &str, vendor: &str, link: [&str; 4]) {
    machine.write(&format!("{path}/vendor"), vendor);
    for (file, text) in FILES.into_iter().zip(link) {
        machine.write(&format!("{path}/{file}"), text);
    }
}

/// A graphics card whose function is there.
fn card(machine: &Machine, path: &str, link: [&str; 4]) {
    function(machine, path, "0x1002\n", link);
    machine.write(&format!("{path}/drm/renderD128/.keep"), "");
    machine.link("sys/class/drm/card0/device", &format!("../../../../{path}"));
    let name = path.rsplit('/').next().unwrap();
    machine.link(&format!("sys/bus/pci/devices/{name}"), &format!("../../../../{path}"));
}

fn collector(machine: &Machine) -> (Collector, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let options = CollectOptions {
        root: machine.path().to_owned(),
        timeout: Duration::from_millis(150),
        ..CollectOptions::default()
    };
    (Collector::with_clock(options, Arc::clone(&clock) as _).unwrap(), clock)
}

fn link_of(collector: &mut Collector) -> PcieLink {
    *collector.collect().devices.remove(0).telemetry.link.unwrap()
}

type Found = Result<u64, Absence>;

/// Generation, width, and the most of both.
fn values(link: &PcieLink) -> [Found; 4] {
    let value = |reading: &Reading<u64>| {
        reading.value().copied().ok_or_else(|| reading.absence().unwrap().0)
    };
    [&link.pcie_generation, &link.pcie_width, &link.pcie_generation_max, &link.pcie_width_max]
        .map(value)
}

#[test]
fn a_link_is_compared_with_what_card_and_slot_can_both_do() {
    let slow_slot = ["8.0 GT/s PCIe\n", "8\n", "8.0 GT/s PCIe\n", "8\n"];
    let narrow = ["8.0 GT/s PCIe\n", "4\n", "16.0 GT/s PCIe\n", "16\n"];
    for (slot, card_link, expected) in [
        (SOUND, SOUND, [4, 16, 4, 16]),
        (slow_slot, narrow, [3, 4, 3, 8]),
        (SOUND, narrow, [3, 4, 4, 16]),
    ] {
        let machine = Machine::new();
        function(&machine, ROOT_PORT, "0x1022\n", slot);
        card(&machine, &format!("{ROOT_PORT}/0000:03:00.0"), card_link);
        assert_eq!(values(&link_of(&mut collector(&machine).0)), expected.map(Ok));
    }
}

#[test]
fn what_the_slot_of_a_virtual_machine_can_do_is_not_known() {
    // What a T4 of a cloud has there, and an L40S: half of their lanes go to another one's card.
    let half = ["8.0 GT/s PCIe\n", "8\n", "8.0 GT/s PCIe\n", "16\n"];
    let expected = [Ok(3), Ok(8), Err(Absence::Unknown), Err(Absence::Unknown)];
    let below_none = Machine::new();
    card(&below_none, "sys/devices/pci0000:00/0000:00:1e.0", half);
    let below_qemu = Machine::new();
    function(&below_qemu, ROOT_PORT, "0x1b36\n", SOUND);
    card(&below_qemu, &format!("{ROOT_PORT}/0000:03:00.0"), half);
    for machine in [below_none, below_qemu] {
        let mut collector = collector(&machine).0;
        assert_eq!(values(&link_of(&mut collector)), expected);
    }
}

#[test]
fn a_switch_inside_a_card_is_looked_through() {
    let machine = Machine::new();
    function(&machine, ROOT_PORT, "0x1022\n", SOUND);
    let upstream = format!("{ROOT_PORT}/0000:01:00.0");
    let narrow = ["16.0 GT/s PCIe\n", "8\n", "16.0 GT/s PCIe\n", "16\n"];
    function(&machine, &upstream, "0x1002\n", narrow);
    let downstream = format!("{upstream}/0000:02:00.0");
    function(&machine, &downstream, "0x1002\n", SOUND);
    card(&machine, &format!("{downstream}/0000:03:00.0"), SOUND);
    assert_eq!(values(&link_of(&mut collector(&machine).0)), [4, 8, 4, 16].map(Ok));
    // A root port of the card's maker is no part of the card.
    function(
        &machine,
        ROOT_PORT,
        "0x1002\n",
        ["32.0 GT/s PCIe\n", "1\n", "2.5 GT/s PCIe\n", "16\n"],
    );
    assert_eq!(values(&link_of(&mut collector(&machine).0)), [4, 8, 1, 16].map(Ok));
}

#[test]
fn what_is_no_speed_or_width_is_absent_with_its_reason() {
    let long = "1".repeat(5000);
    for (file, text, reason) in [
        ("current_link_speed", "Unknown speed\n", Absence::Unknown),
        ("current_link_speed", "1e9 GT/s\n", Absence::Implausible),
        ("current_link_speed", "", Absence::Implausible),
        ("current_link_width", "0\n", Absence::Unknown),
        ("current_link_width", "255\n", Absence::Unknown),
        ("current_link_width", "99999999999999999999\n", Absence::Implausible),
        ("max_link_width", &long, Absence::Implausible),
        ("max_link_speed", "\u{1b}[31m GT/s\n", Absence::Implausible),
    ] {
        let machine = Machine::new();
        function(&machine, ROOT_PORT, "0x1022\n", SOUND);
        let path = format!("{ROOT_PORT}/0000:03:00.0");
        card(&machine, &path, SOUND);
        machine.write(&format!("{path}/{file}"), text);
        let found = values(&link_of(&mut collector(&machine).0));
        let place = FILES.iter().position(|name| *name == file).unwrap();
        let mut expected: [Found; 4] = [4, 16, 4, 16].map(Ok);
        expected[place] = Err(reason);
        assert_eq!(found, expected, "{file} {text:.20}");
    }
}

#[test]
fn a_link_that_cannot_be_read_says_why_and_a_sleeping_device_is_left_alone() {
    let machine = Machine::new();
    function(&machine, ROOT_PORT, "0x1022\n", SOUND);
    let path = format!("{ROOT_PORT}/0000:03:00.0");
    card(&machine, &path, SOUND);
    machine.fail(&format!("{path}/current_link_width"), "EACCES");
    machine.remove(&format!("{path}/max_link_speed"));
    let (mut collector, clock) = collector(&machine);
    let first = [Ok(4), Err(Absence::Permission), Err(Absence::Unsupported), Ok(16)];
    assert_eq!(values(&link_of(&mut collector)), first);
    machine.write(&format!("{path}/current_link_width"), "8\n");
    assert_eq!(values(&link_of(&mut collector)), first, "what was read holds for a while");
    clock.advance_ns(11_000_000_000);
    assert_eq!(values(&link_of(&mut collector))[1], Ok(8));
    machine.write(&format!("{path}/power/runtime_status"), "suspended\n");
    clock.advance_ns(11_000_000_000);
    assert_eq!(values(&link_of(&mut collector)), [Err(Absence::NotAsked); 4]);
    machine.remove(&format!("{path}/power/runtime_status"));
    let hang = machine.hang(&format!("{path}/current_link_speed"));
    assert_eq!(values(&link_of(&mut collector)), [Err(Absence::TimedOut); 4]);
    drop(hang);
}

/// Correctable, nonfatal and fatal errors.
fn errors(link: &PcieLink) -> [Found; 3] {
    let found = |reading: &Reading<u64>| {
        reading.value().copied().ok_or_else(|| reading.absence().unwrap().0)
    };
    [
        &link.pcie_correctable_errors_total,
        &link.pcie_nonfatal_errors_total,
        &link.pcie_fatal_errors_total,
    ]
    .map(found)
}

#[test]
fn errors_of_a_function_are_seen_within_a_second_and_absent_where_the_kernel_counts_none() {
    let machine = Machine::new();
    function(&machine, ROOT_PORT, "0x1022\n", SOUND);
    let path = format!("{ROOT_PORT}/0000:03:00.0");
    card(&machine, &path, SOUND);
    let (mut collector, clock) = collector(&machine);
    assert_eq!(errors(&link_of(&mut collector)), [Err(Absence::Unsupported); 3]);
    machine.write(&format!("{path}/aer_dev_correctable"), "RxErr 2\nTOTAL_ERR_COR 2\n");
    machine.write(&format!("{path}/aer_dev_nonfatal"), [0xff; 4000]);
    machine.write(&format!("{path}/aer_dev_fatal"), "TOTAL_ERR_NONFATAL 2\n".repeat(300));
    let read = [Ok(2), Err(Absence::Implausible), Err(Absence::Implausible)];
    clock.advance_ns(1_000_000_000);
    assert_eq!(errors(&link_of(&mut collector)), read);
    machine.write(&format!("{path}/current_link_width"), "4\n");
    machine.write(&format!("{path}/max_link_width"), "8\n");
    clock.advance_ns(1_000_000_000);
    let link = link_of(&mut collector);
    assert_eq!(values(&link), [4, 4, 4, 16].map(Ok), "what it can do holds for longer");
    clock.advance_ns(10_000_000_000);
    assert_eq!(values(&link_of(&mut collector)), [4, 4, 4, 8].map(Ok));
}
