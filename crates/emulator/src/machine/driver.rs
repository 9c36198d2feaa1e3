//! Driver versions, and which files each version shows for each chip generation.
//!
//! Names, units, formats and first versions are those of tt-kmd (its sysfs attribute document,
//! `enumerate.c`, `telemetry.c`, and its release tags).

use std::fmt;
use std::str::FromStr;

use telltale_schema::chip::{Architecture, BoardId};

use super::aer::{AerCounts, AerSeverity};
use super::link::{Link, Near};
use super::model::Sensors;

/// A version of the kernel driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

/// A text that is no version such as `2.7.0`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a driver version such as 2.7.0: {0:?}")]
pub struct ParseDriverVersionError(pub String);

impl DriverVersion {
    /// The version `major.minor.patch`.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }
}

impl Default for DriverVersion {
    /// The newest version whose files are described here.
    fn default() -> Self {
        Self::new(2, 10, 0)
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for DriverVersion {
    type Err = ParseDriverVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('.').map(|part| part.parse::<u16>().ok());
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) => {
                Ok(Self::new(major, minor, patch))
            }
            _ => Err(ParseDriverVersionError(text.chars().take(64).collect())),
        }
    }
}

/// The first version that lists the processes which have a device open.
pub(crate) const PIDS: DriverVersion = DriverVersion::new(2, 5, 0);
/// The first version that numbers the chips of a Galaxy by tray.
pub(crate) const GALAXY_ORDINALS: DriverVersion = DriverVersion::new(2, 8, 0);
/// What [`super::Fault::OldDriver`] turns newer drivers into: the last one without `pids`.
pub(crate) const BEFORE_PIDS: DriverVersion = DriverVersion::new(2, 4, 1);

/// The directory in which a file of a chip is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileDirectory {
    /// `/sys/class/tenstorrent/tenstorrent!N`
    Class,
    /// `pcie_perf_counters` in it.
    PcieCounters,
    /// `/sys/class/hwmon/hwmonX`
    Hwmon,
    /// The PCI function's directory.
    Pci,
    /// That of the port above it, its slot's.
    Port,
    /// `/proc/driver/tenstorrent/N`
    Proc,
}

/// What a file's text is made from.
pub(crate) struct DriverView<'a> {
    pub(crate) ordinal: u32,
    pub(crate) architecture: Architecture,
    pub(crate) board_id: BoardId,
    pub(crate) asic_id: u64,
    pub(crate) sensors: &'a Sensors,
    /// What the chip and its slot can do.
    pub(crate) slot: Link,
    /// What their link trained to.
    pub(crate) link: Link,
    pub(crate) near: Near,
    pub(crate) aer: &'a AerCounts,
}

