//! The Tenstorrent source against small trees made by hand: what the driver may show, and what a
//! broken or hostile tree may.

// A step that fails is the report of the test that needed it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_collector::clock::SystemClock;
use telltale_collector::tenstorrent::{ChipReading, HardwareReading, Sensors, TenstorrentSource};
use telltale_collector::tree::Tree;
use telltale_collector::{CollectOptions, Collector};
use telltale_harness::Scratch;
use telltale_schema::clock::ManualClock;
use telltale_schema::health::FaultKind;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::TrafficDirection;

const N300: &str = "0100014611903000\n";

/// A tree with chips in it.
struct Machine {
    scratch: Scratch,
}

impl Machine {
    fn new() -> Self {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.join("sys/class/tenstorrent")).unwrap();
        let machine = Self { scratch };
        machine.write("sys/module/tenstorrent/version", "2.9.0\n");
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.scratch.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.scratch.join(path)).unwrap();
    }

    /// Replaces a file by what the driver's error stands for.
    fn fail(&self, path: &str, error: &str) {
        self.remove(path);
        symlink(format!("errno:{error}"), self.scratch.join(path)).unwrap();
    }

    /// Replaces a file by one that hangs its reader.
    fn hang(&self, path: &str) -> PathBuf {
        self.remove(path);
        let path = self.scratch.join(path);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        path
    }

    fn chip(&self, ordinal: u32, pci: &str, serial: &str) -> String {
        let function = format!("sys/devices/pci0000:00/{pci}");
        let class = format!("sys/class/tenstorrent/tenstorrent!{ordinal}");
        for (file, text) in [
            ("tt_serial", serial.to_owned()),
            ("tt_asic_id", format!("{:016X}\n", 0x2_5173_2090 + u64::from(ordinal))),
            ("tt_card_type", "n300\n".to_owned()),
            ("tt_aiclk", "1000\n".to_owned()),
            ("tt_heartbeat", "4294967295\n".to_owned()),
            ("tt_fw_bundle_ver", "19.1.0.0\n".to_owned()),
            ("pcie_perf_counters/mst_rd_data_word_received0", "10\n".to_owned()),
            ("pcie_perf_counters/mst_rd_data_word_received1", "20\n".to_owned()),
            ("pcie_perf_counters/slv_rd_data_word_sent0", "30\n".to_owned()),
        ] {
            self.write(&format!("{class}/{file}"), &text);
        }
        for (file, text) in [
            ("vendor", "0x1e52\n"),
            ("device", "0x401e\n"),
            ("hwmon/hwmon3/temp1_input", "36500\n"),
            ("hwmon/hwmon3/temp1_label", "asic1_temp\n"),
            ("hwmon/hwmon3/power1_input", "20000000\n"),
            ("hwmon/hwmon3/in0_input", "710\n"),
        ] {
            self.write(&format!("{function}/{file}"), text);
        }
        symlink(
            format!("../../../devices/pci0000:00/{pci}"),
            self.scratch.join(format!("{class}/device")),
        )
        .unwrap();
        self.write(&format!("proc/driver/tenstorrent/{ordinal}/pids"), "17\n0\n17\n");
        class
    }

    fn source(&self) -> TenstorrentSource {
        self.source_of(Sensors::All)
    }

    fn source_of(&self, sensors: Sensors) -> TenstorrentSource {
        let tree = Arc::new(Tree::open(self.scratch.path()).unwrap());
        let (timeout, deadline) = (Duration::from_millis(150), Duration::from_secs(20));
        TenstorrentSource::new(tree, Arc::new(SystemClock), sensors, (timeout, deadline))
    }

    fn read_chips(&self) -> HardwareReading {
        self.source().read_chips()
    }
}

fn absence<T>(reading: &Reading<T>) -> Option<Absence> {
    reading.absence().map(|(reason, _)| reason)
}

fn subjects(reading: &HardwareReading) -> Vec<&str> {
    reading.status.errors.iter().map(|error| error.subject.as_str()).collect()
}

fn pids(chip: &ChipReading) -> Vec<(Option<u32>, u32)> {
    let holders = chip.holders.value().expect("the list was read");
    holders.iter().map(|holder| (holder.pid, holder.open_descriptors)).collect()
}

