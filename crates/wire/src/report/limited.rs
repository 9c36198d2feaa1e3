//! The limits of an answer, field by field. The numbers come from `endpoint.proto`.

use crate::limits::{
    MAX_BUCKET_BOUNDS, MAX_DEVICES, MAX_KINDS, MAX_LABEL_VALUE_BYTES, MAX_LABELS,
    MAX_LOADED_PROGRAMS, MAX_METRICS, MAX_NAME_BYTES, MAX_QUOTAS, MAX_TEXT_BYTES,
};
use crate::message::numbers::{
    device, histogram, identity, label, metric, programs, refusal, response,
};
use crate::shape::{FieldLimit, many, once, text};

/// Bytes of a bound or a count of a histogram.
const NUMBER_BYTES: usize = 8;
/// Limits of `Response`.
pub(crate) const LIMITS: &[FieldLimit] = &[
    once(response::REFUSAL, "refusals", REFUSAL),
    once(response::IDENTITY, "identities", IDENTITY),
    text(response::NAME, "process name", MAX_NAME_BYTES),
    text(response::RUNTIME, "runtime name", MAX_NAME_BYTES),
    many(response::DEVICES, "devices", MAX_DEVICES, DEVICE),
    once(response::FAULTS, "faults", &[]),
    once(response::PROGRAMS, "programs", PROGRAMS),
    once(response::KERNEL_CACHE, "kernel caches", &[]),
    many(response::METRICS, "metrics", MAX_METRICS, METRIC),
];

const REFUSAL: &[FieldLimit] = &[text(refusal::TEXT, "refusal text", MAX_TEXT_BYTES)];

const IDENTITY: &[FieldLimit] = &[text(identity::BOOT_ID, "boot id", 16)];

const DEVICE: &[FieldLimit] = &[
    text(device::BOARD_TYPE, "board type", MAX_NAME_BYTES),
    once(device::FACTS, "facts of a device", &[]),
    many(device::KINDS, "kinds of a device", MAX_KINDS, &[]),
    once(device::RING_BUFFER, "ring buffers of a device", &[]),
    once(device::TRAFFIC, "traffic of a device", &[]),
    many(device::QUOTAS, "quotas of a device", MAX_QUOTAS, &[]),
    once(device::THROTTLING, "throttling of a device", &[]),
];

const PROGRAMS: &[FieldLimit] = &[FieldLimit {
    number: programs::LOADED,
    name: "loaded programs",
    max_count: MAX_LOADED_PROGRAMS,
    max_bytes: MAX_NAME_BYTES,
    inner: &[],
}];

const METRIC: &[FieldLimit] = &[
    text(metric::NAME, "metric name", MAX_NAME_BYTES),
    text(metric::HELP, "metric help", MAX_TEXT_BYTES),
    text(metric::UNIT, "metric unit", MAX_NAME_BYTES),
    many(metric::LABELS, "labels of a metric", MAX_LABELS, LABEL),
    once(metric::HISTOGRAM, "histograms of a metric", HISTOGRAM),
];

const LABEL: &[FieldLimit] = &[
    text(label::NAME, "label name", MAX_NAME_BYTES),
    text(label::VALUE, "label value", MAX_LABEL_VALUE_BYTES),
];

/// Both fields are packed: once, with all numbers in it.
const HISTOGRAM: &[FieldLimit] = &[
    text(histogram::BOUNDS, "bucket bounds", MAX_BUCKET_BOUNDS * NUMBER_BYTES),
    text(histogram::COUNTS, "bucket counts", (MAX_BUCKET_BOUNDS + 1) * NUMBER_BYTES),
];
