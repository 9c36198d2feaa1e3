//! AWS's Neuron devices (Inferentia, Trainium) and their cores, from the driver's files, and who has
//! the devices open, from `/proc`.
//!
//! Facts: AWS's "Neuron Sysfs User Guide" and the driver's `neuron_sysfs_metrics.c` (2.24). The
//! files are only ever read: the driver takes a write for a wish to clear or to reset. They differ
//! between versions, so what is there is searched for and nothing is expected.

mod core;
mod memory;
mod openers;
mod unit;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::clock::Clock;
use telltale_schema::reading::{Absence, Reading};

use super::descriptors::Walk;
use super::inquiry::Inquiry;
use crate::report::SourceReport;
use crate::source::{DeviceReading, HardwareSource, SourceReading};
use crate::timeout::TaskName;
use crate::tree::{Directory, Tree};
use core::Cycles;
use openers::Openers;
use unit::{NeuronUnit, UnitFiles};

/// The name of this source in a snapshot.
const SOURCE: &str = "neuron";

/// Where the driver lists its devices.
const DEVICES: &str = "sys/devices/virtual/neuron_device";
/// The driver's version.
const VERSION: &str = "sys/module/neuron/version";

/// Devices that are checked; the driver has no more.
const MAX_DEVICES: usize = 64;
/// Cores of one device that are checked; the driver has 8.
const MAX_CORES: usize = 64;

/// Why the holders of a device are unknown.
const NOT_SCANNED: &str = "looking for the processes that use the devices takes too long";

/// Reads the devices of one machine, periodically if asked.
pub struct NeuronSource {
    inquiry: Inquiry,
    /// What each device and core last reported, and the cycles that it had counted then.
    before: HashMap<TaskName, (DeviceReading, Option<Cycles>)>,
}

/// The task that searches for processes.
const WALK: TaskName = TaskName { group: u32::MAX, item: 0 };

/// What one task does.
enum NeuronTask {
    /// Reads the files of a device or a core.
    Unit(NeuronUnit),
    /// Searches for processes that have one of the devices open.
    Walk(Walk),
}

/// What came of it.
enum Done {
    Unit(UnitFiles),
    Walk(Openers),
}

// === impl NeuronSource ===

impl NeuronSource {
    /// A source for the machine under `tree`. One device's own files, one core's, or the search for
    /// processes may take the first of `limits`, all of them the second.
    pub fn new(tree: Arc<Tree>, clock: Arc<dyn Clock>, limits: (Duration, Duration)) -> Self {
        Self { inquiry: Inquiry::new(tree, clock, limits), before: HashMap::new() }
    }

    /// The devices, each before its cores; none where there is no driver.
    fn enumerate(&self, report: &mut SourceReport) -> Option<Vec<NeuronUnit>> {
        let devices = match self.inquiry.tree.root().directory(DEVICES) {
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
            units.push(NeuronUnit {
                device: number,
                core: None,
                directory: Arc::clone(&directory),
            });
            units.extend(cores.into_iter().map(|core| NeuronUnit {
                device: number,
                core: Some(core),
                directory: Arc::clone(&directory),
            }));
        }
        Some(units)
    }

    /// Reads the files of each unit, and searches for processes where there is a device.
    fn ask(
        &self,
        units: &[NeuronUnit],
        report: &mut SourceReport,
    ) -> (Vec<Option<UnitFiles>>, Option<Openers>) {
        let mut tasks: Vec<(TaskName, NeuronTask)> =
            units.iter().map(|unit| (unit.task(), NeuronTask::Unit(unit.clone()))).collect();
        if !units.is_empty() {
            tasks.push((WALK, NeuronTask::Walk(self.inquiry.walk(openers::node_of))));
        }
        let (mut files, mut openers) = (Vec::with_capacity(units.len()), None);
        for done in self.inquiry.run(tasks, NeuronTask::run) {
            match done {
                Some(Done::Walk(found)) => openers = Some(found),
                Some(Done::Unit(found)) => files.push(Some(found)),
                None => files.push(None),
            }
        }
        files.truncate(units.len());
        match &openers {
            Some(openers) => openers.complain(report),
            None if units.is_empty() => {}
            None => report.error("processes", Absence::TimedOut, NOT_SCANNED),
        }
        (files, openers)
    }
}

impl HardwareSource for NeuronSource {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self) -> SourceReading {
        let mut inquiry = self.inquiry.begin();
        let report = &mut inquiry.report;
        let units = self.enumerate(report);
        let absent = match &units {
            None => Some(format!(
                "no driver of Neuron devices is loaded (there is no {})",
                self.inquiry.tree.display(DEVICES)
            )),
            Some(units) if units.is_empty() => {
                Some(String::from("the Neuron driver is loaded and has no device"))
            }
            Some(_) => None,
        };
        let units = units.unwrap_or_default();
        let (done, openers) = self.ask(&units, report);
        let tree = &self.inquiry.tree;
        let version = tree.root().attribute(VERSION).ok().and_then(|text| unit::word(&text));
        let now = self.inquiry.clock.now();
        let mut before = std::mem::take(&mut self.before);
        let mut devices = Vec::with_capacity(units.len());
        for (unit, files) in units.iter().zip(done) {
            let last = before.remove(&unit.task());
            let mut reported = match files {
                Some(files) => {
                    let cycles = last.and_then(|(_, cycles)| cycles);
                    unit.reported(files, cycles, now, report)
                }
                None => {
                    let detail = "the driver did not answer in time";
                    report.error(unit.name(), Absence::TimedOut, detail);
                    last.unwrap_or_else(|| (unit.silent(Absence::TimedOut, detail), None))
                }
            };
            if let Some(version) = version.as_ref().filter(|_| unit.core.is_none()) {
                let firmware = &mut reported.0.telemetry.firmware;
                firmware.insert(String::from("driver_version"), version.clone());
            }
            if unit.core.is_none() {
                reported.0.holders = match &openers {
                    Some(openers) => openers.of(unit.device),
                    None => Reading::absent(Absence::TimedOut, NOT_SCANNED),
                };
            }
            devices.push(reported.0.clone());
            self.before.insert(unit.task(), reported);
        }
        self.inquiry.reported(inquiry, SOURCE, devices, absent)
    }
}

// === impl NeuronTask ===

impl NeuronTask {
    fn run(&self) -> Done {
        match self {
            Self::Unit(unit) => Done::Unit(unit.read()),
            Self::Walk(walk) => Done::Walk(Openers::scan(walk)),
        }
    }
}

/// N of each `prefixN` in a directory, in order.
fn numbers(
    directory: &Directory,
    prefix: &str,
    most: usize,
    subject: &str,
    report: &mut SourceReport,
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
