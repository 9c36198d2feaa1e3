//! A device in a snapshot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::chip::{Architecture, ChipFacts, FactSource};
use crate::device::DeviceIdentity;
use crate::fault::{Fault, FaultKind, known_faults};
use crate::memory::{MemoryKind, MemorySpace};
use crate::reading::{Absence, Reading};
use crate::snapshot::{DeviceErrors, NvLinks, PcieLink, Power};

/// One chip or other device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// How the device is shown: `251732099`, `251732099R`, `T1:N0`; of another vendor's by its PCI
    /// address.
    pub id: String,
    /// Everything that distinguishes it from others.
    pub identity: DeviceIdentity,
    /// What is known of a Tenstorrent chip beforehand; absent for a board that is not in our table
    /// and no runtime described.
    pub facts: Reading<ChipFacts>,
    /// What its sensors say.
    pub telemetry: Telemetry,
    /// Use and capacity of each memory space.
    pub spaces: Vec<SpaceUsage>,
    /// The parts of each kind that has any; they add up (see [`KindMemory`]).
    pub kinds: Vec<KindMemory>,
    /// Who has the device open, as the driver lists them.
    pub holders: Reading<Vec<Holder>>,
    /// What is wrong with the device as a whole; empty when nothing is known to be.
    #[serde(default, deserialize_with = "known_faults", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// Whether it is not known what was wrong with it: a past moment of which the history has no faults.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub health_not_kept: bool,
}

impl Device {
    /// A device of which nothing but its identity is known.
    pub fn unread(id: impl Into<String>, identity: impl Into<DeviceIdentity>) -> Self {
        const REASON: Absence = Absence::Unknown;
        Self {
            id: id.into(),
            identity: identity.into(),
            facts: Reading::absent(REASON, ""),
            telemetry: Telemetry::absent(REASON, ""),
            spaces: Vec::new(),
            kinds: Vec::new(),
            holders: Reading::absent(REASON, ""),
            faults: Vec::new(),
            health_not_kept: false,
        }
    }

    /// The fault of this kind, if it has it.
    pub fn fault(&self, kind: FaultKind) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.kind == kind)
    }

    /// The names of its faults with a space between two; none where no fault is known. Events are
    /// left out.
    pub fn fault_names(&self) -> Option<String> {
        let wrong = self.faults.iter().filter(|fault| fault.is_wrong());
        let names: Vec<&str> = wrong.map(|fault| fault.kind.name()).collect();
        (!names.is_empty()).then(|| names.join(" "))
    }
}

/// A process that has a device open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Its pid in our PID namespace; none when it is not visible from here.
    pub pid: Option<u32>,
    /// How many descriptors of the device it has open (for invisible ones: all of theirs).
    pub open_descriptors: u32,
    /// Whether its memory is known, by ledger, endpoint or region.
    pub memory_known: bool,
}

/// Use and capacity of one memory space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SpaceUsage {
    /// The space.
    pub space: MemorySpace,
    /// Bytes in use: the total of its kinds. Absent when a process holds the device and no source
    /// says how much.
    pub used_bytes: Reading<u64>,
    /// Bytes there are.
    pub capacity_bytes: Reading<u64>,
    /// Where the capacity comes from.
    pub capacity_source: Option<FactSource>,
}

/// The parts of one kind of memory on one device, in bytes.
/// `processes + unattributed + ghost = total`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct KindMemory {
    /// The kind.
    pub kind: MemoryKind,
    /// All that is in use.
    pub total_bytes: u64,
    /// What living processes account for.
    pub processes_bytes: u64,
    /// What a foreign region has in its total and in no row.
    pub unattributed_bytes: u64,
    /// What rows of dead processes in foreign regions still hold.
    pub ghost_bytes: u64,
    /// Buffers of living processes; none when one of them does not say how many it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_buffers: Option<u64>,
}

