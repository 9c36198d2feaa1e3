//! A line a device, or a line a process and device, for output that scrolls: `dmon` and `pmon`, as
//! nvidia-smi has them. All values of one column are in one unit, which the heading has.

mod lines;

use telltale_query::{Field, Value};
use telltale_schema::snapshot::{Device, HeldDevice, Process, Snapshot};

use crate::columns::RowsOf;
use crate::metric_groups::{self, MetricGroupsError};
use crate::rows;

/// What the lines show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    rows: RowsOf,
    fields: Vec<&'static Field>,
}

/// Which parts of the moment stand before each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MomentColumns {
    /// The date, in UTC.
    pub date: bool,
    /// The time of day, in UTC.
    pub time: bool,
}

/// What one line is of. A device that no process has is a line of `pmon` too.
#[derive(Debug, Clone, Copy)]
struct MonitorRow<'a> {
    snapshot: &'a Snapshot,
    process: Option<&'a Process>,
    held: Option<&'a HeldDevice>,
    device: Option<&'a Device>,
}

/// What stands before the metrics of a process, and behind them.
const BEFORE: [&str; 2] = ["device", "pid"];
const BEHIND: [&str; 2] = ["user", "name"];

impl Monitor {
    /// The groups of metrics with these letters.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn parse(rows: RowsOf, letters: &str) -> Result<Self, MetricGroupsError> {
        let metrics = metric_groups::fields(rows, letters)?;
        let (before, behind) = match rows {
            RowsOf::Devices => (&BEFORE[..1], &[][..]),
            RowsOf::Processes => (&BEFORE[..], &BEHIND[..]),
        };
        let named = |names: &'static [&'static str]| {
            names.iter().map(|name| Field::named(name).expect("these are fields"))
        };
        Ok(Self { rows, fields: named(before).chain(metrics).chain(named(behind)).collect() })
    }

    /// Whether a value is a rate, which the first snapshot does not have.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        self.fields.iter().any(|field| field.is_rate())
    }

    /// Whether one is of what processes use of their host, which is read only where it is asked for.
    #[must_use]
    pub fn asks_for_usage(&self) -> bool {
        self.fields.iter().any(|field| field.is_of_usage())
    }

    /// Each row's values by their fields' names, in base units; what is not known has no value.
    #[must_use]
    pub fn values<'s>(&self, snapshot: &'s Snapshot) -> Vec<Vec<(&'static str, Value<'s>)>> {
        let rows = self.rows(snapshot);
        let known = rows.iter().filter(|row| self.is_of_what_is_shown(row));
        known
            .map(|row| self.fields.iter().map(|field| (field.name, row.value(field))).collect())
            .collect()
    }

    /// Whether it is a process where processes are shown: a program needs no idle devices there.
    fn is_of_what_is_shown(&self, row: &MonitorRow<'_>) -> bool {
        self.rows == RowsOf::Devices || row.process.is_some()
    }

    fn rows<'s>(&self, snapshot: &'s Snapshot) -> Vec<MonitorRow<'s>> {
        let alone =
            |device| MonitorRow { snapshot, process: None, held: None, device: Some(device) };
        if self.rows == RowsOf::Devices {
            return snapshot.devices.iter().map(alone).collect();
        }
        let mut by_device: Vec<Vec<MonitorRow<'s>>> = vec![Vec::new(); snapshot.devices.len()];
        let mut without = Vec::new();
        for process in &snapshot.processes {
            for held in rows::devices(&process.devices) {
                let place = held.map(|held| held.device);
                let device = place.and_then(|place| snapshot.devices.get(place));
                let row = MonitorRow { snapshot, process: Some(process), held, device };
                let list = place.and_then(|place| by_device.get_mut(place));
                list.unwrap_or(&mut without).push(row);
            }
        }
        for (list, device) in by_device.iter_mut().zip(&snapshot.devices) {
            if list.is_empty() {
                list.push(alone(device));
            }
        }
        by_device.into_iter().flatten().chain(without).collect()
    }
}

impl<'a> MonitorRow<'a> {
    fn value(&self, field: &Field) -> Value<'a> {
        let is_of_process = self.process.is_some();
        if let Some(ratio) =
            self.held.and_then(|held| held.busy_ratio).filter(|_| field.name == "busy")
        {
            return Value::Number(ratio);
        }
        // How busy a device is says something of a process only if no other has it.
        if is_of_process && field.name == "busy" && !self.is_alone_on_its_device() {
            return Value::Absent;
        }
        field.read(self.process, self.held, self.device)
    }

    fn is_alone_on_its_device(&self) -> bool {
        let is_held_once =
            |device: &Device| device.holders.value().is_some_and(|all| all.len() == 1);
        self.device.is_some_and(is_held_once) && {
            let place = self.held.map(|held| held.device);
            let held = self.snapshot.processes.iter().flat_map(|process| &process.devices);
            held.filter(|held| Some(held.device) == place).count() == 1
        }
    }
}
