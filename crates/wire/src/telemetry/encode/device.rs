//! Devices.

use telltale_schema::chip::{ChipFacts, ChipIdentity};
use telltale_schema::device::{DeviceIdentity, OtherIdentity};
use telltale_schema::health::Fault;
use telltale_schema::sensor::{SENSORS, SensorReading};
use telltale_schema::snapshot::{
    Device, Holder, KindMemory, MemoryCounts, PcieTraffic, SpaceUsage, Telemetry,
};

use super::super::message::numbers::{
    category_bytes, chip_facts, chip_identity, device, evidence, facts_reading, fault,
    firmware_version, galaxy_position, holder, holders, holders_reading, kind_memory, load,
    memory_counts, names, names_reading, other_identity, pcie_traffic, sensors, space_usage,
};
use super::writer::{MessageWriter, ReadingValue};

pub(super) fn device(to: &mut MessageWriter, device: &Device) {
    to.text(device::ID, &device.id);
    match &device.identity {
        DeviceIdentity::Chip(chip) => to.message(device::IDENTITY, |to| identity(to, chip)),
        // For readers from before there were others; the last field says who it is.
        DeviceIdentity::Other(other) => {
            let chip = ChipIdentity { pci: other.pci, ..ChipIdentity::default() };
            to.message(device::IDENTITY, |to| identity(to, &chip));
        }
    }
    to.reading(device::FACTS, &device.facts);
    to.message(device::TELEMETRY, |to| sensors(to, &device.telemetry));
    for usage in &device.spaces {
        to.message(device::SPACES, |to| space(to, usage));
    }
    for parts in &device.kinds {
        to.message(device::KINDS, |to| kind(to, parts));
    }
    to.reading(device::HOLDERS, &device.holders);
    if let DeviceIdentity::Other(one) = &device.identity {
        to.message(device::OTHER_IDENTITY, |to| other(to, one));
    }
    for fault in &device.faults {
        to.message(device::FAULTS, |to| self::fault(to, fault));
    }
    to.maybe(device::HEALTH_NOT_KEPT, device.health_not_kept.then_some(true));
}

pub(super) fn fault(to: &mut MessageWriter, fault: &Fault) {
    to.code(fault::KIND, fault.kind);
    to.whole(fault::SINCE_UNIX_NS, fault.since.0);
    to.text(fault::DETAIL, &fault.detail);
    to.text(fault::PART, &fault.part);
    for one in &fault.evidence {
        to.message(fault::EVIDENCE, |to| {
            to.text(evidence::READING, &one.reading);
            if one.value != 0.0 {
                to.number(evidence::VALUE, one.value);
            }
            to.whole(evidence::AT_UNIX_NS, one.at.0);
        });
    }
}

fn other(to: &mut MessageWriter, identity: &OtherIdentity) {
    to.text(other_identity::NAME, &identity.name);
    to.text(other_identity::VENDOR, &identity.vendor);
    to.code(other_identity::CLASS, identity.class);
    let mut maybe = |field, text: Option<&str>| {
        if let Some(text) = text {
            to.set_bytes(field, text.as_bytes());
        }
    };
    maybe(other_identity::MODEL, identity.model.as_deref());
    maybe(other_identity::DRIVER, identity.driver.as_deref());
    maybe(other_identity::PCI_ADDRESS, identity.pci.map(|pci| pci.to_string()).as_deref());
    maybe(other_identity::UUID, identity.uuid.as_deref());
    maybe(other_identity::SERIAL, identity.serial.as_deref());
    maybe(other_identity::PARENT, identity.parent.as_deref());
    to.maybe(other_identity::DRIVER_ORDINAL, identity.driver_ordinal);
}

fn identity(to: &mut MessageWriter, chip: &ChipIdentity) {
    to.maybe(chip_identity::DRIVER_ORDINAL, chip.driver_ordinal);
    if let Some(pci) = chip.pci {
        to.text(chip_identity::PCI_ADDRESS, &pci.to_string());
    }
    if let Some(asic) = chip.asic_id {
        to.fixed(chip_identity::ASIC_ID, asic.0);
    }
    if let Some(board) = chip.board_id {
        to.fixed(chip_identity::BOARD_ID, board.0);
    }
    to.code(chip_identity::BOARD_TYPE, chip.board_type);
    to.whole(chip_identity::LOCATION, chip.location);
    if let Some(position) = chip.galaxy {
        to.message(chip_identity::GALAXY, |to| {
            to.whole(galaxy_position::TRAY, position.tray);
            to.whole(galaxy_position::NIBBLE, position.nibble);
        });
    }
    to.whole(chip_identity::REMOTE, chip.remote);
}

