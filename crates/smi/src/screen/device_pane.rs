//! The pane of devices: a row each, with bars and the history of one metric.

use ratatui_core::layout::Rect;
use telltale_schema::memory::MemorySpace;
use telltale_schema::metric::Unit;
use telltale_schema::quantity;
use telltale_schema::sensor::{SENSORS, Sensor};
use telltale_schema::snapshot::{Device, Snapshot};

use super::canvas::{Canvas, cells};
use super::device_rows::{DeviceRow, IdleDevices};
use super::frame::Places;
use super::graph;
use super::series::{GraphSeries, share};
use super::settings::GraphValue;
use super::theme::Role;
use super::view::{Focus, View};
use crate::faults;
use crate::style::Tone;
use crate::text;

/// Where the values of a device are, in its part of a row.
struct Columns {
    id: u16,
    bar: u16,
    bytes: u16,
    second: Second,
    /// Sensors with a column, and its cells.
    sensors: Vec<(&'static Sensor, u16)>,
}

/// What the second bar of each row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    /// How much of its L1 is in use.
    L1,
    /// How busy it is, or another sensor that is a share: where no device has L1 to show and one tells this.
    Sensor(&'static Sensor),
}

/// Cells of an id at least, and of a graph where ids are long.
const ID_WIDTH: u16 = 12;
const GRAPH_WIDTH: u16 = 6;

/// The sensors that have a column where these devices are shown.
fn sensors(devices: &[Device]) -> impl Iterator<Item = &'static Sensor> {
    let tells = |sensor: &Sensor| {
        sensor.part.is_none()
            || devices.iter().any(|device| sensor.reading(&device.telemetry).is_some())
    };
    SENSORS.iter().filter(move |sensor| sensor.is_column && tells(sensor))
}

fn is_share(sensor: &Sensor) -> bool {
    sensor.metric.unit == Unit::Ratio
}

/// Cells of a sensor's column: of its unit's longest usual value, and of what stands above it.
fn room_of(sensor: &Sensor) -> u16 {
    let value = match sensor.metric.unit {
        Unit::Celsius | Unit::Ratio => 5,
        Unit::Watts => 7,
        _ => 9,
    };
    value.max(cells(text::width(sensor.heading)) + 1)
}

impl Columns {
    /// For devices whose longest id takes so many cells: they are rather read than bars are wide.
    fn within(width: u16, longest: u16, devices: &[Device]) -> Self {
        let second = Second::of(devices);
        let shown = sensors(devices).filter(|sensor| second != Second::Sensor(sensor));
        let list: Vec<_> = shown.map(|sensor| (sensor, room_of(sensor))).collect();
        let sensors: u16 = list.iter().map(|(_, cells)| cells).sum();
        let of = |bar, bytes| {
            let columns = Self { id: 0, bar, bytes, second, sensors: list.clone() };
            let room = width.saturating_sub(2 * columns.memory() + sensors + 2 + GRAPH_WIDTH);
            Self { id: longest.min(room).max(ID_WIDTH), ..columns }
        };
        let wide = of(12, 10);
        if width < 100 || wide.id < longest { of(8, 0) } else { wide }
    }

    /// Cells of one memory space.
    fn memory(&self) -> u16 {
        self.bar + 5 + self.bytes + 1
    }
}

impl Second {
    fn of(devices: &[Device]) -> Self {
        if devices.iter().any(|device| device.space(MemorySpace::L1).is_some()) {
            return Self::L1;
        }
        sensors(devices).find(|sensor| is_share(sensor)).map_or(Self::L1, Self::Sensor)
    }

    fn title(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::Sensor(sensor) => sensor.heading,
        }
    }
}

/// Paints the pane.
pub(super) fn paint(
    view: &mut View,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
    places: &mut Places,
) {
    let inside = Rect::new(area.x, area.y + 1, area.width, area.height - 1);
    let across = places.device_columns;
    let width = area.width / cells(across);
    if shown.devices.is_empty() {
        let words = "No device is to be seen.";
        canvas.text(inside.x, inside.y, inside.width, words, Role::Faint);
        return;
    }
    let names = view.device_rows.iter().map(|row| text::width(&row.name(&shown.devices)));
    let longest = names.max();
    let columns = Columns::within(width, cells(longest.unwrap_or(0)), &shown.devices);
    for at in 0..across.min(view.device_rows.len()) {
        let x = area.x + width * cells(at);
        let width = width.saturating_sub(u16::from(across > 1));
        device_heading(view, canvas, Rect::new(x, area.y, width, 1), &columns);
    }
    let first = view.device.first(usize::from(inside.height) * across);
    let first = first.div_ceil(across) * across;
    for (at, row) in view.device_rows.iter().enumerate().skip(first) {
        let place = at - first;
        let y = inside.y + cells(place / across);
        if y >= inside.bottom() {
            break;
        }
        let x = inside.x + width * cells(place % across);
        let area = Rect::new(x, y, width.saturating_sub(u16::from(across > 1)), 1);
        match row {
            DeviceRow::Device(place) => {
                device_row(view, canvas, area, &shown.devices[*place], &columns);
                if view.machines.is_old_device(*place) {
                    canvas.style(area, Role::Faint);
                }
            }
            DeviceRow::Idle(idle) => idle_row(canvas, area, shown, idle, &columns),
        }
        if at == view.device.at() {
            let id = Rect { width: columns.id.min(area.width), ..area };
            let focused = view.focus == Focus::Devices;
            canvas.style(id, if focused { Role::Selected } else { Role::Remembered });
        }
    }
    places.devices = inside;
    places.first_device = first;
}

