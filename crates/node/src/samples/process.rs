//! What one process has, as entries of the row it is in.

use std::borrow::Cow;
use std::collections::HashMap;

use telltale_schema::memory::MemoryKind;
use telltale_schema::metric::definitions::{
    HOLDER_MEMORY_LIVE_BYTES, HOLDER_MEMORY_PEAK_BYTES, HOLDER_START_TIME_SECONDS,
    PROCESS_BUSY_RATIO, PROCESS_DOUBLE_FREES_TOTAL, PROCESS_INFO,
    PROCESS_MEMORY_ALLOCATED_BYTES_TOTAL, PROCESS_MEMORY_ALLOCATIONS_TOTAL, PROCESS_MEMORY_BUFFERS,
    PROCESS_MEMORY_FAILED_ALLOCATIONS_TOTAL, PROCESS_MEMORY_LIVE_BYTES, PROCESS_MEMORY_PEAK_BYTES,
    PROCESS_POD_INFO, PROCESS_REUSED_LIVE_ADDRESSES_TOTAL, PROCESS_THROTTLED,
    PROCESS_UNKNOWN_FREES_TOTAL, PROCESS_UNRECORDED_EVENTS_TOTAL, PROCESS_UPTIME_SECONDS,
    PROCESSES,
};
use telltale_schema::metric::{DEFINITIONS, MetricKind, Scope};
use telltale_schema::snapshot::{
    HeldDevice, MetricSample, MetricValue, Process, ProcessSource, ProcessState, RecordingFaults,
    Snapshot,
};
use telltale_wire::exposition::Number;

use super::applications::Applications;
use super::entry::{Joining, SampleEntry};
use super::label_sets::SetId;
use super::{SampleOptions, SampleValue, Samples, device, place};

/// The longest value of a label that is taken from a process's command.
const MAX_COMMAND_BYTES: usize = 256;

/// Where the metrics are that come from the snapshot's own fields. What a process says of these
/// itself is not believed.
struct Fields {
    processes: usize,
    info: usize,
    pod: usize,
    uptime: usize,
    busy: usize,
    /// Values of memory: live bytes, and what only a process that records has, in this order.
    memory: [usize; 6],
    /// What went wrong in recording.
    faults: [usize; 4],
    /// What the biggest holders of devices have.
    holders: [usize; 3],
}

impl Fields {
    fn new() -> Self {
        Self {
            processes: place(PROCESSES),
            info: place(PROCESS_INFO),
            pod: place(PROCESS_POD_INFO),
            uptime: place(PROCESS_UPTIME_SECONDS),
            busy: place(PROCESS_BUSY_RATIO),
            memory: [
                place(PROCESS_MEMORY_LIVE_BYTES),
                place(PROCESS_MEMORY_BUFFERS),
                place(PROCESS_MEMORY_PEAK_BYTES),
                place(PROCESS_MEMORY_ALLOCATIONS_TOTAL),
                place(PROCESS_MEMORY_ALLOCATED_BYTES_TOTAL),
                place(PROCESS_MEMORY_FAILED_ALLOCATIONS_TOTAL),
            ],
            faults: [
                place(PROCESS_DOUBLE_FREES_TOTAL),
                place(PROCESS_UNKNOWN_FREES_TOTAL),
                place(PROCESS_REUSED_LIVE_ADDRESSES_TOTAL),
                place(PROCESS_UNRECORDED_EVENTS_TOTAL),
            ],
            holders: [
                place(HOLDER_MEMORY_LIVE_BYTES),
                place(HOLDER_MEMORY_PEAK_BYTES),
                place(HOLDER_START_TIME_SECONDS),
            ],
        }
    }

    fn has(&self, family: usize) -> bool {
        [self.processes, self.info, self.pod, self.uptime, self.busy].contains(&family)
            || self.memory.contains(&family)
            || self.faults.contains(&family)
            || self.holders.contains(&family)
    }
}

