//! Processes.

use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryUsage;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{
    Accounting, HeldDevice, HeldKind, HeldSpace, HeldUsage, MetricSample, MetricValue, Process,
    ProcessSource, ProcessUsage, RecordingFaults,
};

use super::{AnswerError, Code, known, message, reading, short};

/// A process of a machine with so many `devices`, and the descriptions of its metrics.
pub(super) fn process(
    from: message::Process,
    devices: usize,
    described: &[message::MetricDescription],
) -> Result<Process, AnswerError> {
    let faults = from.faults.unwrap_or_default();
    let held = from.devices.into_iter().map(|one| held_device(one, devices));
    let metrics = from.metrics.into_iter().map(|sample| metric(sample, described));
    Ok(Process {
        identity: from.identity.map(|one| identity(&one)).transpose()?,
        pid: from.pid,
        namespace_pid: from.namespace_pid,
        name: from.name,
        command: reading(from.command),
        uid: short(from.uid, "uid")?,
        user: reading(from.user),
        container: from.container.map(Into::into),
        state: known(from.state, "state of a process")?,
        known_by: ProcessSource::of_code(from.known_by),
        started_at: from.started_at_unix_ns.map(Timestamp),
        uptime_seconds: reading(from.uptime_seconds),
        usage: from.usage.map(|usage| Box::new(self::usage(usage))),
        devices: held.collect::<Result<_, _>>()?,
        faults: RecordingFaults {
            double_frees: faults.double_frees,
            unknown_frees: faults.unknown_frees,
            reused_live_addresses: faults.reused_live_addresses,
            unrecorded_events: faults.unrecorded_events,
        },
        metrics: metrics.collect::<Result<_, _>>()?,
    })
}

fn usage(from: message::ProcessUsage) -> ProcessUsage {
    ProcessUsage {
        cpu_ratio: reading(from.cpu_ratio),
        resident_bytes: reading(from.resident_bytes),
        threads: reading(from.threads),
        read_bytes_per_second: reading(from.read_bytes_per_second),
        written_bytes_per_second: reading(from.written_bytes_per_second),
    }
}

fn identity(from: &message::ProcessIdentity) -> Result<ProcessIdentity, AnswerError> {
    let boot_id = from.boot_id.as_slice().try_into();
    Ok(ProcessIdentity {
        boot_id: boot_id.map_err(|_| AnswerError::Impossible("boot id"))?,
        pid_namespace: from.pid_namespace,
        pid: from.pid,
        start_time_ticks: from.start_time_ticks,
    })
}

fn held_device(from: message::HeldDevice, devices: usize) -> Result<HeldDevice, AnswerError> {
    let device = usize::try_from(from.device).ok().filter(|device| *device < devices);
    Ok(HeldDevice {
        device: device.ok_or(AnswerError::Impossible("device of a process"))?,
        open_descriptors: from.open_descriptors,
        accounting: Accounting::of_code(from.accounting).unwrap_or_default(),
        kinds: from.kinds.into_iter().map(held_kind).collect::<Result<_, _>>()?,
        spaces: from.spaces.into_iter().map(held_space).collect::<Result<_, _>>()?,
        live_buffers: from.live_buffers,
        refused: from.refused,
        busy_ratio: from.busy_ratio.filter(|ratio| (0.0..=1.0).contains(ratio)),
    })
}

fn held_kind(from: message::HeldKind) -> Result<HeldKind, AnswerError> {
    let live_bytes = from.live_bytes;
    let usage = match from.recorded {
        Some(recorded) => HeldUsage::Recorded(MemoryUsage {
            live_bytes,
            live_buffers: recorded.live_buffers,
            peak_bytes: recorded.peak_bytes,
            allocations: recorded.allocations,
            allocated_bytes: recorded.allocated_bytes,
            failed_allocations: recorded.failed_allocations,
        }),
        None => HeldUsage::BytesOnly { live_bytes },
    };
    Ok(HeldKind { kind: known(from.kind, "memory kind of a process")?, usage })
}

fn held_space(from: message::HeldSpace) -> Result<HeldSpace, AnswerError> {
    Ok(HeldSpace {
        space: known(from.space, "memory space of a process")?,
        live_bytes: from.live_bytes,
        live_buffers: from.live_buffers,
    })
}

fn metric(
    from: message::MetricSample,
    described: &[message::MetricDescription],
) -> Result<MetricSample, AnswerError> {
    use message::metric_sample::Value;
    let place = usize::try_from(from.description).ok();
    let description = place
        .and_then(|place| described.get(place))
        .ok_or(AnswerError::Impossible("description of a metric"))?;
    let value = match from.value.ok_or(AnswerError::Missing("value of a metric"))? {
        Value::Counter(count) => MetricValue::Counter(count),
        Value::Gauge(value) => MetricValue::Gauge(value),
        Value::Histogram(histogram) => {
            if histogram.counts.len() != histogram.bounds.len().saturating_add(1) {
                return Err(AnswerError::Impossible("histogram"));
            }
            MetricValue::Histogram {
                bounds: histogram.bounds,
                counts: histogram.counts,
                sum: histogram.sum,
            }
        }
    };
    Ok(MetricSample {
        name: description.name.clone(),
        help: description.help.clone(),
        unit: description.unit.clone(),
        labels: from.labels.into_iter().map(|label| (label.name, label.value)).collect(),
        value,
    })
}
