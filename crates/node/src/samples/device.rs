//! Samples of devices: all of them, whoever asks.

use std::borrow::Cow;
use std::collections::BTreeSet;

use telltale_schema::chip::FactSource;
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::{
    DEVICE_BUSY_RATIO, DEVICE_CLOCK_HERTZ, DEVICE_CURRENT_AMPERES, DEVICE_CURRENT_LIMIT_AMPERES,
    DEVICE_FAN_SPEED_REVOLUTIONS_PER_MINUTE, DEVICE_HEARTBEATS_TOTAL, DEVICE_INFO,
    DEVICE_MEMORY_BUFFERS, DEVICE_MEMORY_BUSY_RATIO, DEVICE_MEMORY_CAPACITY_BYTES,
    DEVICE_MEMORY_CATEGORY_BYTES, DEVICE_MEMORY_ERRORS_TOTAL, DEVICE_MEMORY_GHOST_BYTES,
    DEVICE_MEMORY_SPACE_USED_BYTES, DEVICE_MEMORY_UNATTRIBUTED_BYTES, DEVICE_MEMORY_USED_BYTES,
    DEVICE_PCIE_RECEIVED_BYTES_TOTAL, DEVICE_PCIE_SENT_BYTES_TOTAL, DEVICE_POWER_LIMIT_WATTS,
    DEVICE_POWER_WATTS, DEVICE_PROCESSES, DEVICE_PRODUCT_INFO, DEVICE_TEMPERATURE_CELSIUS,
    DEVICE_TEMPERATURE_LIMIT_CELSIUS, DEVICE_THERMAL_TRIPS_TOTAL, DEVICE_THROTTLED,
    DEVICE_UNTRACKED_PROCESSES, DEVICE_UP, DEVICE_VOLTAGE_LIMIT_VOLTS, DEVICE_VOLTAGE_VOLTS,
};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{
    Device, Load, MemoryCounts, ProcessState, Snapshot, SpaceUsage, Telemetry, TrafficDirection,
};
use telltale_wire::exposition::Number;

use super::Samples;
use super::label_sets::SetId;

/// The attribute by which the driver tells the version of all firmware together.
const FIRMWARE_BUNDLE: &str = "tt_fw_bundle_ver";

/// A telemetry value: its metric, the label that it has besides the device's, and where it is.
type Measure = (&'static MetricDefinition, Option<(&'static str, &'static str)>, Read);

enum Read {
    Float(fn(&Telemetry) -> &Reading<f64>),
    Whole(fn(&Telemetry) -> &Reading<u64>),
}

const SENSOR: Option<(&str, &str)> = Some(("sensor", "asic"));

const MEASURES: [Measure; 14] = [
    (DEVICE_TEMPERATURE_CELSIUS, SENSOR, Read::Float(|t| &t.temperature_celsius)),
    (DEVICE_TEMPERATURE_LIMIT_CELSIUS, SENSOR, Read::Float(|t| &t.temperature_limit_celsius)),
    (DEVICE_POWER_WATTS, None, Read::Float(|t| &t.power_watts)),
    (DEVICE_POWER_LIMIT_WATTS, None, Read::Float(|t| &t.power_limit_watts)),
    (DEVICE_CURRENT_AMPERES, None, Read::Float(|t| &t.current_amperes)),
    (DEVICE_CURRENT_LIMIT_AMPERES, None, Read::Float(|t| &t.current_limit_amperes)),
    (DEVICE_VOLTAGE_VOLTS, None, Read::Float(|t| &t.voltage_volts)),
    (DEVICE_VOLTAGE_LIMIT_VOLTS, None, Read::Float(|t| &t.voltage_limit_volts)),
    (DEVICE_CLOCK_HERTZ, Some(("clock", "ai")), Read::Whole(|t| &t.aiclk_hertz)),
    (DEVICE_CLOCK_HERTZ, Some(("clock", "axi")), Read::Whole(|t| &t.axiclk_hertz)),
    (DEVICE_CLOCK_HERTZ, Some(("clock", "arc")), Read::Whole(|t| &t.arcclk_hertz)),
    (DEVICE_FAN_SPEED_REVOLUTIONS_PER_MINUTE, None, Read::Whole(|t| &t.fan_revolutions_per_minute)),
    (DEVICE_HEARTBEATS_TOTAL, None, Read::Whole(|t| &t.heartbeat_total)),
    (DEVICE_THERMAL_TRIPS_TOTAL, None, Read::Whole(|t| &t.thermal_trips_total)),
];

/// The label sets of the devices, in the order of the snapshot, where each has a name of its own.
pub(super) fn labels<'a>(samples: &mut Samples<'a>, devices: &'a [Device]) -> Vec<SetId> {
    devices.iter().map(|device| samples.sets.one("device", device.id.as_str())).collect()
}

