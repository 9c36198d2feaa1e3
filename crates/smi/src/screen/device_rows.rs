//! The rows of the pane of devices: one for each, but the idle ones of a tray have one together, as on
//! the service's page (`folds` in device.js). What is wrong with a device or its link stays in sight.

use std::collections::HashSet;
use std::ops::Range;

use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::{SENSORS, Sensor};
use telltale_schema::snapshot::{Device, Snapshot, SpaceUsage};

use super::machines::Machines;
use crate::links;

/// Devices up to which each has a row.
const MOST_ROWS: usize = 8;
/// The fewest idle devices of a tray that have a row together.
const FEWEST_IDLE: usize = 2;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeviceRow {
    /// The device in this place of the snapshot.
    Device(usize),
    /// Idle devices of one tray.
    Idle(IdleDevices),
}

/// Idle devices that have a row together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdleDevices {
    /// Their tray, where they are in one, and their host, where there are several.
    tray: String,
    /// Their places in the snapshot.
    pub(super) places: Vec<usize>,
}

/// What a row is, from one snapshot to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeviceRowId {
    Device(String),
    Idle(String),
}

/// Devices that have a row of their own whatever they do.
#[derive(Debug, Default)]
pub(super) struct Apart<'a> {
    /// Each device has one.
    pub(super) all: bool,
    /// Those that were selected, by their ids.
    pub(super) selected: [Option<&'a str>; 2],
    /// Those that an alert is about.
    pub(super) alarmed: Option<&'a HashSet<String>>,
}

// === impl DeviceRow ===

impl DeviceRow {
    pub(super) fn id(&self, devices: &[Device]) -> DeviceRowId {
        match self {
            Self::Device(place) => DeviceRowId::Device(devices[*place].id.clone()),
            Self::Idle(idle) => DeviceRowId::Idle(idle.tray.clone()),
        }
    }

    /// What stands at its beginning.
    pub(super) fn name(&self, devices: &[Device]) -> String {
        match self {
            Self::Device(place) => devices[*place].id.clone(),
            Self::Idle(idle) => idle.name(),
        }
    }

    /// How many devices it stands for.
    pub(super) fn devices(&self) -> usize {
        match self {
            Self::Device(_) => 1,
            Self::Idle(idle) => idle.places.len(),
        }
    }
}

// === impl IdleDevices ===

impl IdleDevices {
    /// As `T3: 8 idle`.
    pub(super) fn name(&self) -> String {
        let count = self.places.len();
        match self.tray.as_str() {
            "" => format!("{count} idle"),
            tray => format!("{tray}: {count} idle"),
        }
    }
}

// === impl Apart ===

impl Apart<'_> {
    fn has(&self, device: &Device) -> bool {
        let id = device.id.as_str();
        self.selected.contains(&Some(id)) || self.alarmed.is_some_and(|ids| ids.contains(id))
    }
}

/// The rows, in the order of the devices; idle ones stand behind the others of their tray.
pub(super) fn rows(snapshot: &Snapshot, machines: &Machines, apart: &Apart<'_>) -> Vec<DeviceRow> {
    let devices = &snapshot.devices;
    if apart.all || devices.len() <= MOST_ROWS {
        return (0..devices.len()).map(DeviceRow::Device).collect();
    }
    let hosts: Vec<_> = machines.devices(devices.len()).collect();
    let folds = |place: usize| {
        let device = &devices[place];
        is_idle(device, || holds(snapshot, place))
            && !links::is_reduced(device)
            && !machines.is_old_device(place)
            && !apart.has(device)
    };
    let mut rows = Vec::new();
    for (host, places) in &hosts {
        let host = if hosts.len() > 1 { *host } else { "" };
        let mut trays = trays(devices, host, places.clone());
        trays.iter_mut().for_each(|(_, tray)| tray.idle.retain(|place| folds(*place)));
        trays.retain(|(_, tray)| tray.idle.len() >= FEWEST_IDLE);
        for place in places.clone() {
            let tray = trays.iter().position(|(_, tray)| tray.last == place);
            if !trays.iter().any(|(_, tray)| tray.idle.contains(&place)) {
                rows.push(DeviceRow::Device(place));
            }
            if let Some(tray) = tray {
                let (tray, Tray { idle, .. }) = trays.swap_remove(tray);
                rows.push(DeviceRow::Idle(IdleDevices { tray, places: idle }));
            }
        }
    }
    rows
}

/// The devices of a tray.
struct Tray {
    idle: Vec<usize>,
    /// The place behind which those that are idle have their row.
    last: usize,
}

/// The devices of each tray by its name; those in no tray are together, under the name of their host.
fn trays(devices: &[Device], host: &str, of: Range<usize>) -> Vec<(String, Tray)> {
    let mut trays: Vec<(String, Tray)> = Vec::new();
    for place in of {
        let position = devices[place].identity.chip().and_then(|chip| chip.galaxy);
        let tray = position.map_or_else(String::new, |position| format!("T{}", position.tray));
        let name = [host, &tray].into_iter().filter(|part| !part.is_empty());
        let name = name.collect::<Vec<_>>().join("/");
        match trays.iter_mut().find(|(known, _)| *known == name) {
            Some((_, tray)) => {
                tray.idle.push(place);
                tray.last = place;
            }
            None => trays.push((name, Tray { idle: vec![place], last: place })),
        }
    }
    trays
}

/// Whether a process is known to have a device open or something on it.
fn holds(snapshot: &Snapshot, place: usize) -> bool {
    let mut held = snapshot.processes.iter().flat_map(|process| &process.devices);
    held.any(|held| held.device == place)
}

/// Whether no process has a device open, its memory is known to be free, and nothing is known to be
/// wrong with it: neither as a whole nor with a sensor. The past has no list of who had it open; there
/// the processes that are known say whether one `holds` it.
fn is_idle(device: &Device, holds: impl Fn() -> bool) -> bool {
    let is_free = |usage: &SpaceUsage| match &usage.used_bytes {
        Reading::Value { value, .. } => *value == 0,
        Reading::Absent { absent, .. } => [Absence::Unsupported, Absence::NotKept].contains(absent),
    };
    let spaces = device.spaces.iter().filter(|usage| usage.space != MemorySpace::Host);
    let is_held = match &device.holders {
        Reading::Value { value, .. } => !value.is_empty(),
        Reading::Absent { absent, .. } => *absent != Absence::NotKept || holds(),
    };
    !is_held
        && device.fault_names().is_none()
        && spaces.into_iter().all(is_free)
        && !SENSORS.iter().any(|sensor| is_wrong(sensor, device))
}

/// Whether a sensor that has a column fails, which is no lack of support or of permission.
fn is_wrong(sensor: &Sensor, device: &Device) -> bool {
    let wrong = [Absence::TimedOut, Absence::Gone, Absence::Resetting, Absence::Implausible];
    let reason = sensor.read(&device.telemetry).and_then(|reading| Some(reading.absence()?.0));
    sensor.is_column && reason.is_some_and(|reason| wrong.contains(&reason))
}
