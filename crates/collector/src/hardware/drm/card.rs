//! One card: which device it is, its files, and what they say.

use std::collections::BTreeMap;
use std::sync::Arc;

use telltale_schema::chip::PciAddress;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Load, Telemetry};

use super::fields::{self, FIELDS, SensorFiles, SensorLocation};
use super::pci_of;
use crate::rate::FIRST_SAMPLE;
use crate::report::SourceReport;
use crate::source::{DeviceReading, DriverMemory};
use crate::tree::{Directory, Unreadable};

/// The longest text of a card that is kept, in characters.
const MAX_TEXT_CHARACTERS: usize = 128;

/// What stands where a sleeping device's sensors would be.
const ASLEEP: &str = "the device sleeps, and reading its sensors would wake it up";

/// A device of one of the classes.
#[derive(Debug, Clone)]
pub(super) struct Card {
    /// `card0`, `accel0`.
    pub(super) name: String,
    pub(super) group: u32,
    number: u32,
    pub(super) pci: Option<PciAddress>,
    /// The last part of the device's path: its PCI address, or the platform's name for it.
    place: String,
    driver: Option<String>,
    is_accelerator: bool,
    /// The names of its device nodes.
    pub(super) nodes: Vec<String>,
    class: Arc<Directory>,
    device: Arc<Directory>,
}

/// What a card's files said.
#[derive(Debug)]
pub(super) struct CardFiles {
    pub(super) asleep: bool,
    texts: BTreeMap<&'static str, String>,
    readings: Vec<Result<f64, Unreadable>>,
}

/// Counters of the scan before, from which a rate is made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    at_ns: u64,
    energy: Option<f64>,
    busy: Option<f64>,
}

// === impl Card ===

impl Card {
    /// The card of this number, if it is one that computes.
    pub(super) fn open(class: &Directory, prefix: &str, number: u32, group: u32) -> Option<Self> {
        let name = format!("{prefix}{number}");
        let own = class.directory(&name).ok()?;
        let device = own.directory("device").ok()?;
        let target = own.link("device").ok()?;
        let place = target.file_name()?.to_str()?.to_owned();
        let driver = device.link("driver").ok();
        let driver = driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let is_accelerator = prefix == "accel";
        let nodes = match is_accelerator {
            true => vec![name.clone()],
            false => device.directory("drm").and_then(|drm| drm.names()).unwrap_or_default(),
        };
        let computes = is_accelerator || nodes.iter().any(|node| node.starts_with("renderD"));
        let left_out = driver.as_deref().is_some_and(|it| fields::LEFT_OUT.contains(&it));
        (computes && !left_out).then(|| Self {
            pci: pci_of(own.link("device")),
            name,
            group,
            number,
            place,
            driver,
            is_accelerator,
            nodes,
            class: Arc::new(own),
            device: Arc::new(device),
        })
    }

