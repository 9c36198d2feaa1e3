//! The limits of the service's answers, field by field. The numbers come from
//! `telemetry.proto`. What is not named here is once in a message, or as small as the bytes of it.

use super::message::numbers::{
    alert, allocated_devices, container, device, fault, get_snapshot_response, held_device,
    holders, holders_reading, list_alerts_response, list_devices_response, load,
    metric_description, metric_sample, names, names_reading, past_fault, pod, process,
    process_report, query_history_response, report_process_response, sensors, series, snapshot,
    source,
};
use crate::limits::{MAX_NAME_BYTES, MAX_TEXT_BYTES};
use crate::shape::{FieldLimit, many, once, text};

/// Devices in one answer, and devices that one process holds.
pub(crate) const MAX_DEVICES: usize = 1024;
/// Processes in one answer.
pub(crate) const MAX_PROCESSES: usize = telltale_schema::snapshot::MAX_PROCESSES;
/// Metrics of one process, and descriptions of metrics in one answer.
pub(crate) const MAX_METRICS: usize = 16_384;
/// Memory kinds, spaces, counters, versions and labels of one owner.
pub(crate) const MAX_SMALL: usize = 256;
/// Holders of one device.
pub(crate) const MAX_HOLDERS: usize = 65_536;
/// Sources, and errors of one source.
pub(crate) const MAX_SOURCES: usize = 1024;
/// Faults of the machine's parts and of sources.
pub(crate) const MAX_PART_FAULTS: usize = telltale_schema::snapshot::MAX_PART_FAULTS;
/// All of these together in one answer: a few bytes stand for a few hundred in memory. A process that
/// holds a device is three, itself, the device and its place among the device's holders, so this is
/// room for [`MAX_PROCESSES`] with a kind of memory each. As the message and as what is made of it a
/// process takes 1,392 bytes at most and any other part 240, so that the worst answer costs 277 MB
/// beside its texts.
pub(crate) const MAX_PARTS: usize = 1 << 19;

/// Alerts in one answer.
pub(crate) const MAX_ALERTS: usize = 4096;

/// Limits of an answer of ListAlerts.
pub(crate) const ALERTS_ANSWER: &[FieldLimit] =
    &[many(list_alerts_response::ALERTS, "alerts", MAX_ALERTS, ALERT)];

const ALERT: &[FieldLimit] = &[
    text(alert::RULE, "rule name", MAX_NAME_BYTES),
    text(alert::DEVICE_ID, "device id", MAX_NAME_BYTES),
    once(alert::PROCESS, "processes of an alert", &[]),
    text(alert::SOURCE, "source name", MAX_NAME_BYTES),
    text(alert::TEXT, "text of an alert", MAX_TEXT_BYTES),
];

/// Limits of an answer of ListDevices.
pub(crate) const DEVICES_ANSWER: &[FieldLimit] = &[
    many(list_devices_response::DEVICES, "devices", MAX_DEVICES, DEVICE),
    many(list_devices_response::FAULTS, "faults of the machine", MAX_PART_FAULTS, FAULT),
];

/// Limits of an answer whose field 1 is a snapshot.
pub(crate) const SNAPSHOT_ANSWER: &[FieldLimit] =
    &[once(get_snapshot_response::SNAPSHOT, "snapshots", SNAPSHOT)];

/// Limits of an answer of QueryHistory.
pub(crate) const HISTORY_ANSWER: &[FieldLimit] = &[
    many(query_history_response::SERIES, "series", MAX_METRICS, SERIES),
    many(query_history_response::FAULTS, "faults of the past", MAX_METRICS, PAST_FAULT),
];

const PAST_FAULT: &[FieldLimit] = &[once(past_fault::FAULT, "faults of one", FAULT)];

/// Limits of an answer of ReportProcess.
pub(crate) const REPORT_ANSWER: &[FieldLimit] =
    &[many(report_process_response::REPORTS, "reports", MAX_METRICS, REPORT)];

const REPORT: &[FieldLimit] =
    &[many(process_report::USAGE, "usages of a process", MAX_METRICS, &[])];

