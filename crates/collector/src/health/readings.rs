//! What rules can ask of a device, of a part of the machine and of a source.

use std::collections::BTreeMap;

use telltale_schema::clock::Timestamp;
use telltale_schema::device::DeviceClass;
use telltale_schema::health::FaultKind;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::{SENSORS, SensorReading, SensorValue};
use telltale_schema::snapshot::{Device, SourceStatus};

/// Whether the device had vanished: for rules of the shape `returns`.
pub(super) const VANISHED: &str = "vanished";
/// Whether the driver says that it is gone.
const LOST: &str = "lost";
/// Whether calls did not return in time: for rules of the shape `hangs`.
pub(super) const TIMED_OUT: &str = "timed_out";

/// What was read of a subject in one collection.
pub(super) trait Readings {
    /// A number.
    fn number(&self, name: &str) -> Reading<f64>;

    /// Words, or a number as a word.
    fn words(&self, name: &str) -> Reading<Vec<String>> {
        self.number(name).map(|value| vec![value.to_string()])
    }
}

/// Those of a device.
pub(super) struct DeviceReadings<'a> {
    pub(super) device: &'a Device,
    /// Whether it did not answer in time, and what is known of it is of before.
    pub(super) is_late: bool,
}

/// Those of a source.
pub(super) struct SourceReadings<'a> {
    pub(super) status: &'a SourceStatus,
    /// Whether something of it is read all the same.
    pub(super) is_read: bool,
    /// Whether a device explains it already.
    pub(super) is_explained: bool,
}

// === impl DeviceReadings ===

impl DeviceReadings<'_> {
    /// Whether nothing of it is read, for this reason.
    fn is_unread(&self, why: Absence) -> bool {
        let telemetry = &self.device.telemetry;
        let is_so = |reading: SensorReading<'_>| {
            let absence = match reading {
                SensorReading::Float(reading) => reading.absence(),
                SensorReading::Whole(reading) => reading.absence(),
            };
            absence.is_some_and(|(reason, _)| reason == why)
        };
        let mut own = SENSORS.iter().filter(|sensor| sensor.part.is_none());
        !self.device.is_read() && own.any(|sensor| sensor.reading(telemetry).is_some_and(is_so))
    }
}

impl Readings for DeviceReadings<'_> {
    fn number(&self, name: &str) -> Reading<f64> {
        let at = Timestamp(0);
        let Self { device, is_late } = self;
        let flag = |is_so: bool| Reading::new(f64::from(u8::from(is_so)), at);
        let has_vanished = device.fault(FaultKind::Vanished).is_some();
        match name {
            VANISHED => return flag(has_vanished),
            TIMED_OUT => return flag(*is_late || self.is_unread(Absence::TimedOut)),
            LOST => return flag(self.is_unread(Absence::Gone) && !has_vanished),
            _ => {}
        }
        // A graphics processor slows its link while it is idle, which is no fault.
        let slows = device.identity.other().is_some_and(|it| it.class == DeviceClass::Gpu);
        if name == "pcie_generation" && slows {
            return Reading::absent(Absence::Unsupported, "its link is slow while it is idle");
        }
        let sensor = SENSORS.iter().find(|sensor| sensor.field == name);
        let reading = sensor.and_then(|sensor| sensor.read(&device.telemetry));
        let unread = || Reading::absent(Absence::Unsupported, "it has no such sensor");
        reading.map_or_else(unread, |reading| reading.map(SensorValue::as_f64))
    }

    fn words(&self, name: &str) -> Reading<Vec<String>> {
        if name != "throttled_by" {
            return self.number(name).map(|value| vec![value.to_string()]);
        }
        let load = self.device.telemetry.load.as_ref();
        let unread = || Reading::absent(Absence::Unsupported, "its driver gives no reason");
        load.map_or_else(unread, |load| load.throttled_by.clone())
    }
}

// === impl Readings for parts ===

impl Readings for BTreeMap<&'static str, Reading<f64>> {
    fn number(&self, name: &str) -> Reading<f64> {
        let unread = || Reading::absent(Absence::Unsupported, "the kernel does not show it");
        self.get(name).cloned().unwrap_or_else(unread)
    }
}

// === impl SourceReadings ===

impl Readings for SourceReadings<'_> {
    fn number(&self, name: &str) -> Reading<f64> {
        let late = self.status.errors.iter().filter(|error| error.reason == Absence::TimedOut);
        let count = u32::try_from(late.count()).unwrap_or(u32::MAX);
        let is_meant = !self.is_explained && self.is_read == (name != TIMED_OUT);
        Reading::new(if is_meant { f64::from(count) } else { 0.0 }, Timestamp(0))
    }
}