    /// Reads its files, unless it sleeps.
    pub(super) fn read(&self) -> CardFiles {
        let device = &self.device;
        let mut texts = BTreeMap::new();
        let mut keep = |name: &'static str| {
            let text = device.attribute(name).ok().and_then(|bytes| word(&bytes));
            if let Some(text) = text {
                texts.insert(name, text);
            }
        };
        // What the kernel knows without asking the device.
        keep(fields::VENDOR);
        keep(fields::DEVICE);
        let status = device.attribute(fields::RUNTIME_STATUS);
        let asleep = status.is_ok_and(|text| text.starts_with(b"suspend"));
        if asleep {
            let readings = FIELDS.iter().map(|_| Err(Unreadable::Errno(rustix::io::Errno::BUSY)));
            return CardFiles { asleep, texts, readings: readings.collect() };
        }
        for name in [fields::PRODUCT, fields::UNIQUE_ID, fields::SERIAL, fields::VBIOS] {
            keep(name);
        }
        let hwmon = first_hwmon(device);
        let readings = FIELDS.iter().map(|field| self.field(field, hwmon.as_ref())).collect();
        CardFiles { asleep, texts, readings }
    }

    /// The first file of a value that is there. A file that is there and fails is the answer.
    fn field(&self, field: &SensorFiles, hwmon: Option<&Directory>) -> Result<f64, Unreadable> {
        let mut missing = Unreadable::Errno(rustix::io::Errno::NOENT);
        for file in field.files {
            let directory = match file.place {
                SensorLocation::Device => Some(&*self.device),
                SensorLocation::Class => Some(&*self.class),
                SensorLocation::Hwmon => hwmon,
            };
            let Some(directory) = directory else { continue };
            match directory.attribute(file.path) {
                Ok(text) => {
                    let number = number(&text);
                    return Ok(number.map_or(f64::NAN, |number| number / file.divisor));
                }
                Err(error) if error.absence() == Absence::Unsupported => missing = error,
                Err(error) => return Err(error),
            }
        }
        Err(missing)
    }

    fn identity(&self, texts: &BTreeMap<&'static str, String>) -> OtherIdentity {
        let text = |name| texts.get(name).cloned();
        let known = |list: &[(&str, &str)], key: &str| {
            list.iter().find(|(id, _)| *id == key).map(|(_, vendor)| (*vendor).to_owned())
        };
        let by_id = text(fields::VENDOR).map(|id| known(&fields::PCI_VENDORS, &id).unwrap_or(id));
        let by_driver = || known(&fields::DRIVER_VENDORS, self.driver.as_deref()?);
        let vendor = by_id.or_else(by_driver).unwrap_or_else(|| String::from("unknown"));
        let class = match self.is_accelerator {
            true => DeviceClass::Accelerator,
            false => DeviceClass::Gpu,
        };
        let model =
            text(fields::PRODUCT).or_else(|| Some(format!("{vendor} {}", text(fields::DEVICE)?)));
        OtherIdentity {
            model,
            driver: self.driver.clone(),
            driver_ordinal: Some(self.number),
            pci: self.pci,
            uuid: text(fields::UNIQUE_ID),
            serial: text(fields::SERIAL),
            ..OtherIdentity::new(self.place.clone(), vendor, class)
        }
    }

    /// Whether an earlier reading is of this card.
    pub(super) fn is(&self, device: &DeviceReading) -> bool {
        device.identity.display_id() == self.place
    }

    /// The device when it never answered.
    pub(super) fn silent(&self, detail: &str) -> (DeviceReading, Before) {
        let absent = Absence::TimedOut;
        let mut device = DeviceReading::new(self.identity(&BTreeMap::new()));
        device.telemetry = Telemetry::absent(absent, detail);
        device.telemetry.load = Some(Box::new(Load::absent(absent, detail)));
        (device, Before::default())
    }

    /// What the files say.
    pub(super) fn reported(
        &self,
        files: &CardFiles,
        before: Option<Before>,
        (now, now_ns): (Timestamp, u64),
        report: &mut SourceReport,
    ) -> (DeviceReading, Before) {
        let mut reader = FieldReader { card: self, files, now, report };
        let mut telemetry = Telemetry::absent(Absence::Unsupported, "the driver does not say");
        telemetry.temperature_celsius = reader.field(fields::TEMPERATURE);
        telemetry.temperature_limit_celsius = reader.field(fields::TEMPERATURE_LIMIT);
        telemetry.power_watts = reader.field(fields::POWER);
        telemetry.power_limit_watts = reader.field(fields::POWER_LIMIT);
        telemetry.voltage_volts = reader.field(fields::VOLTAGE);
        telemetry.aiclk_hertz = whole(reader.field(fields::CLOCK));
        telemetry.fan_revolutions_per_minute = whole(reader.field(fields::FAN));
        let mut load = Load::absent(Absence::Unsupported, "the driver does not say");
        load.busy_ratio = reader.field(fields::BUSY);
        load.memory_busy_ratio = reader.field(fields::MEMORY_BUSY);
        load.memory_clock_hertz = whole(reader.field(fields::MEMORY_CLOCK));
        let counters = Before {
            at_ns: now_ns,
            energy: reader.field(fields::ENERGY).value().copied(),
            busy: reader.field(fields::BUSY_TIME).value().copied(),
        };
        let rate = |since: fn(Before) -> Option<f64>| counters.rate(before, since);
        if let (None, Some(_)) = (telemetry.power_watts.value(), counters.energy) {
            telemetry.power_watts = rated(rate(|of| of.energy), now, 0.0..=3000.0);
        }
        if let (None, Some(_)) = (load.busy_ratio.value(), counters.busy) {
            let share = rate(|of| of.busy).map(|share| share.min(1.0));
            load.busy_ratio = rated(share, now, 0.0..=1.0);
        }
        if let Some(version) = files.texts.get(fields::VBIOS) {
            telemetry.firmware.insert(fields::VBIOS.to_owned(), version.clone());
        }
        telemetry.load = Some(Box::new(load));
        let memory = DriverMemory {
            used_bytes: whole(reader.field(fields::VRAM_USED)),
            capacity_bytes: whole(reader.field(fields::VRAM_TOTAL)),
            processes: Vec::new(),
        };
        let identity = self.identity(&files.texts);
        let device =
            DeviceReading { telemetry, memory: Some(memory), ..DeviceReading::new(identity) };
        (device, counters)
    }
}

