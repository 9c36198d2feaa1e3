//! The limits of the service's answers, field by field. The numbers are those of
//! `telemetry.proto`. What is not named here is once in a message, or as small as the bytes of it.

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
/// All of these together in one answer: a few bytes stand for a few hundred in memory. A process that
/// holds a device is three, itself, the device and its place among the device's holders, so this is
/// room for [`MAX_PROCESSES`] with a kind of memory each. As the message and as what is made of it a
/// process takes 992 bytes at most and any other part 240, so that the worst answer costs 224 MB
/// beside its texts.
pub(crate) const MAX_PARTS: usize = 1 << 19;

/// Alerts in one answer.
pub(crate) const MAX_ALERTS: usize = 4096;

/// Limits of an answer of ListAlerts.
pub(crate) const ALERTS_ANSWER: &[FieldLimit] = &[many(1, "alerts", MAX_ALERTS, ALERT)];

const ALERT: &[FieldLimit] = &[
    text(1, "rule name", MAX_NAME_BYTES),
    text(4, "device id", MAX_NAME_BYTES),
    once(6, "processes of an alert", &[]),
    text(7, "source name", MAX_NAME_BYTES),
    text(12, "text of an alert", MAX_TEXT_BYTES),
];

/// Limits of an answer of ListDevices.
pub(crate) const DEVICES_ANSWER: &[FieldLimit] = &[many(1, "devices", MAX_DEVICES, DEVICE)];

/// Limits of an answer whose field 1 is a snapshot.
pub(crate) const SNAPSHOT_ANSWER: &[FieldLimit] = &[once(1, "snapshots", SNAPSHOT)];

/// Limits of an answer of QueryHistory.
pub(crate) const HISTORY_ANSWER: &[FieldLimit] = &[many(4, "series", MAX_METRICS, SERIES)];

/// Limits of an answer of ReportProcess.
pub(crate) const REPORT_ANSWER: &[FieldLimit] = &[many(1, "reports", MAX_METRICS, REPORT)];

const REPORT: &[FieldLimit] = &[many(9, "usages of a process", MAX_METRICS, &[])];

/// Numbers are packed: once, with all of them in it.
const SERIES: &[FieldLimit] = &[
    once(6, "lists of spans", &[]),
    once(7, "lists of least values", &[]),
    once(8, "lists of means", &[]),
    once(9, "lists of greatest values", &[]),
    many(10, "gaps of a series", MAX_METRICS, &[]),
];

const SNAPSHOT: &[FieldLimit] = &[
    many(4, "devices", MAX_DEVICES, DEVICE),
    many(5, "processes", MAX_PROCESSES, PROCESS),
    many(8, "sources", MAX_SOURCES, SOURCE),
    many(9, "descriptions of metrics", MAX_METRICS, DESCRIPTION),
    once(10, "counts of what was left out", &[]),
];

/// Short, because each sample gets a copy.
const DESCRIPTION: &[FieldLimit] = &[
    text(1, "metric name", MAX_NAME_BYTES),
    text(2, "metric help", MAX_TEXT_BYTES),
    text(3, "metric unit", MAX_NAME_BYTES),
];

const DEVICE: &[FieldLimit] = &[
    once(4, "sensors of a device", SENSORS),
    many(5, "memory spaces of a device", MAX_SMALL, &[]),
    many(6, "memory kinds of a device", MAX_SMALL, &[]),
    once(7, "holders of a device", HOLDERS_READING),
    once(8, "other identities of a device", &[]),
    many(9, "faults of a device", MAX_SMALL, &[]),
];

const SENSORS: &[FieldLimit] = &[
    many(15, "firmware versions of a device", MAX_SMALL, &[]),
    many(16, "traffic counters of a device", MAX_SMALL, &[]),
    once(17, "loads of a device", LOAD),
];

const LOAD: &[FieldLimit] = &[once(4, "reasons of throttling", NAMES_READING)];

const NAMES_READING: &[FieldLimit] = &[once(1, "lists of names", NAMES)];

const NAMES: &[FieldLimit] = &[many(1, "names", MAX_SMALL, &[])];

const HOLDERS_READING: &[FieldLimit] = &[once(1, "lists of holders", HOLDERS)];

const HOLDERS: &[FieldLimit] = &[many(1, "holders", MAX_HOLDERS, &[])];

const PROCESS: &[FieldLimit] = &[
    once(8, "containers of a process", CONTAINER),
    many(12, "devices of a process", MAX_DEVICES, HELD_DEVICE),
    many(14, "metrics of a process", MAX_METRICS, METRIC),
];

const CONTAINER: &[FieldLimit] = &[once(4, "pods of a container", POD)];

const POD: &[FieldLimit] = &[many(4, "resources of a pod", MAX_SMALL, ALLOCATED)];

const ALLOCATED: &[FieldLimit] = &[many(2, "allocated devices", MAX_SMALL, &[])];

const HELD_DEVICE: &[FieldLimit] = &[
    many(4, "memory kinds of a process", MAX_SMALL, &[]),
    many(5, "memory spaces of a process", MAX_SMALL, &[]),
];

const METRIC: &[FieldLimit] =
    &[many(2, "labels of a metric", MAX_SMALL, &[]), once(5, "histograms of a metric", &[])];

const SOURCE: &[FieldLimit] = &[
    many(3, "errors of a source", MAX_SOURCES, &[]),
    many(5, "notes of a source", MAX_SOURCES, &[]),
];
