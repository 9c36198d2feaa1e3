//! One device or core: its files, and what they say.

use std::sync::Arc;

use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Load, MemoryCounts, Telemetry};

use super::core::Cycles;
use super::memory::MemoryFiles;
use crate::limits::MAX_DEVICE_BYTES;
use crate::rate::FIRST_SAMPLE;
use crate::report::SourceReport;
use crate::source::{DeviceReading, DriverMemory};
use crate::timeout::TaskName;
use crate::tree::{Directory, Unreadable};

/// The longest text of a device that is kept, in characters.
const MAX_TEXT_CHARACTERS: usize = 128;

/// What the driver counts for each core and not for the device.
const OF_EACH_CORE: &str = "the driver counts it for each core";
/// What no file of the driver has.
const NO_FILE: &str = "the driver has no file for it";
/// Errors that memory could not correct, of the device's memory and of its cores'.
const UNCORRECTED: [&str; 2] =
    ["stats/hardware/mem_ecc_uncorrected", "stats/hardware/sram_ecc_uncorrected"];

/// A device, or one of its cores.
#[derive(Debug, Clone)]
pub(super) struct NeuronUnit {
    pub(super) device: u32,
    pub(super) core: Option<u32>,
    /// The device's.
    pub(super) directory: Arc<Directory>,
}

/// What its files said.
#[derive(Debug)]
pub(super) enum UnitFiles {
    Device {
        model: Option<String>,
        serial: Option<String>,
        /// Errors in the memory beside the cores and in that within them.
        uncorrected: [Result<Vec<u8>, Unreadable>; 2],
    },
    Core {
        architecture: Option<String>,
        memory: Result<MemoryFiles, Unreadable>,
        cycles: Result<Vec<u8>, Unreadable>,
    },
}

// === impl NeuronUnit ===

impl NeuronUnit {
    pub(super) fn task(&self) -> TaskName {
        TaskName { group: self.device, item: self.core.map_or(0, |core| core.saturating_add(1)) }
    }

    /// How it is shown: the driver shows no PCI address.
    pub(super) fn name(&self) -> String {
        match self.core {
            None => format!("neuron{}", self.device),
            Some(core) => format!("neuron{}/{core}", self.device),
        }
    }

    pub(super) fn read(&self) -> UnitFiles {
        let text = |path: &str| self.directory.attribute(path).ok().and_then(|text| word(&text));
        let Some(core) = self.core else {
            return UnitFiles::Device {
                model: text("info/architecture/device_name"),
                serial: text("info/serial_number"),
                uncorrected: UNCORRECTED.map(|path| self.directory.attribute(path)),
            };
        };
        let core = format!("neuron_core{core}");
        UnitFiles::Core {
            architecture: text(&format!("{core}/info/architecture/arch_type")),
            memory: self
                .directory
                .directory(&format!("{core}/stats/memory_usage/device_mem"))
                .map(|directory| MemoryFiles::read(&directory)),
            cycles: self.directory.attribute(&format!("{core}/stats/tensor_engine/pe_cntrs")),
        }
    }

    /// It, as long as nothing is known of it for this reason.
    pub(super) fn silent(&self, reason: Absence, detail: &str) -> DeviceReading {
        let class = match self.core {
            None => DeviceClass::Accelerator,
            Some(_) => DeviceClass::Partition,
        };
        let identity = OtherIdentity {
            driver: Some(String::from("neuron")),
            driver_ordinal: Some(self.core.unwrap_or(self.device)),
            parent: self.core.map(|_| format!("neuron{}", self.device)),
            ..OtherIdentity::new(self.name(), "aws", class)
        };
        let mut load = Load::absent(Absence::Unsupported, NO_FILE);
        load.busy_ratio = Reading::absent(reason, detail);
        DeviceReading {
            telemetry: Telemetry {
                load: Some(Box::new(load)),
                ..Telemetry::absent(Absence::Unsupported, NO_FILE)
            },
            holders: Reading::absent(Absence::Unsupported, "processes open the device"),
            memory: Some(DriverMemory {
                used_bytes: Reading::absent(reason, detail),
                capacity_bytes: Reading::absent(Absence::Unsupported, NO_FILE),
                processes: Vec::new(),
            }),
            ..DeviceReading::new(identity)
        }
    }