/// Makes entries of the processes of one snapshot.
pub(super) struct Making<'s, 'a> {
    pub(super) samples: &'s mut Samples<'a>,
    pub(super) applications: Applications<'a>,
    options: SampleOptions,
    devices: Vec<SetId>,
    by_device_id: HashMap<&'a str, SetId>,
    kinds: [SetId; MemoryKind::ALL.len()],
    fields: Fields,
}

impl<'s, 'a> Making<'s, 'a> {
    pub(super) fn new(
        samples: &'s mut Samples<'a>,
        snapshot: &'a Snapshot,
        options: SampleOptions,
    ) -> Self {
        let devices = device::labels(samples, &snapshot.devices);
        let named = snapshot.devices.iter().map(|device| device.id.as_str()).zip(&devices);
        let by_device_id = named.map(|(id, set)| (id, *set)).collect();
        let kinds = MemoryKind::ALL.map(|kind| samples.sets.one("kind", kind.name()));
        let fields = Fields::new();
        let applications = Applications::default();
        Self { samples, applications, options, devices, by_device_id, kinds, fields }
    }

    /// An upper bound of how many series `process` has, those that it registers apart.
    pub(super) fn series_of(process: &Process) -> usize {
        let of_device =
            |held: &HeldDevice| held.kinds.len() * 6 + usize::from(held.busy_ratio.is_some());
        let of_devices = process.devices.iter().map(of_device).sum::<usize>();
        let named = process.container.as_ref().is_some_and(|container| container.pod.is_some());
        of_devices
            + 7
            + usize::from(named)
            + process.metrics.iter().filter(|sample| is_ours(&sample.name)).count()
    }

    /// Removes the labels that distinguish processes, for the aggregate row.
    pub(super) fn without_identities(&self, entries: &mut Vec<SampleEntry<'a>>) {
        let identities = [self.fields.info, self.fields.pod];
        entries.retain(|entry| !identities.contains(&entry.family));
    }

    /// Adds what `process` has.
    pub(super) fn entries(&mut self, process: &'a Process, entries: &mut Vec<SampleEntry<'a>>) {
        let state = self.samples.sets.one("state", process.state.name());
        let put = |family, third, number, joining| {
            let value = Some(SampleValue::Number(number));
            SampleEntry { family, second: SetId::default(), third, value, joining }
        };
        entries.push(put(self.fields.processes, state, Number::Whole(1), Joining::Sum));
        if self.options.process_pids {
            self.identity(process, entries);
        }
        self.pod(process, entries);
        if process.state == ProcessState::Dead {
            return;
        }
        for held in &process.devices {
            self.memory(held, entries);
        }
        let none = SetId::default();
        if let Some(uptime) = process.uptime_seconds.value() {
            entries.push(put(self.fields.uptime, none, Number::Float(*uptime), Joining::Largest));
        }
        if matches!(
            process.known_by,
            Some(ProcessSource::Ledger | ProcessSource::Endpoint | ProcessSource::Legacy)
        ) {
            let RecordingFaults {
                double_frees,
                unknown_frees,
                reused_live_addresses,
                unrecorded_events,
            } = process.faults;
            let faults = [double_frees, unknown_frees, reused_live_addresses, unrecorded_events];
            for (family, count) in self.fields.faults.into_iter().zip(faults) {
                entries.push(put(family, none, Number::Whole(count), Joining::Sum));
            }
        }
        for sample in process.metrics.iter().filter(|sample| is_ours(&sample.name)) {
            match self.reported(sample) {
                Some(entry) => entries.push(entry),
                None => self.samples.dropped.malformed += 1,
            }
        }
    }

    fn identity(&mut self, process: &'a Process, entries: &mut Vec<SampleEntry<'a>>) {
        let command = process.command.value().map(String::as_str).unwrap_or_default();
        let command = &command[..command.floor_char_boundary(MAX_COMMAND_BYTES)];
        let namespace_pid = process.namespace_pid.map(|pid| pid.to_string()).unwrap_or_default();
        let engine = process.container.as_ref().map(|it| it.engine.as_str()).unwrap_or_default();
        let info = self.samples.sets.of([
            ("namespace_pid".into(), Cow::Owned(namespace_pid)),
            ("container_engine".into(), engine.into()),
            ("command".into(), command.into()),
        ]);
        entries.push(SampleEntry {
            family: self.fields.info,
            second: info,
            third: SetId::default(),
            value: Some(SampleValue::Number(Number::Whole(1))),
            joining: Joining::Largest,
        });
    }

