//! What is read of each chip, as data: file, scale, plausible range, and where the value goes.
//!
//! Names and units: tt-kmd's page `sysfs-attributes.md` and its hwmon labels. A value outside its
//! range is shown as implausible, because drivers before 60cc0b8 gave kilovolts and kilowatts
//! after a firmware update (tt-kmd #213) and a thousandfold power (tt-kmd #5).

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::SENSORS;
use telltale_schema::snapshot::{Telemetry, TrafficDirection};

/// Which sensors of a chip are read, firmware versions and traffic counters included. Each costs a
/// question to the driver; those that are left out are absent as [`Absence::NotAsked`].
///
/// [`Absence::NotAsked`]: telltale_schema::reading::Absence::NotAsked
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sensors {
    /// Those that tables show, with their limits, and the heartbeat.
    Main,
    /// Everything that the driver offers.
    #[default]
    All,
}

/// Where a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileLocation {
    /// `/sys/class/tenstorrent/tenstorrent!N/`.
    Class,
    /// The PCI function's directory.
    Pci,
    /// The hwmon directory of the PCI function.
    Hwmon,
    /// `/proc/driver/tenstorrent/N/`.
    Proc,
}

/// How often a file is read by a collector that keeps running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadInterval {
    /// Each time.
    Always,
    /// Now and then: it does not change while the chip is the same.
    Seldom,
}

/// One file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) place: FileLocation,
    pub(super) file: &'static str,
    pub(super) pace: ReadInterval,
}

/// A measured value: the file's integer divided by `divisor` is in the unit of the range. (A product
/// with 0.001 would not be the number closest to the decimal fraction.)
pub(super) struct Measure {
    pub(super) item: Item,
    pub(super) divisor: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) put: fn(&mut Telemetry, Reading<f64>),
}

/// A counted value: the file's integer times `scale`.
pub(super) struct Count {
    pub(super) item: Item,
    pub(super) scale: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) put: fn(&mut Telemetry, Reading<u64>),
}