/// What a chip's sensors say, in base units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Telemetry {
    // From sensors.toml: fields of telemetry.
    /// ASIC temperature.
    pub temperature_celsius: Reading<f64>,
    /// The temperature at which the device throttles.
    pub temperature_limit_celsius: Reading<f64>,
    /// Power of the ASIC core (not of the board); of another vendor's device, what its driver
    /// measures, which may be the board.
    pub power_watts: Reading<f64>,
    /// The limit of that power.
    pub power_limit_watts: Reading<f64>,
    /// Current of the ASIC core.
    pub current_amperes: Reading<f64>,
    /// The limit of that current.
    pub current_limit_amperes: Reading<f64>,
    /// Voltage of the ASIC core.
    pub voltage_volts: Reading<f64>,
    /// The limit of that voltage.
    pub voltage_limit_volts: Reading<f64>,
    /// Clock of the AI cores, or of whatever computes in another vendor's device.
    pub aiclk_hertz: Reading<u64>,
    /// Clock of the AXI bus.
    pub axiclk_hertz: Reading<u64>,
    /// Clock of the management cores.
    pub arcclk_hertz: Reading<u64>,
    /// Speed of the fan (Blackhole only).
    pub fan_revolutions_per_minute: Reading<u64>,
    /// Speed that the fan is set to, as a share of full speed; a driver may allow more than 1.
    #[serde(default = "Reading::<f64>::unreported")]
    pub fan_ratio: Reading<f64>,
    /// The firmware's heartbeat counter.
    pub heartbeat_total: Reading<u64>,
    /// Thermal trips since power on (Blackhole only).
    pub thermal_trips_total: Reading<u64>,
    // End of these.
    /// Firmware versions by the driver's attribute name, as text.
    pub firmware: BTreeMap<String, String>,
    /// PCIe traffic counters.
    pub pcie: Vec<PcieTraffic>,
    /// How busy it is; none for a device whose driver never reports, as Tenstorrent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Box<Load>>,
    /// What its driver counts of its memory; none for a device whose driver never does, as
    /// Tenstorrent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_counts: Option<Box<MemoryCounts>>,
    /// Its PCIe link; none for a device that has none of its own, or where no source has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Box<PcieLink>>,
    /// Its energy and limits of power; none for a device whose driver never reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Box<Power>>,
    /// Errors of it; none for a device whose driver never reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Box<DeviceErrors>>,
    /// Its NVLink links; none for a device without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvlink: Option<Box<NvLinks>>,
}

/// What a driver counts of a device's memory, beside how much of it is in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryCounts {
    /// Bytes by what they are for, in the driver's words; they add up to what is in use. Empty where
    /// the driver does not distinguish them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub category_bytes: BTreeMap<String, u64>,
    // From sensors.toml: fields of memory_counts.
    /// Errors that the memory corrected by itself, since the driver was loaded or the device reset.
    pub corrected_errors_total: Reading<u64>,
    /// Errors that it could not correct, since then.
    pub uncorrected_errors_total: Reading<u64>,
    /// Errors that the memory corrected by itself, over the device's whole life.
    #[serde(default = "Reading::<u64>::unreported")]
    pub corrected_errors_lifetime_total: Reading<u64>,
    /// Errors that it could not correct, over the device's whole life.
    #[serde(default = "Reading::<u64>::unreported")]
    pub uncorrected_errors_lifetime_total: Reading<u64>,
    /// Errors that its SRAM (caches, registers) could not correct, since the driver was loaded or
    /// the device reset.
    #[serde(default = "Reading::<u64>::unreported")]
    pub sram_uncorrected_errors_total: Reading<u64>,
    /// The same over the device's whole life.
    #[serde(default = "Reading::<u64>::unreported")]
    pub sram_uncorrected_lifetime_total: Reading<u64>,
    // End of these.
}

/// How busy a device is, as its driver reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Load {
    // From sensors.toml: fields of load.
    /// The share of the last time in which it was computing at all, 0 to 1. Of the machine itself:
    /// the share of its processors' time that was not idle.
    pub busy_ratio: Reading<f64>,
    /// The share of the last time in which its memory was being read or written, 0 to 1.
    pub memory_busy_ratio: Reading<f64>,
    /// Clock of its memory.
    pub memory_clock_hertz: Reading<u64>,
    /// The share of the last time in which its video encoders were busy, 0 to 1.
    #[serde(default = "Reading::<f64>::unreported")]
    pub encoder_busy_ratio: Reading<f64>,
    /// The share of the last time in which its video decoders were busy, 0 to 1.
    #[serde(default = "Reading::<f64>::unreported")]
    pub decoder_busy_ratio: Reading<f64>,
    /// The performance state that NVIDIA's driver has it in: 0 (P0) is the fastest, 15 the slowest.
    #[serde(default = "Reading::<u64>::unreported")]
    pub performance_state: Reading<u64>,
    // End of these.
    /// What holds its clocks down just now, in the driver's words; empty when nothing does.
    pub throttled_by: Reading<Vec<String>>,
}

/// Which way data moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrafficDirection {
    /// From the host to the device.
    HostToDevice,
    /// From the device to the host.
    DeviceToHost,
}

/// One PCIe traffic counter of one on-chip network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PcieTraffic {
    /// The driver's name without the network's digit.
    pub counter: String,
    /// The network-on-chip, 0 or 1.
    pub noc: u8,
    /// Which way this counter's data moved.
    pub direction: TrafficDirection,
    /// Bytes since the reader first saw the device, with the 32-bit wraps of the hardware
    /// counter undone; absent on the first snapshot.
    pub bytes_total: Reading<u64>,
    /// The hardware counter as it stands, in flits of 32 bytes; wraps at 2³².
    pub raw_flits: Reading<u32>,
}

