//! Devices.

use telltale_schema::chip::{ChipFacts, ChipIdentity};
use telltale_schema::device::{DeviceIdentity, OtherIdentity};
use telltale_schema::sensor::{SENSORS, SensorReading};
use telltale_schema::snapshot::{
    Device, Holder, KindMemory, MemoryCounts, PcieTraffic, SpaceUsage, Telemetry,
};

use super::writer::{Value, Writer};

pub(super) fn device(to: &mut Writer, device: &Device) {
    to.text(1, &device.id);
    match &device.identity {
        DeviceIdentity::Chip(chip) => to.message(2, |to| identity(to, chip)),
        // For readers from before there were others; the last field says who it is.
        DeviceIdentity::Other(other) => {
            let chip = ChipIdentity { pci: other.pci, ..ChipIdentity::default() };
            to.message(2, |to| identity(to, &chip));
        }
    }
    to.reading(3, &device.facts);
    to.message(4, |to| sensors(to, &device.telemetry));
    for usage in &device.spaces {
        to.message(5, |to| space(to, usage));
    }
    for parts in &device.kinds {
        to.message(6, |to| kind(to, parts));
    }
    to.reading(7, &device.holders);
    if let DeviceIdentity::Other(one) = &device.identity {
        to.message(8, |to| other(to, one));
    }
    for fault in &device.faults {
        to.message(9, |to| {
            to.code(1, fault.kind);
            to.whole(2, fault.since.0);
            to.text(3, &fault.detail);
        });
    }
}

fn other(to: &mut Writer, identity: &OtherIdentity) {
    to.text(1, &identity.name);
    to.text(2, &identity.vendor);
    to.code(3, identity.class);
    let mut maybe = |field, text: Option<&str>| {
        if let Some(text) = text {
            to.set_bytes(field, text.as_bytes());
        }
    };
    maybe(4, identity.model.as_deref());
    maybe(5, identity.driver.as_deref());
    maybe(7, identity.pci.map(|pci| pci.to_string()).as_deref());
    maybe(8, identity.uuid.as_deref());
    maybe(9, identity.serial.as_deref());
    maybe(10, identity.parent.as_deref());
    to.maybe(6, identity.driver_ordinal);
}

fn identity(to: &mut Writer, chip: &ChipIdentity) {
    to.maybe(1, chip.driver_ordinal);
    if let Some(pci) = chip.pci {
        to.text(2, &pci.to_string());
    }
    if let Some(asic) = chip.asic_id {
        to.fixed(3, asic.0);
    }
    if let Some(board) = chip.board_id {
        to.fixed(4, board.0);
    }
    to.code(5, chip.board_type);
    to.whole(6, chip.location);
    if let Some(position) = chip.galaxy {
        to.message(7, |to| {
            to.whole(1, position.tray);
            to.whole(2, position.nibble);
        });
    }
    to.whole(8, chip.remote);
}

impl Value for ChipFacts {
    fn write(&self, to: &mut Writer) {
        to.message(1, |to| {
            to.code(1, self.architecture);
            to.whole(2, self.dram_capacity_bytes);
            to.whole(3, self.dram_channels);
            to.whole(4, self.l1_per_core_bytes);
            to.whole(5, self.worker_cores);
            to.whole(6, self.grid.0);
            to.whole(7, self.grid.1);
            to.code(8, self.source);
        });
    }
}

fn sensors(to: &mut Writer, telemetry: &Telemetry) {
    declared(to, telemetry, None);
    for (name, version) in &telemetry.firmware {
        to.message(15, |to| {
            to.text(1, name);
            to.text(2, version);
        });
    }
    for counter in &telemetry.pcie {
        to.message(16, |to| traffic(to, counter));
    }
    if let Some(load) = &telemetry.load {
        to.message(17, |to| {
            declared(to, telemetry, Some("load"));
            to.reading(4, &load.throttled_by);
        });
    }
    if let Some(counts) = &telemetry.memory_counts {
        to.message(18, |to| {
            categories(to, counts);
            declared(to, telemetry, Some("memory_counts"));
        });
    }
}

/// The declared sensors of one part of the telemetry.
fn declared(to: &mut Writer, telemetry: &Telemetry, part: Option<&str>) {
    for sensor in SENSORS.iter().filter(|sensor| sensor.part == part) {
        match sensor.reading(telemetry) {
            Some(SensorReading::Float(reading)) => to.reading(sensor.proto, reading),
            Some(SensorReading::Whole(reading)) => to.reading(sensor.proto, reading),
            None => {}
        }
    }
}

fn categories(to: &mut Writer, counts: &MemoryCounts) {
    for (name, bytes) in &counts.category_bytes {
        to.message(1, |to| {
            to.text(1, name);
            to.whole(2, *bytes);
        });
    }
}

fn traffic(to: &mut Writer, traffic: &PcieTraffic) {
    to.text(1, &traffic.counter);
    to.whole(2, traffic.noc);
    to.code(3, traffic.direction);
    to.reading(4, &traffic.bytes_total);
    to.reading(5, &traffic.raw_flits);
}

fn space(to: &mut Writer, usage: &SpaceUsage) {
    to.code(1, usage.space);
    to.reading(2, &usage.used_bytes);
    to.reading(3, &usage.capacity_bytes);
    if let Some(source) = usage.capacity_source {
        to.code(4, source);
    }
}

fn kind(to: &mut Writer, parts: &KindMemory) {
    to.code(1, parts.kind);
    to.whole(2, parts.total_bytes);
    to.whole(3, parts.processes_bytes);
    to.whole(4, parts.unattributed_bytes);
    to.whole(5, parts.ghost_bytes);
    to.maybe(6, parts.live_buffers);
}

impl Value for Vec<String> {
    fn write(&self, to: &mut Writer) {
        to.message(1, |to| {
            for name in self {
                to.set_bytes(1, name.as_bytes());
            }
        });
    }
}

impl Value for Vec<Holder> {
    fn write(&self, to: &mut Writer) {
        to.message(1, |to| {
            for holder in self {
                to.message(1, |to| {
                    to.maybe(1, holder.pid);
                    to.whole(2, holder.open_descriptors);
                    to.whole(3, holder.memory_known);
                });
            }
        });
    }
}