/// One file of a chip.
pub(crate) struct Attribute {
    pub(crate) place: FileDirectory,
    pub(crate) name: &'static str,
    /// The first driver that shows it for Wormhole; none if it never does.
    wormhole_since: Option<DriverVersion>,
    /// The first driver that shows it for Blackhole; none if it never does.
    blackhole_since: Option<DriverVersion>,
    /// It comes from the chip's firmware, so it cannot be read while the chip resets.
    pub(crate) from_firmware: bool,
    /// The content without the newline at its end.
    pub(crate) text: fn(&DriverView<'_>) -> String,
}

impl Attribute {
    /// Whether a driver of this version shows the file for this generation.
    pub(crate) fn exists(&self, architecture: Architecture, driver: DriverVersion) -> bool {
        let since = match architecture {
            Architecture::WormholeB0 => self.wormhole_since,
            Architecture::Blackhole => self.blackhole_since,
            Architecture::Grayskull => None,
        };
        since.is_some_and(|since| driver >= since)
    }
}

const ALWAYS: Option<DriverVersion> = Some(DriverVersion::new(0, 0, 0));
const NEVER: Option<DriverVersion> = None;

const fn since(major: u16, minor: u16) -> Option<DriverVersion> {
    Some(DriverVersion::new(major, minor, 0))
}

const fn constant(
    place: FileDirectory,
    name: &'static str,
    text: fn(&DriverView<'_>) -> String,
) -> Attribute {
    let (wormhole_since, blackhole_since) = (ALWAYS, ALWAYS);
    Attribute { place, name, wormhole_since, blackhole_since, from_firmware: false, text }
}

const fn firmware(
    place: FileDirectory,
    name: &'static str,
    wormhole_since: Option<DriverVersion>,
    blackhole_since: Option<DriverVersion>,
    text: fn(&DriverView<'_>) -> String,
) -> Attribute {
    Attribute { place, name, wormhole_since, blackhole_since, from_firmware: true, text }
}

fn is_blackhole(view: &DriverView<'_>) -> bool {
    view.architecture == Architecture::Blackhole
}

fn label(view: &DriverView<'_>, wormhole: &str, blackhole: &str) -> String {
    if is_blackhole(view) { blackhole } else { wormhole }.to_owned()
}

/// Every file of a chip, in the order in which they are written. `pids` is not among them: its
/// text comes from who has the device open, and it may be empty.
pub(crate) static ATTRIBUTES: &[Attribute] = &[
    constant(FileDirectory::Pci, "vendor", |_| "0x1e52".to_owned()),
    constant(FileDirectory::Pci, "device", |view| label(view, "0x401e", "0xb140")),
    constant(FileDirectory::Pci, "current_link_speed", |view| view.link.speed_text().into()),
    constant(FileDirectory::Pci, "current_link_width", |view| view.link.width_text().into()),
    constant(FileDirectory::Pci, "max_link_speed", |view| view.slot.speed_text().into()),
    constant(FileDirectory::Pci, "max_link_width", |view| view.slot.width_text().into()),
    constant(FileDirectory::Pci, "numa_node", |view| view.near.numa_node.to_string()),
    constant(FileDirectory::Pci, "local_cpulist", |view| view.near.cpus.to_owned()),
    constant(FileDirectory::Pci, "aer_dev_correctable", |view| {
        view.aer.text(AerSeverity::Correctable)
    }),
    constant(FileDirectory::Pci, "aer_dev_nonfatal", |view| view.aer.text(AerSeverity::Nonfatal)),
    constant(FileDirectory::Pci, "aer_dev_fatal", |view| view.aer.text(AerSeverity::Fatal)),
    // A root port of a processor of AMD's.
    constant(FileDirectory::Port, "vendor", |_| "0x1022".to_owned()),
    constant(FileDirectory::Port, "device", |_| "0x1483".to_owned()),
    constant(FileDirectory::Port, "class", |_| "0x060400".to_owned()),
    constant(FileDirectory::Port, "current_link_speed", |view| view.link.speed_text().into()),
    constant(FileDirectory::Port, "current_link_width", |view| view.link.width_text().into()),
    constant(FileDirectory::Port, "max_link_speed", |view| view.slot.speed_text().into()),
    constant(FileDirectory::Port, "max_link_width", |view| view.slot.width_text().into()),
    // The major number is whatever the kernel hands out; this is a common one.
    constant(FileDirectory::Class, "dev", |view| format!("235:{}", view.ordinal)),
    constant(FileDirectory::Class, "uevent", |view| {
        format!("MAJOR=235\nMINOR={0}\nDEVNAME=tenstorrent/{0}", view.ordinal)
    }),
    firmware(FileDirectory::Class, "tt_aiclk", since(1, 29), since(1, 34), |view| {
        view.sensors.aiclk_megahertz.to_string()
    }),
    firmware(FileDirectory::Class, "tt_axiclk", since(1, 29), since(1, 34), |view| {
        label(view, "900", "960")
    }),
    firmware(FileDirectory::Class, "tt_arcclk", since(1, 29), since(1, 34), |view| {
        label(view, "540", "800")
    }),
    firmware(FileDirectory::Class, "tt_serial", since(1, 29), since(1, 34), |view| {
        format!("{:016X}", view.board_id.0)
    }),
    firmware(FileDirectory::Class, "tt_card_type", since(1, 29), since(1, 34), |view| {
        card_type(view.board_id).to_owned()
    }),
    firmware(FileDirectory::Class, "tt_fw_bundle_ver", since(1, 29), since(1, 34), |_| {
        "19.9.0.0".into()
    }),
    firmware(FileDirectory::Class, "tt_m3app_fw_ver", since(1, 29), since(1, 34), |view| {
        label(view, "5.12.0.0", "0.24.0.0")
    }),
    firmware(FileDirectory::Class, "tt_m3bl_fw_ver", since(1, 29), NEVER, |_| {
        "129.2.0.0".to_owned()
    }),
    firmware(FileDirectory::Class, "tt_arc_fw_ver", since(1, 29), NEVER, |_| "2.39.0.0".to_owned()),
    firmware(FileDirectory::Class, "tt_eth_fw_ver", since(1, 29), NEVER, |_| "7.2.0".to_owned()),
    firmware(FileDirectory::Class, "tt_ttflash_ver", since(1, 29), NEVER, |_| "3.5.0.0".to_owned()),
    firmware(FileDirectory::Class, "tt_asic_id", since(2, 3), since(2, 1), |view| {
        format!("{:016X}", view.asic_id)
    }),
    firmware(FileDirectory::Class, "tt_heartbeat", since(2, 7), since(2, 7), |view| {
        view.sensors.heartbeat.to_string()
    }),
    firmware(FileDirectory::Class, "tt_therm_trip_count", NEVER, since(2, 7), |view| {
        view.sensors.thermal_trips.to_string()
    }),
    constant(FileDirectory::Hwmon, "name", |view| label(view, "wormhole", "blackhole")),
    constant(FileDirectory::Hwmon, "temp1_label", |view| label(view, "asic1_temp", "asic_temp")),
    firmware(FileDirectory::Hwmon, "temp1_input", ALWAYS, ALWAYS, |view| {
        view.sensors.temperature_millidegrees.to_string()
    }),
    firmware(FileDirectory::Hwmon, "temp1_max", ALWAYS, since(2, 9), |view| {
        view.sensors.limits.temperature_millidegrees.to_string()
    }),
    constant(FileDirectory::Hwmon, "in0_label", |view| label(view, "vcore1", "vcore")),
    firmware(FileDirectory::Hwmon, "in0_input", ALWAYS, ALWAYS, |view| {
        view.sensors.voltage_millivolts.to_string()
    }),
    firmware(FileDirectory::Hwmon, "in0_max", ALWAYS, since(2, 9), |view| {
        view.sensors.limits.voltage_millivolts.to_string()
    }),
    constant(FileDirectory::Hwmon, "curr1_label", |view| label(view, "current1", "current")),
    // The firmware reports whole amperes and watts.
    firmware(FileDirectory::Hwmon, "curr1_input", ALWAYS, ALWAYS, |view| {
        (view.sensors.current_amperes * 1_000).to_string()
    }),
    firmware(FileDirectory::Hwmon, "curr1_max", ALWAYS, since(2, 9), |view| {
        (view.sensors.limits.current_amperes * 1_000).to_string()
    }),
    constant(FileDirectory::Hwmon, "power1_label", |view| label(view, "power1", "power")),
    firmware(FileDirectory::Hwmon, "power1_input", ALWAYS, ALWAYS, |view| {
        (view.sensors.power_watts * 1_000_000).to_string()
    }),
    firmware(FileDirectory::Hwmon, "power1_max", ALWAYS, since(2, 9), |view| {
        (view.sensors.limits.power_watts * 1_000_000).to_string()
    }),
    Attribute {
        place: FileDirectory::Hwmon,
        name: "fan1_label",
        wormhole_since: NEVER,
        blackhole_since: since(2, 0),
        from_firmware: false,
        text: |_| "fan_rpm".to_owned(),
    },
    firmware(FileDirectory::Hwmon, "fan1_input", NEVER, since(2, 0), |view| {
        view.sensors.fan_revolutions_per_minute.to_string()
    }),
    counter("mst_rd_data_word_received0", |view| view.sensors.pcie_flits[0].to_string()),
    counter("mst_rd_data_word_received1", |view| view.sensors.pcie_flits[1].to_string()),
    counter("mst_nonposted_wr_data_word_sent0", |view| view.sensors.pcie_flits[2].to_string()),
    counter("mst_nonposted_wr_data_word_sent1", |view| view.sensors.pcie_flits[3].to_string()),
    counter("mst_posted_wr_data_word_sent0", |view| view.sensors.pcie_flits[4].to_string()),
    counter("mst_posted_wr_data_word_sent1", |view| view.sensors.pcie_flits[5].to_string()),
    counter("slv_nonposted_wr_data_word_received0", |view| view.sensors.pcie_flits[6].to_string()),
    counter("slv_nonposted_wr_data_word_received1", |view| view.sensors.pcie_flits[7].to_string()),
    counter("slv_posted_wr_data_word_received0", |view| view.sensors.pcie_flits[8].to_string()),
    counter("slv_posted_wr_data_word_received1", |view| view.sensors.pcie_flits[9].to_string()),
    counter("slv_rd_data_word_sent0", |view| view.sensors.pcie_flits[10].to_string()),
    counter("slv_rd_data_word_sent1", |view| view.sensors.pcie_flits[11].to_string()),
];

/// The counters came in May 2025, which is when 2.0 was made.
const fn counter(name: &'static str, text: fn(&DriverView<'_>) -> String) -> Attribute {
    firmware(FileDirectory::PcieCounters, name, since(2, 0), since(2, 0), text)
}

/// The name that the driver gives to a board's product number.
fn card_type(board: BoardId) -> &'static str {
    match board.product() {
        0x14 => "n300",
        0x18 => "n150",
        0x35 => "galaxy-wormhole",
        0x36 => "p100",
        0x40 => "p150a",
        0x41 => "p150b",
        0x42 => "p150c",
        0x43 => "p100a",
        0x44 => "p300b",
        0x45 => "p300a",
        0x46 => "p300c",
        0x47 => "galaxy-blackhole",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::DriverVersion;

    #[test]
    fn versions_survive_text_and_are_ordered_by_number() {
        let version: DriverVersion = "2.10.0".parse().unwrap();
        assert_eq!(version.to_string(), "2.10.0");
        assert!(version > "2.9.1".parse().unwrap());
        for bad in ["", "2", "2.7", "2.7.x", "2.7.0.1", "-1.0.0"] {
            assert!(bad.parse::<DriverVersion>().is_err(), "{bad}");
        }
    }
}