    /// The names of the pod. They are not labels of each series: names may come later than the first
    /// values, and a series would then end and another begin.
    fn pod(&mut self, process: &'a Process, entries: &mut Vec<SampleEntry<'a>>) {
        let container = process.container.as_ref();
        let Some(pod) = container.and_then(|container| container.pod.as_ref()) else { return };
        let names = self.samples.sets.of([
            ("pod_namespace".into(), pod.namespace.as_str().into()),
            ("pod_name".into(), pod.name.as_str().into()),
            ("container_name".into(), pod.container.as_deref().unwrap_or_default().into()),
        ]);
        entries.push(SampleEntry {
            family: self.fields.pod,
            second: names,
            third: SetId::default(),
            value: Some(SampleValue::Number(Number::Whole(1))),
            joining: Joining::Largest,
        });
    }

    fn memory(&mut self, held: &'a HeldDevice, entries: &mut Vec<SampleEntry<'a>>) {
        // Which devices there are was checked when the snapshot was made; what is not there has
        // no label to be distinguished by.
        let Some(second) = self.devices.get(held.device).copied() else { return };
        if let Some(ratio) = held.busy_ratio {
            let value = Some(SampleValue::Number(Number::Float(ratio)));
            let (family, third) = (self.fields.busy, SetId::default());
            entries.push(SampleEntry { family, second, third, value, joining: Joining::Sum });
        }
        for held in &held.kinds {
            let third = self.kinds[usize::from(held.kind.code())];
            let recorded = held.usage.recorded();
            let amounts = [
                Some(held.usage.live_bytes()),
                recorded.map(|usage| usage.live_buffers),
                recorded.map(|usage| usage.peak_bytes),
                recorded.map(|usage| usage.allocations),
                recorded.map(|usage| usage.allocated_bytes),
                recorded.map(|usage| usage.failed_allocations),
            ];
            for (family, amount) in self.fields.memory.into_iter().zip(amounts) {
                let value = amount.map(|amount| SampleValue::Number(Number::Whole(amount)));
                entries.push(SampleEntry { family, second, third, value, joining: Joining::Sum });
            }
        }
    }

    /// What a process reports about itself, where it is a metric that a process can tell: of the right
    /// kind, with the right labels, about a device that there is.
    fn reported(&mut self, sample: &'a MetricSample) -> Option<SampleEntry<'a>> {
        let found = DEFINITIONS.binary_search_by(|other| other.name.cmp(&sample.name)).ok()?;
        let definition = DEFINITIONS[found];
        if definition.scope != Scope::Process || self.fields.has(found) {
            return None;
        }
        let number = match (definition.kind, &sample.value) {
            (MetricKind::Counter, MetricValue::Counter(count)) => Number::Whole(*count),
            (MetricKind::Gauge, MetricValue::Gauge(value)) if value.is_finite() => {
                Number::Float(*value)
            }
            _ => return None,
        };
        let expected = &definition.labels[definition.scope.labels().len()..];
        if sample.labels.len() != expected.len() {
            return None;
        }
        let (mut second, mut third) = (SetId::default(), SetId::default());
        for label in expected {
            let (_, value) = sample.labels.iter().find(|(name, _)| name == label)?;
            if *label == "device" {
                second = *self.by_device_id.get(value.as_str())?;
            } else if is_word(value) {
                third = self.samples.sets.one(label, value.as_str());
            } else {
                return None;
            }
        }
        let largest = definition.name == PROCESS_THROTTLED.name;
        let joining = if largest { Joining::Largest } else { Joining::Sum };
        Some(SampleEntry {
            family: found,
            second,
            third,
            value: Some(SampleValue::Number(number)),
            joining,
        })
    }
}

/// Whether a metric that a process reports is one that we define.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with("telltale_")
}

/// Whether a label's value is one that a runtime of ours gives: a short word.
fn is_word(value: &str) -> bool {
    (1..=32).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
