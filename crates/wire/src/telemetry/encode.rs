//! From a snapshot to the bytes of answers, field by field as `telemetry.proto` numbers them.
//!
//! Nothing is built in between: the service does this once a second and for each fresh query.

mod device;
mod process;
mod writer;

use prost::bytes::Bytes;
use telltale_schema::health::{Evidence, Fault};
use telltale_schema::metric::MetricDefinition;
use telltale_schema::snapshot::{Process, Snapshot, SourceStatus};

use super::codec::Payload;
use super::codes::Code as _;
use super::message;
use super::message::numbers::{
    get_snapshot_response, host_usage, left_out, list_devices_response, list_processes_response,
    snapshot, source, source_error, source_note, watch_response,
};
use process::Descriptions;
use writer::MessageWriter;

/// About how many bytes a device and a process take; a better guess saves a copy, no more.
const DEVICE_BYTES: usize = 1 << 10;
const PROCESS_BYTES: usize = 1 << 10;

/// A snapshot as field 1, which it is in every answer that has one. To be shared.
#[must_use]
pub fn snapshot(snapshot: &Snapshot) -> Bytes {
    let devices = snapshot.devices.len().saturating_mul(DEVICE_BYTES);
    let processes = snapshot.processes.len().saturating_mul(PROCESS_BYTES);
    let mut to = MessageWriter::with_room(devices.saturating_add(processes));
    to.message(get_snapshot_response::SNAPSHOT, |to| fill(to, snapshot));
    to.finish().into()
}

fn fill(to: &mut MessageWriter, snapshot: &Snapshot) {
    to.whole(snapshot::SCHEMA_VERSION, snapshot.schema_version);
    to.time(snapshot::TAKEN_AT_UNIX_NS, snapshot.taken_at);
    to.whole(snapshot::COLLECTED_IN_NS, snapshot.collected_in_ns);
    for device in &snapshot.devices {
        to.message(snapshot::DEVICES, |to| device::device(to, device));
    }
    let mut descriptions = Descriptions::default();
    for process in &snapshot.processes {
        to.message(snapshot::PROCESSES, |to| process::process(to, process, &mut descriptions));
    }
    to.whole(snapshot::CLOSED_PROCESSES, snapshot.closed_processes);
    to.whole(snapshot::WITHHELD_PROCESSES, snapshot.withheld_processes);
    for fault in &snapshot.faults {
        to.message(snapshot::FAULTS, |to| device::fault(to, fault));
    }
    for status in &snapshot.sources {
        to.message(snapshot::SOURCES, |to| source(to, status));
    }
    descriptions.write(to, 9);
    if let Some(left_out) = snapshot.left_out {
        to.message(snapshot::LEFT_OUT, |to| {
            to.whole(left_out::DEVICES, left_out.devices);
            to.whole(left_out::PROCESSES, left_out.processes);
        });
    }
    if let Some(host) = &snapshot.host {
        to.message(snapshot::HOST, |to| {
            to.reading(host_usage::CPU_RATIO, &host.cpu_ratio);
            to.reading(host_usage::PROCESSORS, &host.processors);
            to.reading(host_usage::USED_BYTES, &host.used_bytes);
            to.reading(host_usage::MEMORY_BYTES, &host.memory_bytes);
            to.reading(host_usage::LOAD_1, &host.load_1);
            to.reading(host_usage::LOAD_5, &host.load_5);
            to.reading(host_usage::LOAD_15, &host.load_15);
        });
    }
}

fn source(to: &mut MessageWriter, status: &SourceStatus) {
    to.text(source::NAME, &status.name);
    to.whole(source::DURATION_NS, status.duration_ns);
    for error in &status.errors {
        to.message(source::ERRORS, |to| {
            to.text(source_error::SUBJECT, &error.subject);
            to.code(source_error::REASON, error.reason);
            to.text(source_error::DETAIL, &error.detail);
        });
    }
    to.whole(source::ERRORS_DROPPED, status.errors_dropped);
    for note in &status.notes {
        to.message(source::NOTES, |to| {
            to.text(source_note::SUBJECT, &note.subject);
            to.whole(source_note::COUNT, note.count);
            to.text(source_note::DETAIL, &note.detail);
        });
    }
}

