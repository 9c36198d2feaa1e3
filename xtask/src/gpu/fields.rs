//! Which field of `nvidia-smi` is which value of Telltale, and what has no counterpart.
//!
//! Data only, but for the paths into a snapshot. A test holds the lists to the sensors of the schema.

use std::collections::BTreeMap;

use telltale_schema::device::OtherIdentity;
use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, Snapshot, SpaceUsage};

/// One value that both have.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) theirs: Theirs,
    pub(super) ours: Ours,
    pub(super) comparison: Comparison,
}

/// Where `nvidia-smi` has it.
#[derive(Debug)]
pub(super) enum Theirs {
    /// A field to query: the name that newer drivers have for it first.
    Field(&'static [&'static str]),
    /// The sum of several.
    Sum(&'static [&'static str]),
    /// The first of these tags of `-q -x` that has a value.
    Tag(&'static [&'static str]),
    /// The links that `nvlink -s` shows as up.
    LinksUp,
}

/// Where Telltale has it.
#[derive(Debug)]
pub(super) enum Ours {
    /// A sensor of the schema, by its field.
    Sensor(&'static str),
    /// A number or text of the snapshot, or why there is none.
    Other(&'static str, fn(&Seen<'_>) -> Result<String, String>),
    /// What holds the clocks down.
    Reasons,
}

/// How both are compared.
#[derive(Debug)]
pub(super) enum Comparison {
    /// As text.
    Text,
    /// As PCI addresses, whose domain has eight digits there.
    Address,
    /// As the bits of the reasons and their names.
    Reasons,
    /// As numbers.
    Number(Tolerance),
}

/// How numbers are compared: ours must be in the range from before to after, widened by the tolerance.
#[derive(Debug)]
pub(super) struct Tolerance {
    /// Theirs is in this many of our units.
    pub(super) unit: f64,
    /// In their unit.
    pub(super) absolute: f64,
    /// And a share of the value.
    pub(super) share: f64,
    /// Why there is a tolerance.
    pub(super) why: &'static str,
}

/// A GPU in a snapshot.
pub(super) struct Seen<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) device: &'a Device,
}

const EXACT: Comparison = number(1.0, 0.0, 0.0, "");
/// Watts have two digits there.
const LIMIT: Comparison = number(1.0, 0.01, 0.0, "it has two digits");
const MEBIBYTES: Comparison = number(MIB, 2.0, 0.0, "it has whole MiB");
const SUM_OF_MEBIBYTES: Comparison = number(MIB, 3.0, 0.0, "each of them has whole MiB");
const MEGAHERTZ: Comparison = number(1e6, 15.0, 0.05, "clocks follow the load from step to step");
const PERCENT: Comparison = number(0.01, 20.0, 0.0, "each is of a sample of 1/6 to 1 second");
const MIB: f64 = 1_048_576.0;

const fn number(unit: f64, absolute: f64, share: f64, why: &'static str) -> Comparison {
    Comparison::Number(Tolerance { unit, absolute, share, why })
}

const fn field(
    theirs: &'static [&'static str],
    ours: &'static str,
    comparison: Comparison,
) -> Field {
    Field { theirs: Theirs::Field(theirs), ours: Ours::Sensor(ours), comparison }
}

const fn other(
    theirs: &'static [&'static str],
    ours: &'static str,
    path: fn(&Seen<'_>) -> Result<String, String>,
    comparison: Comparison,
) -> Field {
    Field { theirs: Theirs::Field(theirs), ours: Ours::Other(ours, path), comparison }
}

