//! Every limit on what may cross an endpoint. Exceeding one gets one error.

pub mod cluster;

/// Bytes of the longest message, without its length prefix.
pub const MAX_FRAME_BYTES: usize = 1 << 20;
/// Bytes of the longest query.
pub const MAX_QUERY_BYTES: usize = 4 << 10;
/// Devices in one answer.
pub const MAX_DEVICES: usize = 64;
/// Memory kinds of one device.
pub const MAX_KINDS: usize = 64;
/// Quotas of one device.
pub const MAX_QUOTAS: usize = 8;
/// Metric series in one answer.
pub const MAX_METRICS: usize = 4096;
/// Labels of one series.
pub const MAX_LABELS: usize = 16;
/// Bucket bounds of one histogram.
pub const MAX_BUCKET_BOUNDS: usize = 64;
/// Names of loaded programs in one answer.
pub const MAX_LOADED_PROGRAMS: usize = 256;
/// Bytes of a name: of a process, a runtime, a metric, a label, a unit, a program.
pub const MAX_NAME_BYTES: usize = 128;
/// Bytes of a label's value.
pub const MAX_LABEL_VALUE_BYTES: usize = 256;
/// Bytes of a metric's help or of a refusal's text.
pub const MAX_TEXT_BYTES: usize = 512;
