//! What a query is asked of: a process and what it has on one device, or a device alone.

use std::borrow::Cow;

use telltale_schema::calendar;
use telltale_schema::memory::MemoryKind;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, HeldDevice, HeldUsage, Process, ProcessUsage, SpaceUsage};

use crate::field::{Field, Get, UsageValue};

/// One row of a view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) process: Option<&'a Process>,
    pub(crate) held: Option<&'a HeldDevice>,
    pub(crate) device: Option<&'a Device>,
}

/// What a field holds there.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A text, as the machine tells it: it may hold anything.
    Text(Cow<'a, str>),
    /// In the base unit.
    Number(f64),
    /// It is unknown, or there is no such thing.
    Absent,
}

impl<'a> Subject<'a> {
    /// A device, for any user.
    pub(crate) fn of_device_alone(device: &'a Device) -> Self {
        Self { process: None, held: None, device: Some(device) }
    }

    /// What `field` holds here.
    pub(crate) fn value(&self, field: &Field) -> Value<'a> {
        self.of_process(field.get)
            .or_else(|| self.of_held(field.get))
            .or_else(|| self.of_device(field.get))
            .unwrap_or(Value::Absent)
    }

    fn of_process(&self, get: Get) -> Option<Value<'a>> {
        let process = self.process?;
        let container = process.container.as_ref();
        let pod = container.and_then(|container| container.pod.as_ref());
        match get {
            Get::Pid => process.pid.map(Value::from),
            Get::NamespacePid => process.namespace_pid.map(Value::from),
            Get::Name => Some(Value::from(&*process.name)),
            Get::Command => process.command.value().map(|text| Value::from(&**text)),
            Get::User => match process.user.value() {
                Some(user) => Some(Value::from(&**user)),
                None => process.uid.value().map(|uid| Value::Text(uid.to_string().into())),
            },
            Get::Uid => process.uid.value().map(|uid| Value::from(*uid)),
            Get::State => Some(Value::from(process.state.name())),
            Get::KnownBy => process.known_by.map(|source| Value::from(source.name())),
            Get::Uptime => process.uptime_seconds.value().map(|seconds| Value::Number(*seconds)),
            Get::Started => {
                process.started_at.map(|started| Value::Text(calendar::format(started).into()))
            }
            Get::Usage(value) => self::usage(process.usage.as_deref()?, value).map(Value::Number),
            Get::Container => container.map(|container| Value::from(&*container.id)),
            Get::Engine => container.map(|container| Value::from(&*container.engine)),
            Get::Pod => pod.map(|pod| Value::from(&*pod.name)),
            Get::Namespace => pod.map(|pod| Value::from(&*pod.namespace)),
            Get::Programs => process.programs().map(|programs| number(programs.cached)),
            Get::HitRatio => process.programs()?.hit_ratio().map(Value::Number),
            _ => None,
        }
    }

    fn of_held(&self, get: Get) -> Option<Value<'a>> {
        let held = self.held?;
        let recorded = || held.kinds.iter().filter_map(|one| one.usage.recorded());
        let known = held.accounting.of_nothing();
        let is_recorded = matches!(known, Some(HeldUsage::Recorded(_)));
        match get {
            Get::Accounting => Some(Value::from(held.accounting.name())),
            Get::HeldSpace(space) => held.live_bytes(space).map(number),
            Get::HeldKind(kind) => held_kind(held, kind).map(number),
            Get::HeldBusy => held.busy_ratio.map(Value::Number),
            Get::HeldBuffers => held.live_buffers.map(number),
            Get::HeldPeak if is_recorded => {
                Some(number(recorded().map(|usage| usage.peak_bytes).max().unwrap_or(0)))
            }
            Get::HeldAllocations if is_recorded => {
                Some(number(sum(recorded().map(|usage| usage.allocations))))
            }
            Get::HeldFailed if is_recorded => {
                Some(number(sum(recorded().map(|usage| usage.failed_allocations))))
            }
            _ => None,
        }
    }

    fn of_device(&self, get: Get) -> Option<Value<'a>> {
        let device = self.device?;
        let telemetry = &device.telemetry;
        match get {
            Get::Device => Some(Value::from(&*device.id)),
            Get::Board => Some(Value::from(device.identity.product())),
            Get::Vendor => Some(Value::from(device.identity.vendor())),
            Get::Model => device.identity.other()?.model.as_deref().map(Value::from),
            Get::Architecture => device.architecture().map(|it| Value::from(it.code_name())),
            Get::Pci => device.identity.pci().map(|pci| Value::Text(pci.to_string().into())),
            Get::Sensor(sensor) => sensor.value(telemetry).map(|it| Value::Number(it.as_f64())),
            Get::Holders => device
                .holders
                .value()
                .map(|holders| number(u64::try_from(holders.len()).unwrap_or(u64::MAX))),
            Get::Faults => device.fault_names().map(|names| Value::Text(names.into())),
            Get::Health => Some(Value::from(device.health().state.name())),
            Get::HealthCause => device.health().cause.map(|it| Value::from(&*it.detail)),
            Get::HealthSince => {
                let since = device.health().cause.map(|it| calendar::format(it.since));
                since.map(|since| Value::Text(since.into()))
            }
            Get::Used(space) => used(device.space(space)?).map(number),
            Get::Capacity(space) => capacity(device.space(space)?).map(number),
            Get::Free(space) => {
                let usage = device.space(space)?;
                Some(number(capacity(usage)?.saturating_sub(used(usage)?)))
            }
            Get::UsedShare(space) => share(device.space(space)?),
            _ => None,
        }
    }
}

fn usage(usage: &ProcessUsage, value: UsageValue) -> Option<f64> {
    let whole = |reading: &Reading<u64>| reading.value().map(|value| *value as f64);
    match value {
        UsageValue::Cpu => usage.cpu_ratio.value().copied(),
        UsageValue::Resident => whole(&usage.resident_bytes),
        UsageValue::Threads => whole(&usage.threads),
        UsageValue::DiskRead => whole(&usage.read_bytes_per_second),
        UsageValue::DiskWritten => whole(&usage.written_bytes_per_second),
    }
}

fn held_kind(held: &HeldDevice, kind: MemoryKind) -> Option<u64> {
    let found = held.kinds.iter().find(|one| one.kind == kind).map(|one| one.usage);
    found.or_else(|| held.accounting.of_nothing()).map(|usage| usage.live_bytes())
}

fn used(usage: &SpaceUsage) -> Option<u64> {
    usage.used_bytes.value().copied()
}

fn capacity(usage: &SpaceUsage) -> Option<u64> {
    usage.capacity_bytes.value().copied()
}

fn share<'a>(usage: &SpaceUsage) -> Option<Value<'a>> {
    let (used, capacity) = (used(usage)?, capacity(usage)?);
    (capacity > 0).then(|| Value::Number(used as f64 / capacity as f64))
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A number of a snapshot. Beyond 2^53 it is rounded, as the number in the query is.
fn number<'a>(number: u64) -> Value<'a> {
    Value::Number(number as f64)
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}