/// One card's files, and where to complain of them.
struct FieldReader<'a> {
    card: &'a Card,
    files: &'a CardFiles,
    now: Timestamp,
    report: &'a mut SourceReport,
}

impl FieldReader<'_> {
    fn field(&mut self, which: usize) -> Reading<f64> {
        if self.files.asleep {
            return Reading::absent(Absence::NotAsked, ASLEEP);
        }
        let SensorFiles { files, least, most } = FIELDS[which];
        match self.files.readings[which] {
            Ok(value) if (least..=most).contains(&value) => Reading::new(value, self.now),
            Ok(value) => Reading::absent(Absence::Implausible, value.to_string()),
            Err(error) => {
                let reason = error.absence();
                // Drivers say so of what the firmware of this one card lacks.
                let is_news =
                    !matches!(reason, Absence::Unsupported | Absence::Permission | Absence::NotYet);
                if is_news {
                    let subject = format!("{}/{}", self.card.name, files[0].path);
                    self.report.error(subject, reason, error.to_string());
                }
                error.reading()
            }
        }
    }
}

// === impl Before ===

impl Before {
    /// How much a counter gained a second since the scan before; none where it went back.
    #[allow(clippy::cast_precision_loss)]
    fn rate(self, before: Option<Self>, of: fn(Self) -> Option<f64>) -> Option<f64> {
        let before = before?;
        let seconds = self.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0)? as f64 / 1e9;
        let gained = of(self)? - of(before)?;
        (gained >= 0.0).then_some(gained / seconds)
    }
}

fn rated(
    rate: Option<f64>,
    now: Timestamp,
    plausible: std::ops::RangeInclusive<f64>,
) -> Reading<f64> {
    match rate {
        Some(rate) => Reading::new(rate, now).keep_if(|rate| plausible.contains(rate)),
        None => Reading::absent(Absence::NotYet, FIRST_SAMPLE),
    }
}

/// The device's first hwmon directory.
fn first_hwmon(device: &Directory) -> Option<Directory> {
    let hwmon = device.directory("hwmon").ok()?;
    let mut names = hwmon.names().ok()?;
    names.sort_unstable();
    names.iter().find_map(|name| hwmon.directory(name).ok())
}

/// A value without fractions.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(reading: Reading<f64>) -> Reading<u64> {
    reading.map(|value| value.round() as u64)
}

#[allow(clippy::cast_precision_loss)]
fn number(text: &[u8]) -> Option<f64> {
    let number: i64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    Some(number as f64)
}

/// A text of one line, cut to what is shown; none for an empty one.
fn word(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let clean = !text.is_empty() && !text.contains(char::is_control);
    clean.then(|| text.chars().take(MAX_TEXT_CHARACTERS).collect())
}
