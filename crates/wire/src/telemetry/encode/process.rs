//! Processes. What samples of one metric have in common is written once, in a list of its own.

use std::collections::HashMap;

use telltale_schema::clock::Timestamp;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{
    Container, HeldDevice, HeldKind, HeldUsage, MetricSample, MetricValue, Process, ProcessUsage,
    RecordingFaults,
};

use super::super::message::numbers::{
    allocated_devices, container, held_device, held_kind, held_space, histogram, label,
    metric_description, metric_sample, pod, process, process_identity, process_usage,
    recorded_usage, recording_faults,
};
use super::writer::MessageWriter;

/// Name, help and unit of metrics, each once, in the order of their first sample.
#[derive(Debug, Default)]
pub(super) struct Descriptions<'a> {
    list: Vec<[&'a str; 3]>,
    places: HashMap<[&'a str; 3], u32>,
    last: usize,
}

// === impl Descriptions ===

impl<'a> Descriptions<'a> {
    /// The place of a sample's description, put at the end if it is new.
    fn place(&mut self, sample: &'a MetricSample) -> u32 {
        let description = [sample.name.as_str(), sample.help.as_str(), sample.unit.as_str()];
        // Processes of one kind tell the same metrics in the same order.
        for guess in [self.last, self.last + 1] {
            if self.list.get(guess) == Some(&description) {
                self.last = guess;
                return u32::try_from(guess).expect("counted by numbers of 32 bits below");
            }
        }
        let next = u32::try_from(self.places.len()).expect("memory holds fewer metrics");
        let place = *self.places.entry(description).or_insert(next);
        if place == next {
            self.list.push(description);
        }
        self.last = usize::try_from(place).expect("an index of the list");
        place
    }

    /// Writes the list as `field`.
    pub(super) fn write(&self, to: &mut MessageWriter, field: u32) {
        for [name, help, unit] in &self.list {
            to.message(field, |to| {
                to.text(metric_description::NAME, name);
                to.text(metric_description::HELP, help);
                to.text(metric_description::UNIT, unit);
            });
        }
    }
}

pub(super) fn process<'a>(
    to: &mut MessageWriter,
    process: &'a Process,
    descriptions: &mut Descriptions<'a>,
) {
    if let Some(known) = process.identity {
        to.message(process::IDENTITY, |to| identity(to, &known));
    }
    to.maybe(process::PID, process.pid);
    to.maybe(process::NAMESPACE_PID, process.namespace_pid);
    to.text(process::NAME, &process.name);
    to.reading(process::COMMAND, &process.command);
    to.reading(process::UID, &process.uid);
    to.reading(process::USER, &process.user);
    if let Some(container) = &process.container {
        to.message(process::CONTAINER, |to| self::container(to, container));
    }
    to.code(process::STATE, process.state);
    if let Some(source) = process.known_by {
        to.code(process::KNOWN_BY, source);
    }
    to.reading(process::UPTIME_SECONDS, &process.uptime_seconds);
    for held in &process.devices {
        to.message(process::DEVICES, |to| held_device(to, held));
    }
    to.message(process::FAULTS, |to| faults(to, &process.faults));
    for sample in process.metrics.iter() {
        let place = descriptions.place(sample);
        to.message(process::METRICS, |to| metric(to, sample, place));
    }
    if let Some(Timestamp(started)) = process.started_at {
        to.fixed(process::STARTED_AT_UNIX_NS, started);
    }
    if let Some(usage) = &process.usage {
        to.message(process::USAGE, |to| self::usage(to, usage));
    }
}

fn usage(to: &mut MessageWriter, usage: &ProcessUsage) {
    to.reading(process_usage::CPU_RATIO, &usage.cpu_ratio);
    to.reading(process_usage::RESIDENT_BYTES, &usage.resident_bytes);
    to.reading(process_usage::THREADS, &usage.threads);
    to.reading(process_usage::READ_BYTES_PER_SECOND, &usage.read_bytes_per_second);
    to.reading(process_usage::WRITTEN_BYTES_PER_SECOND, &usage.written_bytes_per_second);
}

fn identity(to: &mut MessageWriter, identity: &ProcessIdentity) {
    to.bytes(process_identity::BOOT_ID, &identity.boot_id);
    to.whole(process_identity::PID_NAMESPACE, identity.pid_namespace);
    to.whole(process_identity::PID, identity.pid);
    to.whole(process_identity::START_TIME_TICKS, identity.start_time_ticks);
}