/// A PCIe traffic counter, of which there is one for each network (suffix 0 and 1).
pub(super) struct PcieCounter {
    pub(super) name: &'static str,
    pub(super) files: [&'static str; 2],
    pub(super) direction: TrafficDirection,
}

/// A label that says what a hwmon channel is: by chip generation, as the driver writes it.
pub(super) struct Label {
    pub(super) item: Item,
    pub(super) channel: &'static str,
    pub(super) accepted: [&'static str; 2],
}

const fn item(place: FileLocation, file: &'static str, pace: ReadInterval) -> Item {
    Item { place, file, pace }
}

const fn hwmon(
    file: &'static str,
    divisor: f64,
    least: f64,
    most: f64,
    put: fn(&mut Telemetry, Reading<f64>),
) -> Measure {
    Measure {
        item: item(FileLocation::Hwmon, file, ReadInterval::Always),
        divisor,
        least,
        most,
        put,
    }
}

const fn class(
    file: &'static str,
    scale: u64,
    least: u64,
    most: u64,
    put: fn(&mut Telemetry, Reading<u64>),
) -> Count {
    Count { item: item(FileLocation::Class, file, ReadInterval::Always), scale, least, most, put }
}

/// The files that say who a chip is.
pub(super) static IDENTITY: [Item; 4] = [
    item(FileLocation::Class, "tt_serial", ReadInterval::Seldom),
    item(FileLocation::Class, "tt_asic_id", ReadInterval::Seldom),
    item(FileLocation::Class, "tt_card_type", ReadInterval::Seldom),
    item(FileLocation::Pci, "vendor", ReadInterval::Seldom),
];

/// The counter by which the firmware shows that it runs.
pub(super) const HEARTBEAT: &str = "tt_heartbeat";

const MILLI: f64 = 1e3;
const MICRO: f64 = 1e6;
const MEGA: u64 = 1_000_000;
const GIGAHERTZ: u64 = 1_000 * MEGA;
const U32_MAX: u64 = 0xFFFF_FFFF;

/// Measured values.
pub(super) const MEASURES: &[Measure] = &[
    hwmon("temp1_input", MILLI, -40.0, 150.0, |to, value| to.temperature_celsius = value),
    hwmon("temp1_max", MILLI, 1.0, 150.0, |to, value| to.temperature_limit_celsius = value),
    hwmon("power1_input", MICRO, 0.0, 1500.0, |to, value| to.power_watts = value),
    hwmon("power1_max", MICRO, 1.0, 1500.0, |to, value| to.power_limit_watts = value),
    hwmon("curr1_input", MILLI, 0.0, 1500.0, |to, value| to.current_amperes = value),
    hwmon("curr1_max", MILLI, 1.0, 1500.0, |to, value| to.current_limit_amperes = value),
    hwmon("in0_input", MILLI, 0.2, 2.0, |to, value| to.voltage_volts = value),
    hwmon("in0_max", MILLI, 0.2, 2.0, |to, value| to.voltage_limit_volts = value),
];

/// Counted values.
pub(super) const COUNTS: &[Count] = &[
    class("tt_aiclk", MEGA, MEGA, 5 * GIGAHERTZ, |to, value| to.aiclk_hertz = value),
    class("tt_axiclk", MEGA, MEGA, 5 * GIGAHERTZ, |to, value| to.axiclk_hertz = value),
    class("tt_arcclk", MEGA, MEGA, 5 * GIGAHERTZ, |to, value| to.arcclk_hertz = value),
    class(HEARTBEAT, 1, 0, U32_MAX, |to, value| to.heartbeat_total = value),
    class("tt_therm_trip_count", 1, 0, U32_MAX, |to, value| to.thermal_trips_total = value),
    Count {
        item: item(FileLocation::Hwmon, "fan1_input", ReadInterval::Always),
        scale: 1,
        least: 0,
        most: 30_000,
        put: |to, value| to.fan_revolutions_per_minute = value,
    },
];

/// Firmware versions, shown as the driver prints them.
pub(super) static FIRMWARE: [Item; 6] = [
    item(FileLocation::Class, "tt_fw_bundle_ver", ReadInterval::Seldom),
    item(FileLocation::Class, "tt_m3app_fw_ver", ReadInterval::Seldom),
    item(FileLocation::Class, "tt_m3bl_fw_ver", ReadInterval::Seldom),
    item(FileLocation::Class, "tt_arc_fw_ver", ReadInterval::Seldom),
    item(FileLocation::Class, "tt_eth_fw_ver", ReadInterval::Seldom),
    item(FileLocation::Class, "tt_ttflash_ver", ReadInterval::Seldom),
];

macro_rules! counter {
    ($name:literal, $direction:ident) => {
        PcieCounter {
            name: $name,
            files: [
                concat!("pcie_perf_counters/", $name, "0"),
                concat!("pcie_perf_counters/", $name, "1"),
            ],
            direction: TrafficDirection::$direction,
        }
    };
}

/// PCIe traffic. The device is master when it moves the data itself: what it read came from the
/// host, what it wrote went there; as slave it is the other way round (tt-kmd's names; the
/// mapping was not checked on hardware).
pub(super) static COUNTERS: [PcieCounter; 6] = [
    counter!("mst_rd_data_word_received", HostToDevice),
    counter!("slv_posted_wr_data_word_received", HostToDevice),
    counter!("slv_nonposted_wr_data_word_received", HostToDevice),
    counter!("mst_posted_wr_data_word_sent", DeviceToHost),
    counter!("mst_nonposted_wr_data_word_sent", DeviceToHost),
    counter!("slv_rd_data_word_sent", DeviceToHost),
];

/// Labels of the hwmon channels, Wormhole's first, then Blackhole's.
pub(super) static LABELS: [Label; 4] = [
    Label {
        item: item(FileLocation::Hwmon, "temp1_label", ReadInterval::Seldom),
        channel: "temp1_",
        accepted: ["asic1_temp", "asic_temp"],
    },
    Label {
        item: item(FileLocation::Hwmon, "power1_label", ReadInterval::Seldom),
        channel: "power1_",
        accepted: ["power1", "power"],
    },
    Label {
        item: item(FileLocation::Hwmon, "curr1_label", ReadInterval::Seldom),
        channel: "curr1_",
        accepted: ["current1", "current"],
    },
    Label {
        item: item(FileLocation::Hwmon, "in0_label", ReadInterval::Seldom),
        channel: "in0_",
        accepted: ["vcore1", "vcore"],
    },
];

/// Where each table begins in [`items`].
pub(super) const MEASURES_AT: usize = IDENTITY.len();
pub(super) const COUNTS_AT: usize = MEASURES_AT + MEASURES.len();
pub(super) const FIRMWARE_AT: usize = COUNTS_AT + COUNTS.len();
pub(super) const LABELS_AT: usize = FIRMWARE_AT + FIRMWARE.len();
pub(super) const COUNTERS_AT: usize = LABELS_AT + LABELS.len();
pub(super) const PIDS_AT: usize = COUNTERS_AT + 2 * COUNTERS.len();

/// All files of one chip, table after table, the driver's list of openers last.
pub(super) fn items() -> Vec<Item> {
    let counters = COUNTERS.iter().flat_map(|counter| counter.files);
    let mut items: Vec<Item> = IDENTITY.to_vec();
    items.extend(MEASURES.iter().map(|measure| measure.item));
    items.extend(COUNTS.iter().map(|count| count.item));
    items.extend(FIRMWARE);
    items.extend(LABELS.iter().map(|label| label.item));
    items.extend(counters.map(|file| item(FileLocation::Class, file, ReadInterval::Always)));
    items.push(item(FileLocation::Proc, "pids", ReadInterval::Always));
    debug_assert_eq!(items.len(), PIDS_AT + 1);
    items
}

/// Whether the file with this place in [`items`] is read when `sensors` are asked for.
pub(super) fn is_wanted(index: usize, item: Item, sensors: Sensors) -> bool {
    let always = index < MEASURES_AT || index == PIDS_AT || item.file == HEARTBEAT;
    if always || sensors == Sensors::All {
        return true;
    }
    match LABELS.iter().find(|label| label.item.file == item.file) {
        Some(label) => MEASURES
            .iter()
            .zip(MEASURES_AT..)
            .any(|(one, index)| one.item.file.starts_with(label.channel) && is_main(index)),
        None => is_main(index),
    }
}

/// Whether the file with this place fills a main sensor.
fn is_main(index: usize) -> bool {
    let mut filled = Telemetry::absent(Absence::NotAsked, "");
    match index {
        MEASURES_AT..COUNTS_AT => {
            (MEASURES[index - MEASURES_AT].put)(&mut filled, Reading::new(1.0, Timestamp(0)));
        }
        COUNTS_AT..FIRMWARE_AT => {
            (COUNTS[index - COUNTS_AT].put)(&mut filled, Reading::new(1, Timestamp(0)));
        }
        _ => return false,
    }
    SENSORS.iter().any(|sensor| sensor.is_main() && sensor.value(&filled).is_some())
}
