//! Processes. What samples of one metric have in common is written once, in a list of its own.

use std::collections::HashMap;

use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{
    Container, HeldDevice, HeldKind, HeldUsage, MetricSample, MetricValue, Process, RecordingFaults,
};

use super::writer::Writer;

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
    pub(super) fn write(&self, to: &mut Writer, field: u64) {
        for [name, help, unit] in &self.list {
            to.message(field, |to| {
                to.text(1, name);
                to.text(2, help);
                to.text(3, unit);
            });
        }
    }
}

pub(super) fn process<'a>(
    to: &mut Writer,
    process: &'a Process,
    descriptions: &mut Descriptions<'a>,
) {
    if let Some(known) = process.identity {
        to.message(1, |to| identity(to, &known));
    }
    to.maybe(2, process.pid);
    to.maybe(3, process.namespace_pid);
    to.text(4, &process.name);
    to.reading(5, &process.command);
    to.reading(6, &process.uid);
    to.reading(7, &process.user);
    if let Some(container) = &process.container {
        to.message(8, |to| self::container(to, container));
    }
    to.code(9, process.state);
    if let Some(source) = process.known_by {
        to.code(10, source);
    }
    to.reading(11, &process.uptime_seconds);
    for held in &process.devices {
        to.message(12, |to| held_device(to, held));
    }
    to.message(13, |to| faults(to, &process.faults));
    for sample in process.metrics.iter() {
        let place = descriptions.place(sample);
        to.message(14, |to| metric(to, sample, place));
    }
}

fn identity(to: &mut Writer, identity: &ProcessIdentity) {
    to.bytes(1, &identity.boot_id);
    to.whole(2, identity.pid_namespace);
    to.whole(3, identity.pid);
    to.whole(4, identity.start_time_ticks);
}

/// Writes the fields of a container.
fn container(to: &mut Writer, container: &Container) {
    to.text(1, &container.id);
    to.text(2, &container.engine);
    if let Some(uid) = &container.pod_uid {
        to.set_bytes(3, uid.as_bytes());
    }
    let Some(pod) = &container.pod else { return };
    to.message(4, |to| {
        to.text(1, &pod.namespace);
        to.text(2, &pod.name);
        if let Some(container) = &pod.container {
            to.set_bytes(3, container.as_bytes());
        }
        for one in &pod.allocated {
            to.message(4, |to| {
                to.text(1, &one.resource);
                for id in &one.ids {
                    to.set_bytes(2, id.as_bytes());
                }
            });
        }
    });
}

fn held_device(to: &mut Writer, held: &HeldDevice) {
    to.whole(1, u64::try_from(held.device).expect("an index fits into 64 bits"));
    to.whole(2, held.open_descriptors);
    to.code(3, held.accounting);
    for one in &held.kinds {
        to.message(4, |to| held_kind(to, one));
    }
    for one in &held.spaces {
        to.message(5, |to| {
            to.code(1, one.space);
            to.whole(2, one.live_bytes);
            to.maybe(3, one.live_buffers);
        });
    }
    to.maybe(6, held.live_buffers);
    if let Some(why) = &held.refused {
        to.set_bytes(7, why.as_bytes());
    }
}

fn held_kind(to: &mut Writer, held: &HeldKind) {
    to.code(1, held.kind);
    to.whole(2, held.usage.live_bytes());
    if let HeldUsage::Recorded(usage) = &held.usage {
        to.message(3, |to| {
            to.whole(1, usage.live_buffers);
            to.whole(2, usage.peak_bytes);
            to.whole(3, usage.allocations);
            to.whole(4, usage.allocated_bytes);
            to.whole(5, usage.failed_allocations);
        });
    }
}

fn faults(to: &mut Writer, faults: &RecordingFaults) {
    to.whole(1, faults.double_frees);
    to.whole(2, faults.unknown_frees);
    to.whole(3, faults.reused_live_addresses);
    to.whole(4, faults.unrecorded_events);
}

fn metric(to: &mut Writer, sample: &MetricSample, place: u32) {
    to.whole(1, place);
    for (name, value) in &sample.labels {
        to.message(2, |to| {
            to.text(1, name);
            to.text(2, value);
        });
    }
    match &sample.value {
        MetricValue::Counter(count) => to.set(3, *count),
        MetricValue::Gauge(value) => to.number(4, *value),
        MetricValue::Histogram { bounds, counts, sum } => to.message(5, |to| {
            if !bounds.is_empty() {
                to.packed(1, |to| bounds.iter().for_each(|bound| to.number(*bound)));
            }
            to.packed(2, |to| counts.iter().for_each(|count| to.whole(*count)));
            if *sum != 0.0 {
                to.number(3, *sum);
            }
        }),
    }
}
