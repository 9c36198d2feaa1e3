//! Why a field has no value somewhere.

use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::SensorReading;
use telltale_schema::snapshot::{Device, HeldDevice, Process, ProcessUsage};

use crate::field::{Field, Get, Owner, UsageValue};
use crate::subject::{Subject, Value};

/// A reason, and for a person what exactly happened; that may be empty.
type Reason<'a> = (Absence, &'a str);

/// What there is not, where no source says that there should be.
const NO_SUCH: Reason<'static> = (Absence::Unsupported, "");

impl Field {
    /// Why [`Field::read`] gives no value there, and for a person what exactly happened (may be empty); none where it
    /// gives one.
    #[must_use]
    pub fn absence<'a>(
        &self,
        process: Option<&'a Process>,
        held: Option<&'a HeldDevice>,
        device: Option<&'a Device>,
    ) -> Option<(Absence, &'a str)> {
        let subject = Subject { process, held, device };
        (subject.value(self) == Value::Absent).then(|| subject.reason(self))
    }
}

impl<'a> Subject<'a> {
    /// Why `field`, which has no value here, has none.
    fn reason(&self, field: &Field) -> Reason<'a> {
        self.of_reading(field.get).unwrap_or_else(|| self.of_nothing(field))
    }

    /// The reason that a source gave.
    fn of_reading(&self, get: Get) -> Option<Reason<'a>> {
        if let Some(process) = self.process {
            let found = match get {
                Get::Command => process.command.absence(),
                Get::User | Get::Uid => process.uid.absence(),
                Get::Uptime => process.uptime_seconds.absence(),
                Get::Usage(value) => match process.usage.as_deref() {
                    Some(usage) => usage_reason(usage, value),
                    None => Some((Absence::NotAsked, "")),
                },
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        let device = self.device?;
        match get {
            Get::Sensor(sensor) => match sensor.reading(&device.telemetry)? {
                SensorReading::Float(reading) => reading.absence(),
                SensorReading::Whole(reading) => reading.absence(),
            },
            Get::Holders => device.holders.absence(),
            Get::Used(space) => self.of_space(space, [true, false]),
            Get::Capacity(space) => self.of_space(space, [false, true]),
            Get::Free(space) | Get::UsedShare(space) => self.of_space(space, [true, true]),
            _ => None,
        }
    }

    /// Why a device's use or capacity of a space is not known.
    fn of_space(&self, space: MemorySpace, [used, capacity]: [bool; 2]) -> Option<Reason<'a>> {
        let usage = self.device?.space(space)?;
        let of = |reading: &'a Reading<u64>, wanted: bool| reading.absence().filter(|_| wanted);
        of(&usage.used_bytes, used).or_else(|| of(&usage.capacity_bytes, capacity))
    }

    /// The reason where no source gave one.
    fn of_nothing(&self, field: &Field) -> Reason<'a> {
        match self.held {
            Some(held) if field.is_by_device() && field.owner == Owner::Process => {
                (Absence::Unknown, held.refused.as_deref().unwrap_or_default())
            }
            _ => NO_SUCH,
        }
    }
}

fn usage_reason(usage: &ProcessUsage, value: UsageValue) -> Option<Reason<'_>> {
    match value {
        UsageValue::Cpu => usage.cpu_ratio.absence(),
        UsageValue::Resident => usage.resident_bytes.absence(),
        UsageValue::Threads => usage.threads.absence(),
        UsageValue::DiskRead => usage.read_bytes_per_second.absence(),
        UsageValue::DiskWritten => usage.written_bytes_per_second.absence(),
    }
}
