//! The machine itself as a device: its processors' time and its memory.
//!
//! From `/proc/meminfo`, the first line of `/proc/stat` and the processors' hwmon, as the kernel's
//! `Documentation/filesystems/proc.rst` and `Documentation/hwmon/sysfs-interface.rst` describe them.
//! It is no accelerator and is shown where there is none, so that the tool tells something on any
//! Linux machine.

use std::sync::Arc;
use std::time::Duration;

use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Load, Telemetry};

use super::inquiry::Inquiry;
use crate::processor_time::ProcessorRate;
use crate::rate::SampledAt;
use crate::report::SourceReport;
use crate::source::{DeviceReading, DriverMemory, HardwareSource, SourceReading};
use crate::timeout::TaskName;
use crate::tree::{Directory, Tree, Unreadable};

/// The name of this source in a snapshot.
const SOURCE: &str = "host";

/// The beginning of `/proc/stat` that has the sum over all processors.
const MAX_STAT_BYTES: usize = 512;
/// The beginning of `/proc/cpuinfo` that has the first processor.
const MAX_CPUINFO_BYTES: usize = 4096;
/// Sensor chips that are checked.
const MAX_HWMONS: usize = 64;
/// Drivers whose first temperature is that of the processors.
const PROCESSOR_SENSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
/// The longest model name that is shown, in characters.
const MAX_MODEL_CHARACTERS: usize = 128;

/// Reads the machine itself, periodically if asked.
pub struct HostSource {
    inquiry: Inquiry,
    busy: ProcessorRate,
}

type Text = Result<Vec<u8>, Unreadable>;

/// What the files said.
struct Texts {
    meminfo: Text,
    stat: Text,
    cpuinfo: Text,
    millidegrees: Option<Vec<u8>>,
}

// === impl HostSource ===

impl HostSource {
    /// A source for the machine under `tree`, all of whose files together may take `timeout`.
    pub fn new(tree: Arc<Tree>, clock: Arc<dyn Clock>, timeout: Duration) -> Self {
        Self {
            inquiry: Inquiry::new(tree, clock, (timeout, timeout)),
            busy: ProcessorRate::default(),
        }
    }

    fn device(
        &mut self,
        texts: &Texts,
        total_bytes: u64,
        report: &mut SourceReport,
    ) -> DeviceReading {
        let now = self.inquiry.clock.now();
        let meminfo = texts.meminfo.as_deref().unwrap_or_default();
        let used_bytes = match kibibytes(meminfo, "MemAvailable") {
            Some(free) => Reading::new(total_bytes.saturating_sub(free), now),
            None => Reading::absent(Absence::Unsupported, "a kernel before 3.14"),
        };
        let identity = OtherIdentity {
            model: texts.cpuinfo.as_deref().ok().and_then(model),
            ..OtherIdentity::new("host", "host", DeviceClass::Host)
        };
        let unsaid = "not measured of the machine itself";
        let mut load = Load::absent(Absence::Unsupported, unsaid);
        load.busy_ratio = self.busy(&texts.stat, now, report);
        let celsius = texts.millidegrees.as_deref().and_then(number);
        let temperature_celsius = match celsius {
            Some(millidegrees) => Reading::new(millidegrees / 1e3, now)
                .keep_if(|celsius| (-40.0..=150.0).contains(celsius)),
            None => Reading::absent(Absence::Unsupported, "no driver for it is loaded"),
        };
        DeviceReading {
            telemetry: Telemetry {
                temperature_celsius,
                load: Some(Box::new(load)),
                ..Telemetry::absent(Absence::Unsupported, unsaid)
            },
            holders: Reading::absent(Absence::Unsupported, "every process uses the machine"),
            memory: Some(DriverMemory {
                used_bytes,
                capacity_bytes: Reading::new(total_bytes, now),
                processes: Vec::new(),
            }),
            ..DeviceReading::new(identity)
        }
    }

