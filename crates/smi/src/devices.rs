//! The table of devices.

use std::collections::BTreeSet;

use telltale_schema::memory::MemorySpace;
use telltale_schema::quantity;
use telltale_schema::sensor::{SENSORS, Sensor};
use telltale_schema::snapshot::{Device, Snapshot};
use telltale_schema::text::printable;

use crate::machine::Machine;
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};
use crate::text;

/// Whether idle devices have a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    Shown,
    LeftOut,
}

/// One row a device, the columns of the original tool; without a device, a sentence. How many
/// were left out is said below. Machines that have names are distinguished by a first column.
pub(crate) fn section(machines: &[Machine<'_>], idle: Idle, style: &Style) -> String {
    let devices: usize = machines.iter().map(|machine| machine.snapshot.devices.len()).sum();
    if devices == 0 {
        let filtered =
            |machine: &Machine<'_>| machine.snapshot.left_out.is_some_and(|left| left.devices > 0);
        let words = match machines.iter().any(filtered) {
            true => "No device matches.",
            false => "No device is to be seen.",
        };
        return text::painted(words, Tone::Faint, style);
    }
    let all = || machines.iter().flat_map(|machine| &machine.snapshot.devices);
    let is_there = |sensor: &&Sensor| {
        sensor.is_column && all().any(|device| sensor.reading(&device.telemetry).is_some())
    };
    let shown = OptionalColumns {
        sensors: SENSORS.iter().filter(is_there).collect(),
        l1: all().any(|device| device.space(MemorySpace::L1).is_some()),
    };
    let columns = shown.columns();
    let mut table = Table::new(Machine::column(machines).into_iter().chain(columns).collect());
    let mut left_out = 0;
    for machine in machines {
        let snapshot = machine.snapshot;
        let held: BTreeSet<usize> =
            snapshot.processes.iter().flat_map(|one| &one.devices).map(|one| one.device).collect();
        for (at, device) in snapshot.devices.iter().enumerate() {
            if idle == Idle::LeftOut && !held.contains(&at) && is_idle(device) {
                left_out += 1;
            } else {
                let row = shown.row(device).into_iter().chain([held_by(snapshot, at)]);
                table.push(machine.cell().into_iter().chain(row).collect());
            }
        }
    }
    let words = match left_out {
        0 => return table.render(style),
        1 => String::from("1 idle device is left out; a taller window shows it"),
        many => format!("{many} idle devices are left out; a taller window shows them"),
    };
    let words = text::painted(&words, Tone::Faint, style);
    if left_out == devices { words } else { table.render(style) + &words }
}

/// Whether the device has no known holder, and nothing on it is in use.
fn is_idle(device: &Device) -> bool {
    let unused = |space| {
        let used = device.space(space).and_then(|usage| usage.used_bytes.value());
        used == Some(&0)
    };
    device.holders.value().is_none_or(Vec::is_empty)
        && [MemorySpace::Dram, MemorySpace::L1].into_iter().all(unused)
}

/// Columns that not all machines have.
#[derive(Debug, Clone)]
struct OptionalColumns {
    sensors: Vec<&'static Sensor>,
    l1: bool,
}

/// The first column to go where there is no room.
const ARCHITECTURE_GIVES_WAY: u8 = 100;
/// The next: it hardly differs from chip to chip.
const L1_CAPACITY_GIVES_WAY: u8 = 99;
/// The most characters of a model's name in its column.
const MODEL_CHARACTERS: usize = 24;

impl OptionalColumns {
    fn columns(&self) -> impl Iterator<Item = Column> {
        let named = [Column::left("ID", 0), Column::left("ARCH", ARCHITECTURE_GIVES_WAY)];
        // What only some drivers tell stays longest.
        let sensors = (3..).zip(&self.sensors).map(|(place, sensor)| {
            let gives_way = if sensor.part.is_some() { 1 } else { place };
            Column::right(sensor.heading, gives_way)
        });
        let dram = [Column::right("DRAM USED", 0), Column::left("CAPACITY", 2)];
        let l1 = [Column::right("L1 USED", 2), Column::left("CAPACITY", L1_CAPACITY_GIVES_WAY)];
        let memory = dram.into_iter().chain(l1.into_iter().filter(|_| self.l1));
        named.into_iter().chain(sensors).chain(memory).chain([Column::left("HELD BY", 1).whole()])
    }

    fn row(&self, device: &Device) -> Vec<Cell> {
        let (dram_used, dram) = space(device, MemorySpace::Dram);
        let mut row = vec![Cell::new(printable(&device.id)), architecture(device)];
        row.extend(self.sensors.iter().map(|sensor| reading(sensor, device)));
        row.extend([dram_used, dram]);
        if self.l1 {
            let (used, capacity) = space(device, MemorySpace::L1);
            row.extend([used, capacity]);
        }
        row
    }
}

/// The process that has most memory on a device, and how many more hold it.
fn held_by(snapshot: &Snapshot, device: usize) -> Cell {
    let holders = snapshot.holders(device);
    let Some((first, _)) = holders.known.first() else {
        let is_known = snapshot.devices[device].holders.value().is_some();
        return match holders.others {
            0 if !is_known => Cell::absent(),
            0 => Cell::toned("-", Tone::Faint),
            others => Cell::toned(format!("{others} not shown"), Tone::Faint),
        };
    };
    let pid = crate::processes::pid(first.pid);
    let name = printable(&first.name);
    match holders.known.len() - 1 + holders.others {
        0 => Cell::new(format!("{pid} {name}").trim_end()),
        more => Cell::new(format!("{pid} {name} +{more}")),
    }
}

fn architecture(device: &Device) -> Cell {
    match (device.architecture(), device.identity.other()) {
        (Some(architecture), _) => Cell::new(architecture.name()),
        (None, Some(_)) => {
            let product = printable(device.identity.product());
            Cell::new(product.chars().take(MODEL_CHARACTERS).collect::<String>().trim_end())
        }
        (None, None) => Cell::absent(),
    }
}

fn reading(sensor: &Sensor, device: &Device) -> Cell {
    let Some(value) = sensor.value(&device.telemetry) else { return Cell::absent() };
    let value = value.as_f64();
    Cell::toned(sensor.text(value, 0), Tone::of_sensor(sensor, value, &device.telemetry))
}

fn space(device: &Device, space: MemorySpace) -> (Cell, Cell) {
    let usage = device.space(space);
    let used = usage.and_then(|usage| usage.used_bytes.value().copied());
    let capacity = usage.and_then(|usage| usage.capacity_bytes.value().copied());
    let tone = match (used, capacity) {
        (Some(used), Some(capacity)) => Tone::of_share(used as f64, capacity as f64),
        _ => Tone::Plain,
    };
    let used = used.map_or_else(Cell::absent, |used| Cell::toned(quantity::bytes(used), tone));
    let capacity = capacity.map_or_else(Cell::absent, |capacity| {
        Cell::new(format!("/ {}", quantity::bytes(capacity)))
    });
    (used, capacity)
}