/// Numbers are packed: once, with all of them in it.
const SERIES: &[FieldLimit] = &[
    once(series::SPANS, "lists of spans", &[]),
    once(series::LEAST, "lists of least values", &[]),
    once(series::MEAN, "lists of means", &[]),
    once(series::GREATEST, "lists of greatest values", &[]),
    many(series::GAPS, "gaps of a series", MAX_METRICS, &[]),
];

const SNAPSHOT: &[FieldLimit] = &[
    many(snapshot::DEVICES, "devices", MAX_DEVICES, DEVICE),
    many(snapshot::PROCESSES, "processes", MAX_PROCESSES, PROCESS),
    many(snapshot::FAULTS, "faults of the machine", MAX_PART_FAULTS, FAULT),
    many(snapshot::SOURCES, "sources", MAX_SOURCES, SOURCE),
    many(snapshot::METRIC_DESCRIPTIONS, "descriptions of metrics", MAX_METRICS, DESCRIPTION),
    once(snapshot::LEFT_OUT, "counts of what was left out", &[]),
];

/// Short, because each sample gets a copy.
const DESCRIPTION: &[FieldLimit] = &[
    text(metric_description::NAME, "metric name", MAX_NAME_BYTES),
    text(metric_description::HELP, "metric help", MAX_TEXT_BYTES),
    text(metric_description::UNIT, "metric unit", MAX_NAME_BYTES),
];

const FAULT: &[FieldLimit] = &[many(fault::EVIDENCE, "evidence of a fault", MAX_SMALL, &[])];

const DEVICE: &[FieldLimit] = &[
    once(device::TELEMETRY, "sensors of a device", SENSORS),
    many(device::SPACES, "memory spaces of a device", MAX_SMALL, &[]),
    many(device::KINDS, "memory kinds of a device", MAX_SMALL, &[]),
    once(device::HOLDERS, "holders of a device", HOLDERS_READING),
    once(device::OTHER_IDENTITY, "other identities of a device", &[]),
    many(device::FAULTS, "faults of a device", MAX_SMALL, FAULT),
];

const SENSORS: &[FieldLimit] = &[
    many(sensors::FIRMWARE, "firmware versions of a device", MAX_SMALL, &[]),
    many(sensors::PCIE, "traffic counters of a device", MAX_SMALL, &[]),
    once(sensors::LOAD, "loads of a device", LOAD),
    once(sensors::LINK, "links of a device", &[]),
];

const LOAD: &[FieldLimit] = &[once(load::THROTTLED_BY, "reasons of throttling", NAMES_READING)];

const NAMES_READING: &[FieldLimit] = &[once(names_reading::VALUE, "lists of names", NAMES)];

const NAMES: &[FieldLimit] = &[many(names::NAMES, "names", MAX_SMALL, &[])];

const HOLDERS_READING: &[FieldLimit] = &[once(holders_reading::VALUE, "lists of holders", HOLDERS)];

const HOLDERS: &[FieldLimit] = &[many(holders::HOLDERS, "holders", MAX_HOLDERS, &[])];

const PROCESS: &[FieldLimit] = &[
    once(process::CONTAINER, "containers of a process", CONTAINER),
    many(process::DEVICES, "devices of a process", MAX_DEVICES, HELD_DEVICE),
    many(process::METRICS, "metrics of a process", MAX_METRICS, METRIC),
];

const CONTAINER: &[FieldLimit] = &[once(container::POD, "pods of a container", POD)];

const POD: &[FieldLimit] = &[many(pod::ALLOCATED, "resources of a pod", MAX_SMALL, ALLOCATED)];

const ALLOCATED: &[FieldLimit] =
    &[many(allocated_devices::IDS, "allocated devices", MAX_SMALL, &[])];

const HELD_DEVICE: &[FieldLimit] = &[
    many(held_device::KINDS, "memory kinds of a process", MAX_SMALL, &[]),
    many(held_device::SPACES, "memory spaces of a process", MAX_SMALL, &[]),
];

const METRIC: &[FieldLimit] = &[
    many(metric_sample::LABELS, "labels of a metric", MAX_SMALL, &[]),
    once(metric_sample::HISTOGRAM, "histograms of a metric", &[]),
];

const SOURCE: &[FieldLimit] = &[
    many(source::ERRORS, "errors of a source", MAX_SOURCES, &[]),
    many(source::NOTES, "notes of a source", MAX_SOURCES, &[]),
];