    /// The share of the processors' time since the last scan that was not idle.
    fn busy(&mut self, stat: &Text, now: Timestamp, report: &mut SourceReport) -> Reading<f64> {
        let moment = SampledAt { at: now, monotonic_ns: self.inquiry.clock.monotonic_ns() };
        let stat = stat.as_deref().map_err(|error| {
            report.error("proc/stat", error.absence(), error.to_string());
            error.reading()
        });
        let busy = self.busy.follow(stat, moment);
        if let Some((Absence::NotUnderstood, detail)) = busy.absence() {
            report.error("proc/stat", Absence::NotUnderstood, detail);
        }
        busy
    }
}

impl HardwareSource for HostSource {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self) -> SourceReading {
        let mut inquiry = self.inquiry.begin();
        let report = &mut inquiry.report;
        let task = (TaskName { group: 0, item: 0 }, Arc::clone(&self.inquiry.tree));
        let texts = self.inquiry.run(vec![task], Texts::read).pop().flatten();
        let mut absent = None;
        let mut devices = Vec::new();
        match texts {
            Some(texts) => match &texts.meminfo {
                Ok(meminfo) => match kibibytes(meminfo, "MemTotal").filter(|bytes| *bytes > 0) {
                    Some(total) => devices.push(self.device(&texts, total, report)),
                    None => {
                        let detail = "it does not say how much memory there is";
                        report.error("proc/meminfo", Absence::NotUnderstood, detail);
                    }
                },
                Err(error) if error.is_missing() => {
                    let place = self.inquiry.tree.display("proc/meminfo");
                    absent = Some(format!("there is no {place}"));
                }
                Err(error) => report.error("proc/meminfo", error.absence(), error.to_string()),
            },
            None => report.error("proc", Absence::TimedOut, "the kernel did not answer in time"),
        }
        self.inquiry.reported(inquiry, SOURCE, devices, absent)
    }
}

// === impl Texts ===

impl Texts {
    fn read(tree: &Arc<Tree>) -> Self {
        let root = tree.root();
        Self {
            meminfo: root.attribute("proc/meminfo"),
            stat: root.beginning("proc/stat", MAX_STAT_BYTES),
            cpuinfo: root.beginning("proc/cpuinfo", MAX_CPUINFO_BYTES),
            millidegrees: millidegrees(root),
        }
    }
}

/// The temperature of the first sensor chip that is the processors'.
fn millidegrees(root: &Directory) -> Option<Vec<u8>> {
    let class = root.directory("sys/class/hwmon").ok()?;
    let mut names = class.names().ok()?;
    names.sort_unstable();
    names.truncate(MAX_HWMONS);
    names.iter().find_map(|name| {
        let hwmon = class.directory(name).ok()?;
        let driver = hwmon.attribute("name").ok()?;
        let driver = std::str::from_utf8(&driver).ok()?.trim();
        PROCESSOR_SENSORS.contains(&driver).then(|| hwmon.attribute("temp1_input").ok())?
    })
}

/// A line of `/proc/meminfo` in bytes.
pub(crate) fn kibibytes(text: &[u8], name: &str) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let number: u64 = rest.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    number.checked_mul(1024)
}

fn number(text: &[u8]) -> Option<f64> {
    let number: i64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    i32::try_from(number).ok().map(f64::from)
}

/// What the first processor is called.
fn model(cpuinfo: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(cpuinfo);
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.trim();
    (!name.is_empty()).then(|| name.chars().take(MAX_MODEL_CHARACTERS).collect())
}

#[cfg(test)]
mod tests {
    use super::kibibytes;

    #[test]
    fn memory_is_in_kibibytes_and_nothing_else() {
        let text = b"MemTotal:       24684096 kB\nMemFree: 1 kB\nMemTotalX: 5 kB\n";
        assert_eq!(kibibytes(text, "MemTotal"), Some(24_684_096 * 1024));
        assert_eq!(kibibytes(text, "MemAvailable"), None);
        assert_eq!(kibibytes(b"MemTotal: 5 MB\n", "MemTotal"), None);
        assert_eq!(kibibytes(b"MemTotal: 18446744073709551615 kB\n", "MemTotal"), None);
    }
}
