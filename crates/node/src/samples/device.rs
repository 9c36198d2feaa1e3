//! Samples of devices: all of them, for every client.

use std::borrow::Cow;
use std::collections::BTreeSet;

use telltale_schema::health::HealthState;
use telltale_schema::metric::definitions::{
    DEVICE_HEALTH, DEVICE_INFO, DEVICE_MEMORY_BUFFERS, DEVICE_MEMORY_CAPACITY_BYTES,
    DEVICE_MEMORY_CATEGORY_BYTES, DEVICE_MEMORY_GHOST_BYTES, DEVICE_MEMORY_SPACE_USED_BYTES,
    DEVICE_MEMORY_UNATTRIBUTED_BYTES, DEVICE_MEMORY_USED_BYTES, DEVICE_PCIE_RECEIVED_BYTES_TOTAL,
    DEVICE_PCIE_SENT_BYTES_TOTAL, DEVICE_PROCESSES, DEVICE_PRODUCT_INFO, DEVICE_THROTTLED,
    DEVICE_UNTRACKED_PROCESSES, DEVICE_UP,
};
use telltale_schema::sensor::{SENSORS, SensorValue};
use telltale_schema::snapshot::{Device, ProcessState, Snapshot, TrafficDirection};
use telltale_wire::exposition::Number;

use super::Samples;
use super::label_sets::SetId;

/// The attribute by which the driver tells the version of all firmware together.
const FIRMWARE_BUNDLE: &str = "tt_fw_bundle_ver";

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
        let reported =
            |text: &'a Option<String>| Cow::Borrowed(text.as_deref().unwrap_or_default());
        let product = samples.sets.of([
            ("vendor".into(), other.vendor.as_str().into()),
            ("class".into(), other.class.name().into()),
            ("model".into(), reported(&other.model)),
            ("driver".into(), reported(&other.driver)),
            ("uuid".into(), reported(&other.uuid)),
            ("parent".into(), reported(&other.parent)),
        ]);
        samples.put(DEVICE_PRODUCT_INFO, [set, product, SetId::default()], Number::Whole(1));
    }
}

fn telemetry<'a>(samples: &mut Samples<'a>, device: &'a Device, set: SetId) {
    let telemetry = &device.telemetry;
    for sensor in SENSORS.iter().filter(|sensor| sensor.metric.rate_of.is_none()) {
        if let Some(value) = sensor.value(telemetry) {
            let label = sensor.label.map(|(name, value)| samples.sets.one(name, value));
            let sets = [set, label.unwrap_or_default(), SetId::default()];
            samples.put(sensor.metric, sets, number(value));
        }
    }
    let reasons = telemetry.load.as_ref().and_then(|load| load.throttled_by.value());
    for reason in reasons.into_iter().flatten() {
        let reason = samples.sets.one("reason", reason.as_str());
        samples.put(DEVICE_THROTTLED, [set, reason, SetId::default()], Number::Whole(1));
    }
    let categories = telemetry.memory_counts.iter().flat_map(|counts| &counts.category_bytes);
    for (category, bytes) in categories {
        let category = samples.sets.one("category", category.as_str());
        let sets = [set, category, SetId::default()];
        samples.put(DEVICE_MEMORY_CATEGORY_BYTES, sets, Number::Whole(*bytes));
    }
    samples.put(DEVICE_UP, alone(set), Number::Whole(u64::from(device.is_read())));
    let present = device.health().state;
    for state in HealthState::ALL {
        let name = samples.sets.one("state", state.name());
        let is_present = Number::Whole(u64::from(state == present));
        samples.put(DEVICE_HEALTH, [set, name, SetId::default()], is_present);
    }
}

fn number(value: SensorValue) -> Number {
    match value {
        SensorValue::Float(value) => Number::Float(value),
        SensorValue::Whole(value) => Number::Whole(value),
    }
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