    /// What the files say, and the cycles that they have counted.
    pub(super) fn reported(
        &self,
        files: UnitFiles,
        before: Option<Cycles>,
        now: Timestamp,
        report: &mut SourceReport,
    ) -> (DeviceReading, Option<Cycles>) {
        let mut device = self.silent(Absence::Unsupported, OF_EACH_CORE);
        match files {
            UnitFiles::Device { model, serial, uncorrected } => {
                let [memory, cores] =
                    uncorrected.map(|said| self.reading("hardware", said, now, report));
                let mut counts = MemoryCounts::absent(Absence::Unsupported, NO_FILE);
                counts.uncorrected_errors_total = match (memory, cores) {
                    (Reading::Value { value, at }, Reading::Value { value: more, .. }) => {
                        Reading::new(value.saturating_add(more), at)
                    }
                    (Reading::Value { .. }, absent) | (absent, _) => absent,
                };
                device.telemetry.memory_counts = Some(Box::new(counts));
                if let DeviceIdentity::Other(identity) = &mut device.identity {
                    (identity.model, identity.serial) = (model, serial);
                }
                (device, None)
            }
            UnitFiles::Core { architecture, memory, cycles } => {
                if let DeviceIdentity::Other(identity) = &mut device.identity {
                    identity.model = architecture;
                }
                self.take_memory(memory, now, &mut device, report);
                let (busy, cycles) = self.busy(cycles, before, now, report);
                if let Some(load) = &mut device.telemetry.load {
                    load.busy_ratio = busy;
                }
                (device, cycles)
            }
        }
    }

    fn take_memory(
        &self,
        said: Result<MemoryFiles, Unreadable>,
        now: Timestamp,
        device: &mut DeviceReading,
        report: &mut SourceReport,
    ) {
        let mut counts = MemoryCounts::absent(Absence::Unsupported, "counted for the device");
        let used = match said {
            Ok(mut files) => {
                let total = std::mem::replace(&mut files.total, Ok(Vec::new()));
                let total = self.reading("memory_usage", total, now, report);
                // Subtracting more than was added wraps around.
                let total = total.keep_if(|bytes| *bytes <= MAX_DEVICE_BYTES);
                total.map(|total| {
                    let (used, categories) = files.add_up(total);
                    counts.category_bytes = categories;
                    used
                })
            }
            Err(error) => self.absent("memory_usage", error, report),
        };
        device.telemetry.memory_counts = Some(Box::new(counts));
        if let Some(memory) = &mut device.memory {
            memory.used_bytes = used;
        }
    }

    fn busy(
        &self,
        said: Result<Vec<u8>, Unreadable>,
        before: Option<Cycles>,
        now: Timestamp,
        report: &mut SourceReport,
    ) -> (Reading<f64>, Option<Cycles>) {
        let text = match said {
            Ok(text) => text,
            Err(error) => return (self.absent("tensor_engine", error, report), None),
        };
        let Some(cycles) = std::str::from_utf8(&text).ok().and_then(Cycles::parse) else {
            let detail = "pe_cntrs is no table of cycles";
            return (Reading::absent(Absence::NotUnderstood, detail), None);
        };
        let busy = match before.and_then(|before| cycles.busy_since(before)) {
            Some(share) => Reading::new(share, now),
            None => Reading::absent(Absence::NotYet, FIRST_SAMPLE),
        };
        (busy, Some(cycles))
    }

    fn reading(
        &self,
        what: &str,
        said: Result<Vec<u8>, Unreadable>,
        now: Timestamp,
        report: &mut SourceReport,
    ) -> Reading<u64> {
        match said {
            Ok(text) => match number(&text) {
                Some(number) => Reading::new(number, now),
                None => {
                    let text = String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned();
                    Reading::absent(Absence::NotUnderstood, format!("no number: {text:?}"))
                }
            },
            Err(error) => self.absent(what, error, report),
        }
    }

    fn absent<T>(&self, what: &str, error: Unreadable, report: &mut SourceReport) -> Reading<T> {
        let reason = error.absence();
        let is_news =
            !matches!(reason, Absence::Unsupported | Absence::Permission | Absence::NotYet);
        if is_news {
            report.error(format!("{}/{what}", self.name()), reason, error.to_string());
        }
        error.reading()
    }
}

/// A file that is one whole number, with or without an end of line.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// A text of one line, cut to what is shown; none for an empty one.
pub(super) fn word(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let clean = !text.is_empty() && !text.contains(char::is_control);
    clean.then(|| text.chars().take(MAX_TEXT_CHARACTERS).collect())
}