fn device_heading(view: &View, canvas: &mut Canvas<'_>, area: Rect, columns: &Columns) {
    let memory = columns.memory();
    let mut x = area.x;
    for (title, width) in
        [("DEVICE", columns.id + 1), ("DRAM", memory), (columns.second.title(), memory)]
    {
        canvas.text(x, area.y, width, title, Role::Heading);
        x += width;
    }
    for (sensor, width) in &columns.sensors {
        canvas.right(x, area.y, *width, sensor.heading, Role::Heading);
        x += width;
    }
    let room = area.right().saturating_sub(x + 1);
    canvas.text(x + 1, area.y, room, &view.settings.shown_metric.heading(), Role::Heading);
}

fn device_row(
    view: &View,
    canvas: &mut Canvas<'_>,
    area: Rect,
    device: &Device,
    columns: &Columns,
) {
    let y = area.y;
    let role = faults::tone(device.health().state).into();
    canvas.text(area.x, y, columns.id, &device.id, role);
    let mut x = area.x + columns.id + 1;
    memory(view, canvas, (x, y), columns, device, MemorySpace::Dram);
    x += columns.memory();
    match columns.second {
        Second::L1 => memory(view, canvas, (x, y), columns, device, MemorySpace::L1),
        Second::Sensor(sensor) => {
            // That a device works is no alarm.
            let share = GraphValue::Sensor(sensor).value(device);
            let parts: Vec<_> = share.map(|share| (share, Role::Bar)).into_iter().collect();
            share_bar(canvas, (x, y), columns, share, &parts, Role::Plain);
        }
    }
    x += columns.memory();
    for (sensor, width) in &columns.sensors {
        let shown_metric = GraphValue::Sensor(sensor);
        let (text, role) = match shown_metric.value(device) {
            Some(value) => (shown_metric.text(value), shown_metric.tone(value, device).into()),
            None => (String::from("n/a"), Role::Faint),
        };
        canvas.right(x, y, *width, &text, role);
        x += width;
    }
    let shown_metric = view.settings.shown_metric;
    let room = area.right().saturating_sub(x + 1);
    if let Some(series) = view.history.device(&device.id, shown_metric) {
        let most = most(device, shown_metric, series, room);
        graph::paint(canvas, Rect::new(x + 1, y, room, 1), series, most);
    }
}

/// Idle devices of a tray: that nothing is in use of what they have, and how warm they are.
fn idle_row(
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
    idle: &IdleDevices,
    columns: &Columns,
) {
    let devices = || idle.places.iter().map(|place| &shown.devices[*place]);
    canvas.text(area.x, area.y, columns.id, &idle.name(), Role::Plain);
    let capacity =
        |device: &Device| Some(*device.space(MemorySpace::Dram)?.capacity_bytes.value()?);
    let dram: Option<u64> = devices().map(capacity).sum();
    let dram = dram.map_or_else(String::new, |dram| format!(" of {}", quantity::bytes(dram)));
    let sensor = SENSORS.iter().find(|sensor| sensor.is_column).map(GraphValue::Sensor);
    let values =
        sensor.into_iter().flat_map(|sensor| devices().filter_map(move |it| sensor.value(it)));
    let least = values.clone().reduce(f64::min);
    let largest = values.reduce(f64::max);
    let range =
        sensor.zip(least.zip(largest)).map_or_else(String::new, |(sensor, (least, most))| {
            match (sensor.parts(least).0, sensor.text(most)) {
                (least, most) if most.starts_with(&format!("{least} ")) => format!(", {most}"),
                (least, most) => format!(", {least} to {most}"),
            }
        });
    let x = area.x + columns.id + 1;
    let words = format!("no process, 0 B{dram}{range}");
    canvas.text(x, area.y, area.right().saturating_sub(x), &words, Role::Faint);
}

/// A bar by process, its share, and the bytes where there is room.
fn memory(
    view: &View,
    canvas: &mut Canvas<'_>,
    (x, y): (u16, u16),
    columns: &Columns,
    device: &Device,
    space: MemorySpace,
) {
    let used = device.space(space).and_then(|usage| usage.used_bytes.value());
    let share = share(device, space);
    let role = share.map_or(Role::Plain, |share| Tone::of_share(share, 1.0).into());
    let parts = match (share, used) {
        (Some(share), Some(used)) if *used > 0 => view
            .stacks
            .parts(&device.id, space, *used)
            .into_iter()
            .map(|(bytes, role)| (share * bytes as f64 / *used as f64, role))
            .collect(),
        _ => Vec::new(),
    };
    share_bar(canvas, (x, y), columns, share, &parts, role);
    if let Some(used) = used {
        canvas.right(x + columns.bar + 5, y, columns.bytes, &quantity::bytes(*used), Role::Plain);
    }
}

/// A bar of these parts, and the share as text in this role.
fn share_bar(
    canvas: &mut Canvas<'_>,
    (x, y): (u16, u16),
    columns: &Columns,
    share: Option<f64>,
    parts: &[(f64, Role)],
    role: Role,
) {
    match share {
        Some(share) => {
            canvas.bar((x, y), columns.bar, parts);
            let share = format!("{:.0}%", share * 100.0);
            canvas.right(x + columns.bar, y, 5, &share, role);
        }
        None => canvas.right(x + columns.bar, y, 5, "n/a", Role::Faint),
    }
}

/// What the top of a graph stands for: the limit where there is one, else the largest seen.
pub(super) fn most(
    device: &Device,
    shown_metric: GraphValue,
    series: &GraphSeries,
    samples: u16,
) -> f32 {
    // A graph has some hundred levels.
    #[allow(clippy::cast_possible_truncation)]
    shown_metric.full(device).map_or_else(|| graph::largest(series, samples), |full| full as f32)
}