impl Telemetry {
    /// A chip whose telemetry is absent altogether, for one reason.
    pub fn absent(reason: crate::reading::Absence, detail: &str) -> Self {
        Self {
            // From sensors.toml: absences of telemetry.
            temperature_celsius: Reading::absent(reason, detail),
            temperature_limit_celsius: Reading::absent(reason, detail),
            power_watts: Reading::absent(reason, detail),
            power_limit_watts: Reading::absent(reason, detail),
            current_amperes: Reading::absent(reason, detail),
            current_limit_amperes: Reading::absent(reason, detail),
            voltage_volts: Reading::absent(reason, detail),
            voltage_limit_volts: Reading::absent(reason, detail),
            aiclk_hertz: Reading::absent(reason, detail),
            axiclk_hertz: Reading::absent(reason, detail),
            arcclk_hertz: Reading::absent(reason, detail),
            fan_revolutions_per_minute: Reading::absent(reason, detail),
            fan_ratio: Reading::absent(reason, detail),
            heartbeat_total: Reading::absent(reason, detail),
            thermal_trips_total: Reading::absent(reason, detail),
            // End of these.
            firmware: BTreeMap::new(),
            pcie: Vec::new(),
            load: None,
            memory_counts: None,
            link: None,
            power: None,
            errors: None,
            nvlink: None,
        }
    }
}

impl MemoryCounts {
    /// Nothing is counted, for one reason.
    pub fn absent(reason: crate::reading::Absence, detail: &str) -> Self {
        Self {
            category_bytes: BTreeMap::new(),
            // From sensors.toml: absences of memory_counts.
            corrected_errors_total: Reading::absent(reason, detail),
            uncorrected_errors_total: Reading::absent(reason, detail),
            corrected_errors_lifetime_total: Reading::absent(reason, detail),
            uncorrected_errors_lifetime_total: Reading::absent(reason, detail),
            sram_uncorrected_errors_total: Reading::absent(reason, detail),
            sram_uncorrected_lifetime_total: Reading::absent(reason, detail),
            // End of these.
        }
    }
}

impl Load {
    /// Nothing is known of it, for one reason.
    pub fn absent(reason: crate::reading::Absence, detail: &str) -> Self {
        Self {
            // From sensors.toml: absences of load.
            busy_ratio: Reading::absent(reason, detail),
            memory_busy_ratio: Reading::absent(reason, detail),
            memory_clock_hertz: Reading::absent(reason, detail),
            encoder_busy_ratio: Reading::absent(reason, detail),
            decoder_busy_ratio: Reading::absent(reason, detail),
            performance_state: Reading::absent(reason, detail),
            // End of these.
            throttled_by: Reading::absent(reason, detail),
        }
    }
}

impl Device {
    /// The chip generation: by its facts, else by its board type.
    pub fn architecture(&self) -> Option<Architecture> {
        let facts = self.facts.value().map(|facts| facts.architecture);
        facts.or_else(|| self.identity.chip()?.board_type.architecture())
    }

    /// Use and capacity of one space.
    pub fn space(&self, space: MemorySpace) -> Option<&SpaceUsage> {
        self.spaces.iter().find(|usage| usage.space == space)
    }

    /// The parts of one kind.
    pub fn kind(&self, kind: MemoryKind) -> Option<&KindMemory> {
        self.kinds.iter().find(|parts| parts.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::{Device, Fault, FaultKind, Telemetry};
    use crate::chip::ChipIdentity;
    use crate::clock::Timestamp;
    use crate::reading::{Absence, Reading};

    #[test]
    fn what_an_older_or_newer_version_wrote_is_read() {
        let fault = Fault::new(FaultKind::Vanished, Timestamp(5), String::from("why"));
        let device = Device {
            id: String::from("7"),
            identity: ChipIdentity::default().into(),
            facts: Reading::absent(Absence::Unknown, ""),
            telemetry: Telemetry::absent(Absence::Unknown, ""),
            spaces: Vec::new(),
            kinds: Vec::new(),
            holders: Reading::absent(Absence::Unknown, ""),
            faults: vec![fault.clone()],
            health_not_kept: false,
        };
        let mut written = serde_json::to_value(&device).unwrap();
        let read = |written: &serde_json::Value| {
            serde_json::from_value::<Device>(written.clone()).unwrap().faults
        };
        assert_eq!(read(&written), device.faults);
        let faults = written["faults"].as_array_mut().unwrap();
        let later = serde_json::json!({"kind": "link_lost", "since": 4, "detail": "", "port": 1});
        faults.insert(0, later);
        assert_eq!(read(&written), [fault], "a later version's kind is left out");
        written.as_object_mut().unwrap().remove("faults");
        assert_eq!(read(&written), []);
    }
}