#[test]
fn a_chip_is_read_and_its_remote_chip_is_listed() {
    let machine = Machine::new();
    machine.chip(0, "0000:03:00.0", N300);
    let reading = machine.read_chips();
    assert_eq!(subjects(&reading), Vec::<&str>::new());
    let [chip, remote] = reading.chips.as_slice() else { panic!("{:?}", reading.chips) };
    assert_eq!(chip.identity.display_id(), "251732090");
    assert_eq!(chip.identity.pci.unwrap().to_string(), "0000:03:00.0");
    assert_eq!(chip.telemetry.temperature_celsius.value(), Some(&36.5));
    assert_eq!(chip.telemetry.power_watts.value(), Some(&20.0));
    assert_eq!(chip.telemetry.voltage_volts.value(), Some(&0.71));
    assert_eq!(chip.telemetry.aiclk_hertz.value(), Some(&1_000_000_000));
    assert_eq!(chip.telemetry.heartbeat_total.value(), Some(&0xFFFF_FFFF));
    assert_eq!(absence(&chip.telemetry.thermal_trips_total), Some(Absence::Unsupported));
    assert_eq!(chip.telemetry.firmware["tt_fw_bundle_ver"], "19.1.0.0");
    assert_eq!(pids(chip), [(Some(17), 2), (None, 1)]);
    assert_eq!(remote.identity.display_id(), "251732090R");
    assert_eq!(absence(&remote.telemetry.aiclk_hertz), Some(Absence::Unsupported));
    assert_eq!(remote.facts.value().unwrap().worker_cores, 64);
}

#[test]
fn only_the_sensors_that_are_asked_for_are_read() {
    let machine = Machine::new();
    let class = machine.chip(0, "0000:03:00.0", N300);
    machine.hang("sys/devices/pci0000:00/0000:03:00.0/hwmon/hwmon3/in0_input");
    machine.fail(&format!("{class}/tt_fw_bundle_ver"), "EIO");
    let mut source = machine.source_of(Sensors::Main);
    for _ in 0..2 {
        let reading = source.read_chips();
        assert_eq!(subjects(&reading), Vec::<&str>::new());
        let telemetry = &reading.chips[0].telemetry;
        assert_eq!(reading.chips[0].identity.display_id(), "251732090");
        assert_eq!(telemetry.temperature_celsius.value(), Some(&36.5));
        assert_eq!(telemetry.power_watts.value(), Some(&20.0));
        assert_eq!(telemetry.aiclk_hertz.value(), Some(&1_000_000_000));
        assert_eq!(pids(&reading.chips[0]), [(Some(17), 2), (None, 1)]);
        assert_eq!(telemetry.heartbeat_total.value(), Some(&0xFFFF_FFFF), "a fault shows there");
        assert_eq!(absence(&telemetry.voltage_volts), Some(Absence::NotAsked));
        assert!(telemetry.firmware.is_empty() && telemetry.pcie.is_empty());
    }
}

#[test]
fn traffic_is_kept_apart_by_network_and_followed_across_a_wrap() {
    let machine = Machine::new();
    let class = machine.chip(0, "0000:03:00.0", N300);
    let counter = format!("{class}/pcie_perf_counters/mst_rd_data_word_received1");
    machine.write(&counter, "4294967290\n");
    let mut source = machine.source();
    let first = source.read_chips();
    let pcie = &first.chips[0].telemetry.pcie;
    let listed: Vec<_> =
        pcie.iter().map(|one| (one.counter.as_str(), one.noc, one.direction)).collect();
    assert_eq!(
        listed,
        [
            ("mst_rd_data_word_received", 0, TrafficDirection::HostToDevice),
            ("mst_rd_data_word_received", 1, TrafficDirection::HostToDevice),
            ("slv_rd_data_word_sent", 0, TrafficDirection::DeviceToHost),
        ]
    );
    assert_eq!(absence(&pcie[1].bytes_total), Some(Absence::NotYet));
    assert_eq!(pcie[1].raw_flits.value(), Some(&4_294_967_290));
    machine.write(&counter, "4\n");
    let second = source.read_chips();
    assert_eq!(second.chips[0].telemetry.pcie[0].bytes_total.value(), Some(&0));
    assert_eq!(second.chips[0].telemetry.pcie[1].bytes_total.value(), Some(&320));
}

#[test]
fn errors_cost_the_file_they_happen_to() {
    let machine = Machine::new();
    let class = machine.chip(0, "0000:03:00.0", N300);
    machine.fail(&format!("{class}/tt_aiclk"), "ENODATA");
    machine.write(&format!("{class}/tt_heartbeat"), "minus one");
    machine.write("sys/devices/pci0000:00/0000:03:00.0/hwmon/hwmon3/in0_input", "3210000\n");
    machine.write(
        "sys/devices/pci0000:00/0000:03:00.0/hwmon/hwmon3/power1_input",
        "99999999999999999999\n",
    );
    machine.fail("proc/driver/tenstorrent/0/pids", "EIO");
    let reading = machine.read_chips();
    let chip = &reading.chips[0];
    assert_eq!(absence(&chip.telemetry.aiclk_hertz), Some(Absence::Resetting));
    assert_eq!(absence(&chip.telemetry.heartbeat_total), Some(Absence::Implausible));
    assert_eq!(absence(&chip.telemetry.voltage_volts), Some(Absence::Implausible));
    assert_eq!(absence(&chip.telemetry.power_watts), Some(Absence::Implausible));
    assert_eq!(absence(&chip.holders), Some(Absence::Failed));
    assert_eq!(chip.telemetry.temperature_celsius.value(), Some(&36.5));
    assert_eq!(reading.status.errors.len(), 3, "one for each reason: {:?}", reading.status.errors);
}