/// Adds the samples of all devices.
pub(super) fn add<'a>(samples: &mut Samples<'a>, snapshot: &'a Snapshot) {
    let sets = labels(samples, &snapshot.devices);
    for (place, (device, set)) in snapshot.devices.iter().zip(sets).enumerate() {
        identity(samples, device, set);
        telemetry(samples, device, set);
        traffic(samples, device, set);
        memory(samples, device, set);
        processes(samples, snapshot, place, set);
    }
}

fn identity<'a>(samples: &mut Samples<'a>, device: &'a Device, set: SetId) {
    let (chip, other) = (device.identity.chip(), device.identity.other());
    let shown = |value: Option<String>| Cow::Owned(value.unwrap_or_default());
    let serial = match other {
        Some(other) => other.serial.clone(),
        None => chip.and_then(|chip| chip.board_id).map(|id| id.to_string()),
    };
    let architecture = device.architecture().map(|it| it.code_name()).unwrap_or_default();
    let firmware = device.telemetry.firmware.get(FIRMWARE_BUNDLE).map(String::as_str);
    let info = samples.sets.of([
        ("architecture".into(), architecture.into()),
        ("board_type".into(), Cow::Owned(device.identity.product().to_owned())),
        ("serial".into(), shown(serial)),
        ("asic_id".into(), shown(chip.and_then(|chip| chip.asic_id).map(|id| id.to_string()))),
        ("pci_address".into(), shown(device.identity.pci().map(|pci| pci.to_string()))),
        ("firmware_version".into(), firmware.unwrap_or_default().into()),
    ]);
    samples.put(DEVICE_INFO, [set, info, SetId::default()], Number::Whole(1));
    if let Some(other) = other {
        let told = |text: &'a Option<String>| Cow::Borrowed(text.as_deref().unwrap_or_default());
        let product = samples.sets.of([
            ("vendor".into(), other.vendor.as_str().into()),
            ("class".into(), other.class.name().into()),
            ("model".into(), told(&other.model)),
            ("driver".into(), told(&other.driver)),
            ("uuid".into(), told(&other.uuid)),
            ("parent".into(), told(&other.parent)),
        ]);
        samples.put(DEVICE_PRODUCT_INFO, [set, product, SetId::default()], Number::Whole(1));
    }
}

/// How busy the device is, and whether its driver told anything of that.
fn load<'a>(samples: &mut Samples<'a>, load: &'a Load, set: SetId) -> bool {
    let mut told = false;
    for (definition, reading) in
        [(DEVICE_BUSY_RATIO, &load.busy_ratio), (DEVICE_MEMORY_BUSY_RATIO, &load.memory_busy_ratio)]
    {
        if let Some(ratio) = reading.value() {
            told = true;
            samples.put(definition, alone(set), Number::Float(*ratio));
        }
    }
    if let Some(hertz) = load.memory_clock_hertz.value() {
        told = true;
        let clock = samples.sets.one("clock", "memory");
        samples.put(DEVICE_CLOCK_HERTZ, [set, clock, SetId::default()], Number::Whole(*hertz));
    }
    for reason in load.throttled_by.value().into_iter().flatten() {
        told = true;
        let reason = samples.sets.one("reason", reason.as_str());
        samples.put(DEVICE_THROTTLED, [set, reason, SetId::default()], Number::Whole(1));
    }
    told
}

/// What the driver counts of the memory; whether that is anything.
fn memory_counts<'a>(samples: &mut Samples<'a>, counts: &'a MemoryCounts, set: SetId) -> bool {
    let mut told = false;
    for (category, bytes) in &counts.category_bytes {
        told = true;
        let category = samples.sets.one("category", category.as_str());
        let sets = [set, category, SetId::default()];
        samples.put(DEVICE_MEMORY_CATEGORY_BYTES, sets, Number::Whole(*bytes));
    }
    for (severity, reading) in [
        ("corrected", &counts.corrected_errors_total),
        ("uncorrected", &counts.uncorrected_errors_total),
    ] {
        if let Some(errors) = reading.value() {
            told = true;
            let severity = samples.sets.one("severity", severity);
            let sets = [set, severity, SetId::default()];
            samples.put(DEVICE_MEMORY_ERRORS_TOTAL, sets, Number::Whole(*errors));
        }
    }
    told
}