/// What both have.
pub(super) const FIELDS: &[Field] = &[
    other(&["index"], "driver_ordinal", ordinal, EXACT),
    other(&["name"], "model", |gpu| text(gpu.other()?.model.as_ref()), Comparison::Text),
    other(&["uuid"], "uuid", |gpu| text(gpu.other()?.uuid.as_ref()), Comparison::Text),
    other(&["pci.bus_id"], "pci", |gpu| text(gpu.device.identity.pci()), Comparison::Address),
    other(&["serial"], "serial", |gpu| text(gpu.other()?.serial.as_ref()), Comparison::Text),
    other(
        &["driver_version"],
        "driver_version",
        |gpu| gpu.firmware("driver_version"),
        Comparison::Text,
    ),
    other(
        &["vbios_version"],
        "vbios_version",
        |gpu| gpu.firmware("vbios_version"),
        Comparison::Text,
    ),
    other(&["memory.total"], "capacity of dram", |gpu| gpu.memory(capacity), MEBIBYTES),
    other(&["memory.used"], "dram in use", |gpu| gpu.memory(used), MEBIBYTES),
    Field {
        theirs: Theirs::Sum(&["memory.free", "memory.reserved"]),
        ours: Ours::Other("dram not in use", |gpu| gpu.memory(unused)),
        comparison: SUM_OF_MEBIBYTES,
    },
    field(
        &["temperature.gpu"],
        "temperature_celsius",
        number(1.0, 2.0, 0.0, "it is measured at another moment"),
    ),
    Field {
        theirs: Theirs::Tag(&["gpu_temp_slow_threshold", "gpu_temp_max_gpu_threshold"]),
        ours: Ours::Sensor("temperature_limit_celsius"),
        comparison: EXACT,
    },
    field(
        &["power.draw"],
        "power_watts",
        number(1.0, 5.0, 0.1, "it is measured at another moment"),
    ),
    field(&["enforced.power.limit"], "power_limit_watts", LIMIT),
    field(&["power.default_limit"], "power_limit_default_watts", LIMIT),
    field(&["power.min_limit"], "power_limit_min_watts", LIMIT),
    field(&["power.max_limit"], "power_limit_max_watts", LIMIT),
    field(&["clocks.current.sm"], "aiclk_hertz", MEGAHERTZ),
    field(&["clocks.current.memory"], "memory_clock_hertz", MEGAHERTZ),
    field(&["utilization.gpu"], "busy_ratio", PERCENT),
    field(&["utilization.memory"], "memory_busy_ratio", PERCENT),
    field(&["utilization.encoder"], "encoder_busy_ratio", PERCENT),
    field(&["utilization.decoder"], "decoder_busy_ratio", PERCENT),
    field(&["pstate"], "performance_state", EXACT),
    field(&["fan.speed"], "fan_ratio", number(0.01, 2.0, 0.0, "it is set at another moment")),
    field(&["pcie.link.gen.current"], "pcie_generation", EXACT),
    field(&["pcie.link.gen.max"], "pcie_generation_max", EXACT),
    field(&["pcie.link.width.current"], "pcie_width", EXACT),
    field(&["pcie.link.width.max"], "pcie_width_max", EXACT),
    Field {
        theirs: Theirs::Tag(&["replay_counter"]),
        ours: Ours::Sensor("pcie_replays_total"),
        comparison: EXACT,
    },
    field(&["ecc.errors.corrected.volatile.total"], "corrected_errors_total", EXACT),
    field(&["ecc.errors.uncorrected.volatile.total"], "uncorrected_errors_total", EXACT),
    field(&["ecc.errors.corrected.aggregate.total"], "corrected_errors_lifetime_total", EXACT),
    field(&["ecc.errors.uncorrected.aggregate.total"], "uncorrected_errors_lifetime_total", EXACT),
    field(&["ecc.errors.uncorrected.volatile.sram"], "sram_uncorrected_errors_total", EXACT),
    field(&["ecc.errors.uncorrected.aggregate.sram"], "sram_uncorrected_lifetime_total", EXACT),
    field(&["remapped_rows.correctable"], "remapped_rows_corrected", EXACT),
    field(&["remapped_rows.uncorrectable"], "remapped_rows_uncorrected", EXACT),
    field(&["remapped_rows.pending"], "row_remap_pending", EXACT),
    field(&["remapped_rows.failure"], "row_remap_failed", EXACT),
    field(&["retired_pages.single_bit_ecc.count"], "retired_pages_corrected", EXACT),
    field(&["retired_pages.double_bit.count"], "retired_pages_uncorrected", EXACT),
    field(&["retired_pages.pending"], "page_retirement_pending", EXACT),
    Field {
        theirs: Theirs::Field(&["clocks_event_reasons.active", "clocks_throttle_reasons.active"]),
        ours: Ours::Reasons,
        comparison: Comparison::Reasons,
    },
    Field { theirs: Theirs::LinksUp, ours: Ours::Sensor("nvlink_links_up"), comparison: EXACT },
    other(&["count"], "GPUs of the driver", |gpu| Ok(gpu.gpus().to_string()), EXACT),
];

