// Generated from crates/schema/sensors.toml by `cargo xtask generate`. Do not edit.

use crate::metric::definitions as metric;
use crate::reading::Absence;
use crate::sensor::{FieldPath, Sensor};
use crate::snapshot::Load;

pub(super) const BUSY_RATIO: Sensor = Sensor {
    field: "busy_ratio",
    part: Some("load"),
    proto: 1,
    metric: metric::DEVICE_BUSY_RATIO,
    label: None,
    history: Some(13),
    title: "busy",
    name: "busy",
    help: "share of the last time in which it was computing",
    decimals: 0,
    heading: "BUSY",
    is_column: true,
    is_graph: true,
    is_csv: false,
    limit: None,
    access: access!(Float, load: Load, busy_ratio),
};

pub(super) const MEMORY_BUSY_RATIO: Sensor = Sensor {
    field: "memory_busy_ratio",
    part: Some("load"),
    proto: 2,
    metric: metric::DEVICE_MEMORY_BUSY_RATIO,
    label: None,
    history: Some(14),
    title: "memory busy",
    name: "memory_busy",
    help: "share of the last time in which its memory was read or written",
    decimals: 0,
    heading: "MEMORY BUSY",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Float, load: Load, memory_busy_ratio),
};

pub(super) const MEMORY_CLOCK_HERTZ: Sensor = Sensor {
    field: "memory_clock_hertz",
    part: Some("load"),
    proto: 3,
    metric: metric::DEVICE_CLOCK_HERTZ,
    label: Some(("clock", "memory")),
    history: Some(15),
    title: "memory clock",
    name: "memory_clock",
    help: "clock of its memory",
    decimals: 0,
    heading: "MEMORY CLOCK",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, load: Load, memory_clock_hertz),
};

pub(super) const ENCODER_BUSY_RATIO: Sensor = Sensor {
    field: "encoder_busy_ratio",
    part: Some("load"),
    proto: 5,
    metric: metric::DEVICE_ENCODER_BUSY_RATIO,
    label: None,
    history: Some(26),
    title: "encoder busy",
    name: "encoder",
    help: "share of the last time in which its video encoders were busy",
    decimals: 0,
    heading: "ENCODER BUSY",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Float, load: Load, encoder_busy_ratio),
};

pub(super) const DECODER_BUSY_RATIO: Sensor = Sensor {
    field: "decoder_busy_ratio",
    part: Some("load"),
    proto: 6,
    metric: metric::DEVICE_DECODER_BUSY_RATIO,
    label: None,
    history: Some(27),
    title: "decoder busy",
    name: "decoder",
    help: "share of the last time in which its video decoders were busy",
    decimals: 0,
    heading: "DECODER BUSY",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Float, load: Load, decoder_busy_ratio),
};

pub(super) const PERFORMANCE_STATE: Sensor = Sensor {
    field: "performance_state",
    part: Some("load"),
    proto: 7,
    metric: metric::DEVICE_PERFORMANCE_STATE,
    label: None,
    history: Some(28),
    title: "performance state",
    name: "pstate",
    help: "performance state of an NVIDIA GPU: 0 is the fastest, 15 the slowest",
    decimals: 0,
    heading: "PERFORMANCE STATE",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, load: Load, performance_state),
};