/// An answer of GetSnapshot around a [`snapshot()`].
#[must_use]
pub fn snapshot_answer(shared: Bytes, sequence: Option<u64>) -> Payload {
    let mut to = MessageWriter::default();
    to.maybe(get_snapshot_response::SEQUENCE, sequence);
    Payload { shared, own: to.finish() }
}

/// An answer of GetSnapshot about a past moment, with the length of the spans that its values are
/// means over, in milliseconds.
#[must_use]
pub fn past_answer(past: &Snapshot, resolution_ms: u64) -> Payload {
    let mut to = MessageWriter::default();
    to.set(get_snapshot_response::RESOLUTION_MS, resolution_ms);
    Payload { shared: snapshot(past), own: to.finish() }
}

/// A message of Watch around a [`snapshot()`]; with no bytes, one that says that nothing is new.
#[must_use]
pub fn watch_message(shared: Bytes, sequence: u64, skipped: u64) -> Payload {
    let mut to = MessageWriter::default();
    to.whole(watch_response::SEQUENCE, sequence);
    to.whole(watch_response::SKIPPED, skipped);
    Payload { shared, own: to.finish() }
}

/// An answer of ListDevices.
#[must_use]
pub fn devices(snapshot: &Snapshot, sequence: u64) -> Payload {
    let mut to = MessageWriter::with_room(snapshot.devices.len().saturating_mul(DEVICE_BYTES));
    for device in &snapshot.devices {
        to.message(list_devices_response::DEVICES, |to| device::device(to, device));
    }
    for fault in &snapshot.faults {
        to.message(list_devices_response::FAULTS, |to| device::fault(to, fault));
    }
    to.time(list_devices_response::TAKEN_AT_UNIX_NS, snapshot.taken_at);
    to.whole(list_devices_response::SEQUENCE, sequence);
    Payload { shared: Bytes::new(), own: to.finish() }
}

/// An answer of ListProcesses with those that are `wanted`.
#[must_use]
pub fn processes(snapshot: &Snapshot, sequence: u64, wanted: impl Fn(&Process) -> bool) -> Payload {
    let mut to = MessageWriter::default();
    let mut descriptions = Descriptions::default();
    for process in snapshot.processes.iter().filter(|process| wanted(process)) {
        to.message(list_processes_response::PROCESSES, |to| {
            process::process(to, process, &mut descriptions)
        });
    }
    for device in &snapshot.devices {
        to.set_bytes(list_processes_response::DEVICE_IDS, device.id.as_bytes());
    }
    descriptions.write(&mut to, 3);
    to.time(list_processes_response::TAKEN_AT_UNIX_NS, snapshot.taken_at);
    to.whole(list_processes_response::SEQUENCE, sequence);
    to.whole(list_processes_response::CLOSED_PROCESSES, snapshot.closed_processes);
    to.whole(list_processes_response::WITHHELD_PROCESSES, snapshot.withheld_processes);
    Payload { shared: Bytes::new(), own: to.finish() }
}

/// A fault as the message that answers of QueryHistory have.
#[must_use]
pub fn fault(fault: &Fault) -> message::Fault {
    let evidence = |one: &Evidence| message::Evidence {
        reading: one.reading.clone(),
        value: one.value,
        at_unix_ns: one.at.0,
    };
    message::Fault {
        kind: i32::try_from(fault.kind.code()).expect("a small number"),
        since_unix_ns: fault.since.0,
        detail: fault.detail.clone(),
        part: fault.part.clone(),
        evidence: fault.evidence.iter().map(evidence).collect(),
    }
}

/// An answer of ListMetrics.
#[must_use]
pub fn metrics(definitions: &[&MetricDefinition]) -> Payload {
    let one = |definition: &&MetricDefinition| message::MetricDefinition {
        name: definition.name.to_owned(),
        unit: definition.unit.suffix().unwrap_or_default().to_owned(),
        kind: i32::try_from(definition.kind.code()).expect("a small number"),
        help: definition.help.to_owned(),
        labels: definition.labels.iter().map(|&label| label.to_owned()).collect(),
        scope: i32::try_from(definition.scope.code()).expect("a small number"),
        since: definition.since.to_owned(),
    };
    let answer = message::ListMetricsResponse { metrics: definitions.iter().map(one).collect() };
    Payload { shared: Bytes::new(), own: prost::Message::encode_to_vec(&answer) }
}