#[test]
fn a_channel_with_another_label_is_not_believed() {
    let machine = Machine::new();
    machine.chip(0, "0000:03:00.0", N300);
    machine.write("sys/devices/pci0000:00/0000:03:00.0/hwmon/hwmon3/temp1_label", "board_temp\n");
    let reading = machine.read_chips();
    let temperature = &reading.chips[0].telemetry.temperature_celsius;
    assert_eq!(temperature.absence(), Some((Absence::Implausible, "labelled board_temp")));
}

#[test]
fn a_hung_file_costs_itself_and_keeps_its_last_good_value() {
    let machine = Machine::new();
    let class = machine.chip(0, "0000:03:00.0", N300);
    machine.chip(1, "0000:04:00.0", N300);
    let mut source = machine.source();
    let before = source.read_chips();
    machine.hang(&format!("{class}/tt_aiclk"));
    let started = Instant::now();
    let reading = source.read_chips();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let clock = &reading.chips[0].telemetry.aiclk_hertz;
    assert_eq!(clock, &before.chips[0].telemetry.aiclk_hertz, "the old value with its old time");
    assert_eq!(reading.chips[0].telemetry.temperature_celsius.value(), Some(&36.5));
    assert_eq!(reading.chips[2].telemetry.aiclk_hertz.value(), Some(&1_000_000_000));
    assert_eq!(subjects(&reading), ["tenstorrent!0/tt_aiclk", "sysfs"]);
    let fresh = machine.read_chips();
    assert_eq!(absence(&fresh.chips[0].telemetry.aiclk_hertz), Some(Absence::TimedOut));
}

#[test]
fn a_chip_that_was_handed_to_a_virtual_machine_is_forgotten_and_one_that_is_lost_is_not() {
    let machine = Machine::new();
    let chips = [(0, "0000:03:00.0"), (1, "0000:04:00.0"), (2, "0000:05:00.0")];
    let classes = chips.map(|(ordinal, pci)| machine.chip(ordinal, pci, "0100018611800000\n"));
    let bind = |pci: &str, driver: Option<&str>| {
        let function = machine.scratch.join(format!("sys/bus/pci/devices/{pci}"));
        fs::create_dir_all(&function).unwrap();
        let _ = fs::remove_file(function.join("driver"));
        if let Some(driver) = driver {
            symlink(format!("../../drivers/{driver}"), function.join("driver")).unwrap();
        }
    };
    chips.iter().for_each(|(_, pci)| bind(pci, Some("tenstorrent")));
    let mut source = machine.source();
    let vanished = |reading: HardwareReading| -> Vec<_> {
        let lost = reading.chips.into_iter().filter(|chip| !chip.faults.is_empty());
        lost.map(|chip| chip.identity.pci.unwrap().to_string()).collect()
    };
    assert_eq!(vanished(source.read_chips()), [""; 0]);
    for class in &classes[1..] {
        fs::rename(machine.scratch.join(class), machine.scratch.join(class.replace('/', "_")))
            .unwrap();
    }
    // As between unbinding and binding, and as when a chip has fallen off the bus.
    chips[1..].iter().for_each(|(_, pci)| bind(pci, None));
    assert_eq!(vanished(source.read_chips()), ["0000:04:00.0", "0000:05:00.0"]);
    bind("0000:04:00.0", Some("vfio-pci"));
    assert_eq!(vanished(source.read_chips()), ["0000:05:00.0"]);
    bind("0000:04:00.0", None);
    assert_eq!(vanished(source.read_chips()), ["0000:05:00.0"], "it is not missed any more");
}

#[test]
fn heartbeats_that_cannot_be_read_hold_up_no_longer_than_a_stopped_one() {
    let machine = Machine::new();
    let class = machine.chip(0, "0000:03:00.0", N300);
    let options = CollectOptions {
        root: machine.scratch.path().to_owned(),
        timeout: Duration::from_millis(150),
        sensors: Sensors::All,
        ..CollectOptions::default()
    };
    let mut collector = Collector::new(options).unwrap();
    collector.collect();
    machine.hang(&format!("{class}/tt_heartbeat"));
    let started = Instant::now();
    collector.watch_heartbeats();
    let watched = started.elapsed();
    assert!(watched < Duration::from_millis(5500), "{watched:?}");
    assert_eq!(collector.collect().devices[0].faults, []);
}