const OF_OTHERS: &str = "of no GPU of NVIDIA's";
const EVENTS: &str = "counts events since the reader began, which nvidia-smi does not show";
const RATE: &str = "a rate between two collections, which nvidia-smi does not have";
const BY_LINK: &str = "nvidia-smi nvlink counts it for each link";
const BY_THE_KERNEL: &str = "from the kernel, not from the driver";

/// Sensors that are compared with nothing, and why.
pub(super) const WITHOUT_COUNTERPART: [(&str, &str); 28] = [
    ("current_amperes", OF_OTHERS),
    ("current_limit_amperes", OF_OTHERS),
    ("voltage_volts", OF_OTHERS),
    ("voltage_limit_volts", OF_OTHERS),
    ("axiclk_hertz", OF_OTHERS),
    ("arcclk_hertz", OF_OTHERS),
    ("heartbeat_total", OF_OTHERS),
    ("thermal_trips_total", OF_OTHERS),
    ("fan_revolutions_per_minute", "nvidia-smi has the share of full speed only"),
    ("pcie_received_bytes_per_second", RATE),
    ("pcie_sent_bytes_per_second", RATE),
    ("numa_node", BY_THE_KERNEL),
    ("pcie_correctable_errors_total", BY_THE_KERNEL),
    ("pcie_nonfatal_errors_total", BY_THE_KERNEL),
    ("pcie_fatal_errors_total", BY_THE_KERNEL),
    ("energy_joules_total", "nvidia-smi has no field for it"),
    ("xid_errors_total", EVENTS),
    ("xid_last", EVENTS),
    ("xid_hardware_errors_total", EVENTS),
    ("xid_hardware_last", EVENTS),
    ("nvlink_links", "nvidia-smi does not list links of a GPU on which none is up"),
    ("nvlink_received_bytes_per_second", RATE),
    ("nvlink_sent_bytes_per_second", RATE),
    ("nvlink_received_bytes_total", BY_LINK),
    ("nvlink_sent_bytes_total", BY_LINK),
    ("nvlink_crc_errors_total", BY_LINK),
    ("nvlink_replays_total", BY_LINK),
    ("nvlink_recoveries_total", BY_LINK),
];

/// Bits of the reasons, by `nvidia-smi`'s names; that the GPU is idle (bit 0) is none of ours.
pub(super) const REASONS: [(u64, &str); 8] = [
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
];

/// What `nvidia-smi` has of what is compared, and Telltale has not.
const NOT_OF_TELLTALE: &str = "`temperature.memory`, `power.limit` (the limit that was set, not the one that holds), \
                               `clocks.current.graphics`, `clocks.max.*`";

/// What is not compared, for a person.
pub(super) fn not_compared() -> String {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, why) in WITHOUT_COUNTERPART.iter().filter(|(_, why)| *why != OF_OTHERS) {
        by_reason.entry(why).or_default().push(format!("`{name}`"));
    }
    let mut text = String::from("Not compared:\n\n");
    for (why, names) in by_reason {
        text.push_str(&format!("- {}: {why}.\n", names.join(", ")));
    }
    text.push_str(&format!("- {NOT_OF_TELLTALE}: not in Telltale.\n"));
    text
}

// === impl Seen ===