impl ReadingValue for ChipFacts {
    fn write(&self, to: &mut MessageWriter) {
        to.message(facts_reading::VALUE, |to| {
            to.code(chip_facts::ARCHITECTURE, self.architecture);
            to.whole(chip_facts::DRAM_CAPACITY_BYTES, self.dram_capacity_bytes);
            to.whole(chip_facts::DRAM_CHANNELS, self.dram_channels);
            to.whole(chip_facts::L1_PER_CORE_BYTES, self.l1_per_core_bytes);
            to.whole(chip_facts::WORKER_CORES, self.worker_cores);
            to.whole(chip_facts::GRID_COLUMNS, self.grid.0);
            to.whole(chip_facts::GRID_ROWS, self.grid.1);
            to.code(chip_facts::SOURCE, self.source);
        });
    }
}

fn sensors(to: &mut MessageWriter, telemetry: &Telemetry) {
    declared(to, telemetry, None);
    for (name, version) in &telemetry.firmware {
        to.message(sensors::FIRMWARE, |to| {
            to.text(firmware_version::NAME, name);
            to.text(firmware_version::VERSION, version);
        });
    }
    for counter in &telemetry.pcie {
        to.message(sensors::PCIE, |to| traffic(to, counter));
    }
    if let Some(load) = &telemetry.load {
        to.message(sensors::LOAD, |to| {
            declared(to, telemetry, Some("load"));
            to.reading(load::THROTTLED_BY, &load.throttled_by);
        });
    }
    if let Some(counts) = &telemetry.memory_counts {
        to.message(sensors::MEMORY_COUNTS, |to| {
            categories(to, counts);
            declared(to, telemetry, Some("memory_counts"));
        });
    }
    let parts = [
        (telemetry.link.is_some(), sensors::LINK, "link"),
        (telemetry.power.is_some(), sensors::POWER, "power"),
        (telemetry.errors.is_some(), sensors::ERRORS, "errors"),
        (telemetry.nvlink.is_some(), sensors::NVLINK, "nvlink"),
    ];
    for (_, number, part) in parts.into_iter().filter(|(is_there, ..)| *is_there) {
        to.message(number, |to| declared(to, telemetry, Some(part)));
    }
}

/// The declared sensors of one part of the telemetry.
fn declared(to: &mut MessageWriter, telemetry: &Telemetry, part: Option<&str>) {
    for sensor in SENSORS.iter().filter(|sensor| sensor.part == part) {
        match sensor.reading(telemetry) {
            Some(SensorReading::Float(reading)) => to.reading(sensor.proto, reading),
            Some(SensorReading::Whole(reading)) => to.reading(sensor.proto, reading),
            None => {}
        }
    }
}

fn categories(to: &mut MessageWriter, counts: &MemoryCounts) {
    for (name, bytes) in &counts.category_bytes {
        to.message(memory_counts::CATEGORIES, |to| {
            to.text(category_bytes::NAME, name);
            to.whole(category_bytes::BYTES, *bytes);
        });
    }
}

fn traffic(to: &mut MessageWriter, traffic: &PcieTraffic) {
    to.text(pcie_traffic::COUNTER, &traffic.counter);
    to.whole(pcie_traffic::NOC, traffic.noc);
    to.code(pcie_traffic::DIRECTION, traffic.direction);
    to.reading(pcie_traffic::BYTES_TOTAL, &traffic.bytes_total);
    to.reading(pcie_traffic::RAW_FLITS, &traffic.raw_flits);
}

fn space(to: &mut MessageWriter, usage: &SpaceUsage) {
    to.code(space_usage::SPACE, usage.space);
    to.reading(space_usage::USED_BYTES, &usage.used_bytes);
    to.reading(space_usage::CAPACITY_BYTES, &usage.capacity_bytes);
    if let Some(source) = usage.capacity_source {
        to.code(space_usage::CAPACITY_SOURCE, source);
    }
}

fn kind(to: &mut MessageWriter, parts: &KindMemory) {
    to.code(kind_memory::KIND, parts.kind);
    to.whole(kind_memory::TOTAL_BYTES, parts.total_bytes);
    to.whole(kind_memory::PROCESSES_BYTES, parts.processes_bytes);
    to.whole(kind_memory::UNATTRIBUTED_BYTES, parts.unattributed_bytes);
    to.whole(kind_memory::GHOST_BYTES, parts.ghost_bytes);
    to.maybe(kind_memory::LIVE_BUFFERS, parts.live_buffers);
}

impl ReadingValue for Vec<String> {
    fn write(&self, to: &mut MessageWriter) {
        to.message(names_reading::VALUE, |to| {
            for name in self {
                to.set_bytes(names::NAMES, name.as_bytes());
            }
        });
    }
}

impl ReadingValue for Vec<Holder> {
    fn write(&self, to: &mut MessageWriter) {
        to.message(holders_reading::VALUE, |to| {
            for holder in self {
                to.message(holders::HOLDERS, |to| {
                    to.maybe(holder::PID, holder.pid);
                    to.whole(holder::OPEN_DESCRIPTORS, holder.open_descriptors);
                    to.whole(holder::MEMORY_KNOWN, holder.memory_known);
                });
            }
        });
    }
}