#[test]
fn a_chip_that_resets_for_long_stays_who_it_was_until_its_files_say_otherwise() {
    let machine = Machine::new();
    let class = machine.chip(0, "0000:03:00.0", N300);
    let clock = Arc::new(ManualClock::default());
    let tree = Arc::new(Tree::open(machine.scratch.path()).unwrap());
    let limits = (Duration::from_millis(150), Duration::from_secs(20));
    let mut source =
        TenstorrentSource::new(tree, Arc::<ManualClock>::clone(&clock), Sensors::All, limits);
    let before = source.read_chips();
    assert_eq!(before.chips.len(), 2);
    for file in ["tt_serial", "tt_asic_id", "tt_card_type", "tt_aiclk"] {
        machine.fail(&format!("{class}/{file}"), "ENODATA");
    }
    // Longer than a file that seldom changes is believed.
    for _ in 0..3 {
        clock.advance_ns(60_000_000_000);
        let during = source.read_chips();
        assert_eq!(during.chips.len(), 2, "with its remote chip");
        for (one, other) in before.chips.iter().zip(&during.chips) {
            assert_eq!(one.identity, other.identity);
            assert_eq!(one.facts.value(), other.facts.value());
        }
        assert_eq!(absence(&during.chips[0].telemetry.aiclk_hertz), Some(Absence::Resetting));
        assert!(during.status.errors.iter().any(|error| error.reason == Absence::Resetting));
    }
    // A first-time reader learns why nothing is known.
    let fresh = machine.read_chips();
    assert_eq!(fresh.chips[0].identity.display_id(), "0000:03:00.0");
    assert_eq!(fresh.chips[0].facts.absence().unwrap().0, Absence::Resetting);
    // Another board at the same place: nothing of the old one is kept, its ASIC id neither.
    machine.remove(&format!("{class}/tt_serial"));
    machine.write(&format!("{class}/tt_serial"), "0100018611900000\n");
    let after = source.read_chips();
    assert_eq!(after.chips[0].identity.asic_id, None);
    assert_ne!(after.chips[0].identity.board_id, before.chips[0].identity.board_id);
}

#[test]
fn old_drivers_are_named_with_what_they_lack() {
    let machine = Machine::new();
    machine.chip(0, "0000:03:00.0", N300);
    machine.write("sys/module/tenstorrent/version", "2.6.0\n");
    let reading = machine.read_chips();
    assert_eq!(subjects(&reading), ["tt-kmd 2.6"]);
    machine.write("sys/module/tenstorrent/version", "2.4.1\n");
    machine.remove("proc/driver/tenstorrent/0/pids");
    let reading = machine.read_chips();
    assert_eq!(subjects(&reading), ["tt-kmd 2.4"]);
    assert_eq!(absence(&reading.chips[0].holders), Some(Absence::Unsupported));
}

#[test]
fn no_driver_is_one_sentence_that_says_what_to_do() {
    let scratch = Scratch::new();
    let tree = Arc::new(Tree::open(scratch.path()).unwrap());
    let second = Duration::from_secs(1);
    let reading =
        TenstorrentSource::new(tree, Arc::new(SystemClock), Sensors::All, (second, second))
            .read_chips();
    assert!(reading.chips.is_empty());
    assert_eq!(reading.status.errors.len(), 1);
    assert!(reading.status.errors[0].detail.contains("install tt-kmd"));
}

#[test]
fn chips_come_and_go_and_are_sorted_by_address() {
    let machine = Machine::new();
    machine.chip(0, "0000:44:00.0", "0100018611800000\n");
    machine.chip(1, "0000:03:00.0", "0100018611800001\n");
    for junk in ["tenstorrent!x", "tenstorrent!+1", "tenstorrent!007", "card0"] {
        fs::create_dir(machine.scratch.join(format!("sys/class/tenstorrent/{junk}"))).unwrap();
    }
    let mut source = machine.source();
    let ordinals = |reading: &HardwareReading| -> Vec<_> {
        reading.chips.iter().map(|chip| chip.identity.driver_ordinal).collect()
    };
    assert_eq!(ordinals(&source.read_chips()), [Some(1), Some(0)]);
    let class = machine.scratch.join("sys/class/tenstorrent/tenstorrent!1");
    fs::rename(&class, machine.scratch.join("gone")).unwrap();
    let gone = source.read_chips();
    assert_eq!(ordinals(&gone), [Some(1), Some(0)], "one that vanished keeps its row");
    assert_eq!(gone.chips[0].faults[0].kind, FaultKind::Vanished);
    fs::rename(machine.scratch.join("gone"), &class).unwrap();
    let back = source.read_chips();
    assert_eq!(ordinals(&back), [Some(1), Some(0)]);
    assert_eq!(back.chips[0].faults, []);
    assert_eq!(back.chips[0].telemetry.aiclk_hertz.value(), Some(&1_000_000_000));
}
