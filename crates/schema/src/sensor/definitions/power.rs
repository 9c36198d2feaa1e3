// Generated from crates/schema/sensors.toml by `cargo xtask generate`. Do not edit.

use crate::metric::definitions as metric;
use crate::reading::Absence;
use crate::sensor::{FieldPath, Sensor};
use crate::snapshot::Power;

pub(super) const ENERGY_JOULES_TOTAL: Sensor = Sensor {
    field: "energy_joules_total",
    part: Some("power"),
    proto: 1,
    metric: metric::DEVICE_ENERGY_JOULES_TOTAL,
    label: None,
    history: Some(32),
    title: "energy",
    name: "energy",
    help: "energy that it used since its driver was loaded, in joules",
    decimals: 0,
    heading: "ENERGY",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Float, power: Power, energy_joules_total),
};

pub(super) const POWER_LIMIT_DEFAULT_WATTS: Sensor = Sensor {
    field: "power_limit_default_watts",
    part: Some("power"),
    proto: 2,
    metric: metric::DEVICE_POWER_LIMIT_DEFAULT_WATTS,
    label: None,
    history: None,
    title: "power limit, default",
    name: "power_limit_default",
    help: "limit of its power that it starts with",
    decimals: 1,
    heading: "POWER LIMIT, DEFAULT",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Float, power: Power, power_limit_default_watts),
};

pub(super) const POWER_LIMIT_MIN_WATTS: Sensor = Sensor {
    field: "power_limit_min_watts",
    part: Some("power"),
    proto: 3,
    metric: metric::DEVICE_POWER_LIMIT_MIN_WATTS,
    label: None,
    history: None,
    title: "power limit, min",
    name: "power_limit_min",
    help: "lowest limit that its power can be set to",
    decimals: 1,
    heading: "POWER LIMIT, MIN",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Float, power: Power, power_limit_min_watts),
};

pub(super) const POWER_LIMIT_MAX_WATTS: Sensor = Sensor {
    field: "power_limit_max_watts",
    part: Some("power"),
    proto: 4,
    metric: metric::DEVICE_POWER_LIMIT_MAX_WATTS,
    label: None,
    history: None,
    title: "power limit, max",
    name: "power_limit_max",
    help: "highest limit that its power can be set to",
    decimals: 1,
    heading: "POWER LIMIT, MAX",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Float, power: Power, power_limit_max_watts),
};
