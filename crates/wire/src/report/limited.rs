//! The limits of an answer, field by field. The numbers are those of `endpoint.proto`.

use crate::limits::{
    MAX_BUCKET_BOUNDS, MAX_DEVICES, MAX_FRAME_BYTES, MAX_KINDS, MAX_LABEL_VALUE_BYTES, MAX_LABELS,
    MAX_LOADED_PROGRAMS, MAX_METRICS, MAX_NAME_BYTES, MAX_QUOTAS, MAX_TEXT_BYTES,
};
use crate::shape::FieldLimit;

/// Bytes of a bound or a count of a histogram.
const NUMBER_BYTES: usize = 8;
/// A field that may be given once; protobuf lets a writer repeat it, the last one then counts.
const ONCE: usize = 1;

const fn text(number: u32, name: &'static str, max_bytes: usize) -> FieldLimit {
    FieldLimit { number, name, max_count: ONCE, max_bytes, inner: &[] }
}

const fn message(
    number: u32,
    name: &'static str,
    max_count: usize,
    inner: &'static [FieldLimit],
) -> FieldLimit {
    FieldLimit { number, name, max_count, max_bytes: MAX_FRAME_BYTES, inner }
}

/// Limits of `Response`.
pub(crate) const LIMITS: &[FieldLimit] = &[
    message(2, "refusals", ONCE, REFUSAL),
    message(3, "identities", ONCE, IDENTITY),
    text(4, "process name", MAX_NAME_BYTES),
    text(5, "runtime name", MAX_NAME_BYTES),
    message(8, "devices", MAX_DEVICES, DEVICE),
    message(9, "faults", ONCE, &[]),
    message(10, "programs", ONCE, PROGRAMS),
    message(11, "kernel caches", ONCE, &[]),
    message(12, "metrics", MAX_METRICS, METRIC),
];

const REFUSAL: &[FieldLimit] = &[text(2, "refusal text", MAX_TEXT_BYTES)];

const IDENTITY: &[FieldLimit] = &[text(1, "boot id", 16)];

const DEVICE: &[FieldLimit] = &[
    text(6, "board type", MAX_NAME_BYTES),
    message(11, "facts of a device", ONCE, &[]),
    message(12, "kinds of a device", MAX_KINDS, &[]),
    message(13, "ring buffers of a device", ONCE, &[]),
    message(15, "traffic of a device", ONCE, &[]),
    message(16, "quotas of a device", MAX_QUOTAS, &[]),
    message(17, "throttling of a device", ONCE, &[]),
];

const PROGRAMS: &[FieldLimit] = &[FieldLimit {
    number: 2,
    name: "loaded programs",
    max_count: MAX_LOADED_PROGRAMS,
    max_bytes: MAX_NAME_BYTES,
    inner: &[],
}];

const METRIC: &[FieldLimit] = &[
    text(1, "metric name", MAX_NAME_BYTES),
    text(2, "metric help", MAX_TEXT_BYTES),
    text(3, "metric unit", MAX_NAME_BYTES),
    message(4, "labels of a metric", MAX_LABELS, LABEL),
    message(7, "histograms of a metric", ONCE, HISTOGRAM),
];

const LABEL: &[FieldLimit] =
    &[text(1, "label name", MAX_NAME_BYTES), text(2, "label value", MAX_LABEL_VALUE_BYTES)];

/// Both fields are packed: once, with all numbers in it.
const HISTOGRAM: &[FieldLimit] = &[
    text(1, "bucket bounds", MAX_BUCKET_BOUNDS * NUMBER_BYTES),
    text(2, "bucket counts", (MAX_BUCKET_BOUNDS + 1) * NUMBER_BYTES),
];