impl<'a> Seen<'a> {
    fn other(&self) -> Result<&'a OtherIdentity, String> {
        self.device.identity.other().ok_or_else(|| String::from("it is no GPU"))
    }

    fn firmware(&self, name: &str) -> Result<String, String> {
        text(self.device.telemetry.firmware.get(name))
    }

    /// The GPU and its instances, which divide its memory.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, &'a Device)> {
        let whole = self.device;
        let is_part = move |device: &Device| {
            let parent = device.identity.other().and_then(|other| other.parent.as_ref());
            parent == Some(&whole.id) || device.id == whole.id
        };
        self.snapshot.devices.iter().enumerate().filter(move |(_, device)| is_part(device))
    }

    fn gpus(&self) -> usize {
        let is_whole = |device: &&Device| {
            let other = device.identity.other();
            other.is_some_and(|other| other.vendor == "nvidia" && other.parent.is_none())
        };
        self.snapshot.devices.iter().filter(is_whole).count()
    }

    /// A value of its memory and of its instances', in bytes.
    fn memory(&self, of: fn(&SpaceUsage) -> Result<u64, String>) -> Result<String, String> {
        let mut sum = 0u64;
        for (_, device) in self.parts() {
            let space = device.space(MemorySpace::Dram);
            let space = space.ok_or_else(|| String::from("it has no memory of its own"))?;
            sum = sum.saturating_add(of(space)?);
        }
        Ok(sum.to_string())
    }
}

fn capacity(space: &SpaceUsage) -> Result<u64, String> {
    known(&space.capacity_bytes).copied()
}

fn used(space: &SpaceUsage) -> Result<u64, String> {
    known(&space.used_bytes).copied()
}

fn unused(space: &SpaceUsage) -> Result<u64, String> {
    Ok(capacity(space)?.saturating_sub(used(space)?))
}

fn ordinal(gpu: &Seen<'_>) -> Result<String, String> {
    text(gpu.other()?.driver_ordinal)
}

fn text<T: ToString>(value: Option<T>) -> Result<String, String> {
    value.map(|value| value.to_string()).ok_or_else(|| String::from("not reported"))
}

/// The value, or why there is none.
pub(super) fn known<T>(reading: &Reading<T>) -> Result<&T, String> {
    match reading {
        Reading::Value { value, .. } => Ok(value),
        Reading::Absent { absent, detail } if detail.is_empty() => Err(absent.words().to_owned()),
        Reading::Absent { absent, detail } => Err(format!("{}: {detail}", absent.words())),
    }
}

// === impl Theirs ===

impl Theirs {
    /// What it is called in a table.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Field(names) => names[0].to_owned(),
            Self::Sum(names) => names.join(" + "),
            Self::Tag(tags) => format!("-q -x, {}", tags[0]),
            Self::LinksUp => String::from("nvlink -s, links up"),
        }
    }
}

// === impl Ours ===

impl Ours {
    /// What it is called in a table.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sensor(name) | Self::Other(name, _) => name,
            Self::Reasons => "throttled_by",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use telltale_schema::sensor::SENSORS;

    use super::{FIELDS, Ours, WITHOUT_COUNTERPART};

    #[test]
    fn every_sensor_is_compared_or_has_a_reason_why_not() {
        let compared = FIELDS.iter().filter_map(|field| match field.ours {
            Ours::Sensor(name) => Some(name),
            Ours::Other(..) | Ours::Reasons => None,
        });
        let listed: Vec<&str> =
            compared.chain(WITHOUT_COUNTERPART.iter().map(|(name, _)| *name)).collect();
        let once: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len(), "one is listed twice: {listed:?}");
        let sensors: BTreeSet<&str> = SENSORS.iter().map(|sensor| sensor.field).collect();
        let missing: Vec<_> = sensors.difference(&once).collect();
        assert!(missing.is_empty(), "add to FIELDS or WITHOUT_COUNTERPART: {missing:?}");
        assert_eq!(once, sensors, "some is no sensor");
    }
}
