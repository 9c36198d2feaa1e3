//! AWS's Neuron devices (Inferentia, Trainium) and their cores, from the driver's files.
//!
//! Facts: AWS's "Neuron Sysfs User Guide" and the driver's `neuron_sysfs_metrics.c` (2.24). The
//! files are only ever read: the driver takes a write for a wish to clear or to reset. They differ
//! between versions, so what is there is looked for and nothing is expected.

mod core;
mod memory;
mod unit;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::clock::Clock;
use telltale_schema::reading::Absence;

use super::{DeviceReading, HardwareSource, SourceReading};
use crate::patience::{Limits, Patience, TaskName};
use crate::report::Report;
use crate::tree::{Directory, Tree};
use core::Cycles;
use unit::Unit;

/// The name of this source in a snapshot.
const SOURCE: &str = "neuron";

/// Where the driver lists its devices.
const DEVICES: &str = "sys/devices/virtual/neuron_device";
/// The driver's version.
const VERSION: &str = "sys/module/neuron/version";

/// Devices that are looked at; the driver has no more.
const MAX_DEVICES: usize = 64;
/// Cores of one device that are looked at; the driver has 8.
const MAX_CORES: usize = 64;

/// Reads the devices of one machine, again and again if asked.
pub struct NeuronSource {
    tree: Arc<Tree>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    patience: Patience,
    /// What each device and core was told last, and the cycles that it had counted then.
    before: HashMap<TaskName, (DeviceReading, Option<Cycles>)>,
}

// === impl NeuronSource ===

impl NeuronSource {
    /// A source for the machine under `tree`. One device's own files, or one core's, may take
    /// `patience`, all of them `deadline`.
    pub fn new(
        tree: Arc<Tree>,
        clock: Arc<dyn Clock>,
        (patience, deadline): (Duration, Duration),
    ) -> Self {
        let limits = Limits { task: patience, all: deadline };
        Self { tree, clock, limits, patience: Patience::default(), before: HashMap::new() }
    }

    /// The devices, each before its cores; none where there is no driver.
    fn enumerate(&self, report: &mut Report) -> Option<Vec<Unit>> {
        let devices = match self.tree.root().directory(DEVICES) {
            Ok(devices) => devices,
            Err(error) if error.is_missing() => return None,
            Err(error) => {
                report.error(DEVICES, error.absence(), error.to_string());
                return Some(Vec::new());
            }
        };
        let mut units = Vec::new();
        for number in numbers(&devices, "neuron", MAX_DEVICES, DEVICES, report) {
            let name = format!("neuron{number}");
            let directory = match devices.directory(&name) {
                Ok(directory) => Arc::new(directory),
                Err(error) => {
                    report.error(name, error.absence(), error.to_string());
                    continue;
                }
            };
            let cores = numbers(&directory, "neuron_core", MAX_CORES, &name, report);
            units.push(Unit { device: number, core: None, directory: Arc::clone(&directory) });
            units.extend(cores.into_iter().map(|core| Unit {
                device: number,
                core: Some(core),
                directory: Arc::clone(&directory),
            }));
        }
        Some(units)
    }
}

impl HardwareSource for NeuronSource {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self) -> SourceReading {
        let started_ns = self.clock.monotonic_ns();
        let mut report = Report::default();
        let units = self.enumerate(&mut report);
        let absent = match &units {
            None => Some(format!(
                "no driver of Neuron devices is loaded (there is no {})",
                self.tree.display(DEVICES)
            )),
            Some(units) if units.is_empty() => {
                Some(String::from("the Neuron driver is loaded and has no device"))
            }
            Some(_) => None,
        };
        let units = units.unwrap_or_default();
        let tasks = units.iter().map(|unit| (unit.task(), unit.clone())).collect();
        let done = self.patience.run(tasks, Unit::read, self.limits);
        let version = self.tree.root().attribute(VERSION).ok().and_then(|text| unit::word(&text));
        let now = self.clock.now();
        let mut before = std::mem::take(&mut self.before);
        let mut devices = Vec::with_capacity(units.len());
        for (unit, files) in units.iter().zip(done) {
            let last = before.remove(&unit.task());
            let mut told = match files {
                Some(files) => {
                    let cycles = last.and_then(|(_, cycles)| cycles);
                    unit.told(files, cycles, now, &mut report)
                }
                None => {
                    let detail = "the driver did not answer in time";
                    report.error(unit.name(), Absence::TimedOut, detail);
                    last.unwrap_or_else(|| (unit.silent(Absence::TimedOut, detail), None))
                }
            };
            if let Some(version) = version.as_ref().filter(|_| unit.core.is_none()) {
                let firmware = &mut told.0.telemetry.firmware;
                firmware.insert(String::from("driver_version"), version.clone());
            }
            devices.push(told.0.clone());
            self.before.insert(unit.task(), told);
        }
        SourceReading { devices, status: report.finish(SOURCE, &*self.clock, started_ns), absent }
    }
}

/// N of each `prefixN` in a directory, in order.
fn numbers(
    directory: &Directory,
    prefix: &str,
    most: usize,
    subject: &str,
    report: &mut Report,
) -> Vec<u32> {
    let names = match directory.names() {
        Ok(names) => names,
        Err(error) => {
            report.error(subject, error.absence(), error.to_string());
            return Vec::new();
        }
    };
    let number = |name: &String| {
        let digits = name.strip_prefix(prefix)?;
        let number: u32 = digits.parse().ok()?;
        (number.to_string() == digits).then_some(number)
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    if numbers.len() > most {
        let detail = format!("{} of {prefix}, {most} are looked at", numbers.len());
        report.error(subject, Absence::Implausible, detail);
        numbers.truncate(most);
    }
    numbers
}
