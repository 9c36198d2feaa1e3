//! The limits of an answer, field by field. The numbers are those of `endpoint.proto`.

use crate::limits::{
    MAX_BUCKET_BOUNDS, MAX_DEVICES, MAX_KINDS, MAX_LABEL_VALUE_BYTES, MAX_LABELS,
    MAX_LOADED_PROGRAMS, MAX_METRICS, MAX_NAME_BYTES, MAX_QUOTAS, MAX_TEXT_BYTES,
};
use crate::shape::{FieldLimit, many, once, text};

/// Bytes of a bound or a count of a histogram.
const NUMBER_BYTES: usize = 8;
/// Limits of `Response`.
pub(crate) const LIMITS: &[FieldLimit] = &[
    once(2, "refusals", REFUSAL),
    once(3, "identities", IDENTITY),
    text(4, "process name", MAX_NAME_BYTES),
    text(5, "runtime name", MAX_NAME_BYTES),
    many(8, "devices", MAX_DEVICES, DEVICE),
    once(9, "faults", &[]),
    once(10, "programs", PROGRAMS),
    once(11, "kernel caches", &[]),
    many(12, "metrics", MAX_METRICS, METRIC),
];

const REFUSAL: &[FieldLimit] = &[text(2, "refusal text", MAX_TEXT_BYTES)];

const IDENTITY: &[FieldLimit] = &[text(1, "boot id", 16)];

const DEVICE: &[FieldLimit] = &[
    text(6, "board type", MAX_NAME_BYTES),
    once(11, "facts of a device", &[]),
    many(12, "kinds of a device", MAX_KINDS, &[]),
    once(13, "ring buffers of a device", &[]),
    once(15, "traffic of a device", &[]),
    many(16, "quotas of a device", MAX_QUOTAS, &[]),
    once(17, "throttling of a device", &[]),
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
    many(4, "labels of a metric", MAX_LABELS, LABEL),
    once(7, "histograms of a metric", HISTOGRAM),
];

const LABEL: &[FieldLimit] =
    &[text(1, "label name", MAX_NAME_BYTES), text(2, "label value", MAX_LABEL_VALUE_BYTES)];

/// Both fields are packed: once, with all numbers in it.
const HISTOGRAM: &[FieldLimit] = &[
    text(1, "bucket bounds", MAX_BUCKET_BOUNDS * NUMBER_BYTES),
    text(2, "bucket counts", (MAX_BUCKET_BOUNDS + 1) * NUMBER_BYTES),
];
