//! What a person may choose and keep, and what the view receives once at its start.

use std::time::Duration;

use telltale_schema::history::Series;
use telltale_schema::memory::MemorySpace;
use telltale_schema::metric::definitions::{
    DEVICE_MEMORY_SPACE_USED_BYTES, DEVICE_MEMORY_USED_BYTES,
};
use telltale_schema::sensor::{SENSORS, Sensor, SensorValue};
use telltale_schema::snapshot::Device;

use super::column::Column;
use super::pane::Pane;
use super::series;
use super::theme::Theme;
use crate::style::Tone;

/// What is kept from one run to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewSettings {
    /// The colours.
    pub theme: Theme,
    /// The columns of the process table, in their order.
    pub columns: Vec<Column>,
    /// The column that rows are sorted by. It is shown even if it is not among `columns`.
    pub sort: Column,
    /// The largest first.
    pub descending: bool,
    /// Whether processes are shown as a tree.
    pub tree: bool,
    /// Whether there is a pane below the processes.
    pub details: bool,
    /// Which one it is.
    pub pane: Pane,
    /// Whether it has the place of the processes too.
    pub enlarged: bool,
    /// Whether idle devices have a row each, and not one for their tray.
    pub all_devices: bool,
    /// What the graphs of devices show.
    pub shown_metric: GraphValue,
}

/// What a graph of a device shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphValue {
    /// The share of a memory space that is in use.
    Space(MemorySpace),
    /// A sensor.
    Sensor(&'static Sensor),
}

/// What the view receives at its start and does not change.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How the machine is called in the tree.
    pub host: String,
    /// No signal is sent.
    pub readonly: bool,
    /// The terminal takes characters beyond ASCII.
    pub unicode: bool,
    /// The time from one snapshot to the next, from which follows which one is late.
    pub period: Duration,
}

impl Default for ViewSettings {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            columns: Column::USUAL.to_vec(),
            sort: Column::Dram,
            descending: true,
            tree: false,
            details: true,
            pane: Pane::default(),
            enlarged: false,
            all_devices: false,
            shown_metric: GraphValue::default(),
        }
    }
}

impl Default for GraphValue {
    fn default() -> Self {
        Self::Space(MemorySpace::Dram)
    }
}

impl GraphValue {
    /// All metrics: memory, then the sensors that are drawn.
    pub fn all() -> impl Iterator<Item = Self> {
        let sensors = SENSORS.iter().filter(|sensor| sensor.is_graph).map(Self::Sensor);
        [Self::Space(MemorySpace::Dram), Self::Space(MemorySpace::L1)].into_iter().chain(sensors)
    }

    /// The name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Space(space) => space.name(),
            Self::Sensor(sensor) => sensor.name,
        }
    }

    /// The metric of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|shown_metric| shown_metric.name() == name)
    }

    /// What stands above its graphs.
    pub(super) fn heading(self) -> String {
        match self {
            Self::Space(space) => space.name().to_uppercase(),
            Self::Sensor(sensor) => sensor.heading.to_owned(),
        }
    }

    /// What a history calls it.
    #[must_use]
    pub const fn history_name(self) -> &'static str {
        match self {
            Self::Space(_) => DEVICE_MEMORY_SPACE_USED_BYTES.name,
            Self::Sensor(sensor) => sensor.name,
        }
    }

    /// What a series of a device in a history is of, if it is drawn.
    pub(super) fn of_series(series: &Series) -> Option<Self> {
        let label = series.label.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
        Self::all().find(|value| match value {
            Self::Space(space) => {
                series.metric == DEVICE_MEMORY_USED_BYTES.name
                    && label == Some(("space", space.name()))
            }
            Self::Sensor(sensor) => series.metric == sensor.metric.name && label == sensor.label,
        })
    }

    /// What a value in a history is divided by to be one of ours: the bytes that a device has.
    pub(super) fn unit(self, device: &Device) -> Option<f64> {
        match self {
            Self::Space(space) => {
                let bytes = *device.space(space)?.capacity_bytes.value()? as f64;
                (bytes > 0.0).then_some(bytes)
            }
            Self::Sensor(_) => Some(1.0),
        }
    }

    pub(super) fn place(self) -> usize {
        Self::all().position(|shown_metric| shown_metric == self).unwrap_or(0)
    }

    pub(super) fn next(self) -> Self {
        Self::all().nth(self.place() + 1).unwrap_or_default()
    }

    /// What it is of a device now: shares from 0 to 1, and base units.
    pub(super) fn value(self, device: &Device) -> Option<f64> {
        match self {
            Self::Space(space) => series::share(device, space),
            Self::Sensor(sensor) => sensor.value(&device.telemetry).map(SensorValue::as_f64),
        }
    }

    /// The value at which its graph is full, where that is known.
    pub(super) fn full(self, device: &Device) -> Option<f64> {
        match self {
            Self::Space(_) => Some(1.0),
            Self::Sensor(sensor) => sensor.full(&device.telemetry),
        }
    }

    /// The tone of a value of a device.
    pub(super) fn tone(self, value: f64, device: &Device) -> Tone {
        match self {
            Self::Space(_) => Tone::of_share(value, 1.0),
            Self::Sensor(sensor) => Tone::of_sensor(sensor, value, &device.telemetry),
        }
    }

    /// A value as people read it, and its unit.
    pub(super) fn parts(self, value: f64) -> (String, &'static str) {
        match self {
            Self::Space(_) => (format!("{:.0}", value * 100.0), "%"),
            Self::Sensor(sensor) => sensor.parts(value, 0),
        }
    }

    /// The same in one piece.
    pub(super) fn text(self, value: f64) -> String {
        let (number, unit) = self.parts(value);
        format!("{number} {unit}").trim_end().to_owned()
    }
}