fn telemetry<'a>(samples: &mut Samples<'a>, device: &'a Device, set: SetId) {
    let busy = &device.telemetry.load;
    let mut is_up = busy.as_ref().is_some_and(|busy| load(samples, busy, set));
    let counts = &device.telemetry.memory_counts;
    is_up |= counts.as_ref().is_some_and(|counts| memory_counts(samples, counts, set));
    // A driver that counts nothing but memory is up all the same.
    let counted = |usage: &SpaceUsage| {
        usage.capacity_source == Some(FactSource::Driver) && usage.used_bytes.value().is_some()
    };
    is_up |= device.spaces.iter().any(counted);
    for (definition, label, read) in &MEASURES {
        let value = match read {
            Read::Float(of) => of(&device.telemetry).value().copied().map(Number::Float),
            Read::Whole(of) => of(&device.telemetry).value().copied().map(Number::Whole),
        };
        if let Some(value) = value {
            is_up = true;
            let label = label.map(|(name, value)| samples.sets.one(name, value));
            samples.put(definition, [set, label.unwrap_or_default(), SetId::default()], value);
        }
    }
    samples.put(DEVICE_UP, alone(set), Number::Whole(u64::from(is_up)));
}

/// Each network's counters of one direction, added up where all of them are known.
fn traffic(samples: &mut Samples<'_>, device: &Device, set: SetId) {
    let directions = [
        (DEVICE_PCIE_RECEIVED_BYTES_TOTAL, TrafficDirection::HostToDevice),
        (DEVICE_PCIE_SENT_BYTES_TOTAL, TrafficDirection::DeviceToHost),
    ];
    let networks: BTreeSet<u8> = device.telemetry.pcie.iter().map(|counter| counter.noc).collect();
    for (definition, direction) in directions {
        for noc in &networks {
            let counters = device.telemetry.pcie.iter();
            let mut counters = counters
                .filter(|counter| counter.noc == *noc && counter.direction == direction)
                .map(|counter| counter.bytes_total.value().copied())
                .peekable();
            if counters.peek().is_none() {
                continue;
            }
            if let Some(bytes) = counters.try_fold(0u64, |sum, one| Some(sum.saturating_add(one?)))
            {
                let network = samples.sets.one("noc", noc.to_string());
                samples.put(definition, [set, network, SetId::default()], Number::Whole(bytes));
            }
        }
    }
}

fn memory(samples: &mut Samples<'_>, device: &Device, set: SetId) {
    for parts in &device.kinds {
        let kind = samples.sets.one("kind", parts.kind.name());
        let sets = [set, kind, SetId::default()];
        samples.put(DEVICE_MEMORY_USED_BYTES, sets, Number::Whole(parts.total_bytes));
        let unattributed = Number::Whole(parts.unattributed_bytes);
        samples.put(DEVICE_MEMORY_UNATTRIBUTED_BYTES, sets, unattributed);
        samples.put(DEVICE_MEMORY_GHOST_BYTES, sets, Number::Whole(parts.ghost_bytes));
        if let Some(buffers) = parts.live_buffers {
            samples.put(DEVICE_MEMORY_BUFFERS, sets, Number::Whole(buffers));
        }
    }
    for usage in &device.spaces {
        let space = samples.sets.one("space", usage.space.name());
        let sets = [set, space, SetId::default()];
        if let Some(used) = usage.used_bytes.value() {
            samples.put(DEVICE_MEMORY_SPACE_USED_BYTES, sets, Number::Whole(*used));
        }
        if let Some(capacity) = usage.capacity_bytes.value() {
            samples.put(DEVICE_MEMORY_CAPACITY_BYTES, sets, Number::Whole(*capacity));
        }
    }
}

/// How many hold the device. Holders that cannot be seen from here are one, unless they are known
/// one by one in another way.
fn processes(samples: &mut Samples<'_>, snapshot: &Snapshot, place: usize, set: SetId) {
    let device = &snapshot.devices[place];
    let on_it = snapshot.processes.iter().filter(|process| {
        process.state != ProcessState::Dead
            && process.devices.iter().any(|held| held.device == place)
    });
    let mut pids = BTreeSet::new();
    let mut without_pid = 0u64;
    for process in on_it {
        match process.pid {
            Some(pid) => {
                pids.insert(pid);
            }
            None => without_pid += 1,
        }
    }
    let holders = device.holders.value();
    for holder in holders.into_iter().flatten() {
        match holder.pid {
            Some(pid) => {
                pids.insert(pid);
            }
            None => without_pid = without_pid.max(1),
        }
    }
    let count = u64::try_from(pids.len()).unwrap_or(u64::MAX).saturating_add(without_pid);
    if holders.is_some() || count > 0 {
        samples.put(DEVICE_PROCESSES, alone(set), Number::Whole(count));
    }
    if let Some(holders) = holders {
        let untracked = holders.iter().filter(|holder| !holder.memory_known).count();
        let untracked = u64::try_from(untracked).unwrap_or(u64::MAX);
        samples.put(DEVICE_UNTRACKED_PROCESSES, alone(set), Number::Whole(untracked));
    }
}

fn alone(set: SetId) -> [SetId; 3] {
    [set, SetId::default(), SetId::default()]
}