/// Writes the fields of a container.
fn container(to: &mut MessageWriter, container: &Container) {
    to.text(container::ID, &container.id);
    to.text(container::ENGINE, &container.engine);
    if let Some(uid) = &container.pod_uid {
        to.set_bytes(container::POD_UID, uid.as_bytes());
    }
    let Some(pod) = &container.pod else { return };
    to.message(container::POD, |to| {
        to.text(pod::NAMESPACE, &pod.namespace);
        to.text(pod::NAME, &pod.name);
        if let Some(container) = &pod.container {
            to.set_bytes(pod::CONTAINER, container.as_bytes());
        }
        for one in &pod.allocated {
            to.message(pod::ALLOCATED, |to| {
                to.text(allocated_devices::RESOURCE, &one.resource);
                for id in &one.ids {
                    to.set_bytes(allocated_devices::IDS, id.as_bytes());
                }
            });
        }
    });
}

fn held_device(to: &mut MessageWriter, held: &HeldDevice) {
    to.whole(held_device::DEVICE, u64::try_from(held.device).expect("an index fits into 64 bits"));
    to.whole(held_device::OPEN_DESCRIPTORS, held.open_descriptors);
    to.code(held_device::ACCOUNTING, held.accounting);
    for one in &held.kinds {
        to.message(held_device::KINDS, |to| held_kind(to, one));
    }
    for one in &held.spaces {
        to.message(held_device::SPACES, |to| {
            to.code(held_space::SPACE, one.space);
            to.whole(held_space::LIVE_BYTES, one.live_bytes);
            to.maybe(held_space::LIVE_BUFFERS, one.live_buffers);
        });
    }
    to.maybe(held_device::LIVE_BUFFERS, held.live_buffers);
    if let Some(why) = &held.refused {
        to.set_bytes(held_device::REFUSED, why.as_bytes());
    }
    if let Some(ratio) = held.busy_ratio {
        to.number(held_device::BUSY_RATIO, ratio);
    }
}

fn held_kind(to: &mut MessageWriter, held: &HeldKind) {
    to.code(held_kind::KIND, held.kind);
    to.whole(held_kind::LIVE_BYTES, held.usage.live_bytes());
    if let HeldUsage::Recorded(usage) = &held.usage {
        to.message(held_kind::RECORDED, |to| {
            to.whole(recorded_usage::LIVE_BUFFERS, usage.live_buffers);
            to.whole(recorded_usage::PEAK_BYTES, usage.peak_bytes);
            to.whole(recorded_usage::ALLOCATIONS, usage.allocations);
            to.whole(recorded_usage::ALLOCATED_BYTES, usage.allocated_bytes);
            to.whole(recorded_usage::FAILED_ALLOCATIONS, usage.failed_allocations);
        });
    }
}

fn faults(to: &mut MessageWriter, faults: &RecordingFaults) {
    to.whole(recording_faults::DOUBLE_FREES, faults.double_frees);
    to.whole(recording_faults::UNKNOWN_FREES, faults.unknown_frees);
    to.whole(recording_faults::REUSED_LIVE_ADDRESSES, faults.reused_live_addresses);
    to.whole(recording_faults::UNRECORDED_EVENTS, faults.unrecorded_events);
}

fn metric(to: &mut MessageWriter, sample: &MetricSample, place: u32) {
    to.whole(metric_sample::DESCRIPTION, place);
    for (name, value) in &sample.labels {
        to.message(metric_sample::LABELS, |to| {
            to.text(label::NAME, name);
            to.text(label::VALUE, value);
        });
    }
    match &sample.value {
        MetricValue::Counter(count) => to.set(metric_sample::COUNTER, *count),
        MetricValue::Gauge(value) => to.number(metric_sample::GAUGE, *value),
        MetricValue::Histogram { bounds, counts, sum } => {
            to.message(metric_sample::HISTOGRAM, |to| {
                if !bounds.is_empty() {
                    to.packed(histogram::BOUNDS, |to| {
                        bounds.iter().for_each(|bound| to.number(*bound))
                    });
                }
                to.packed(histogram::COUNTS, |to| counts.iter().for_each(|count| to.whole(*count)));
                if *sum != 0.0 {
                    to.number(histogram::SUM, *sum);
                }
            })
        }
    }
}
