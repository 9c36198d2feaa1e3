//! Tables of rows as people read them: aligned in a terminal, with bars in a notebook.

use telltale_query::{Field, Value};
use telltale_schema::memory::MemorySpace;
use telltale_schema::quantity;
use telltale_schema::sensor::SENSORS;
use telltale_schema::snapshot::{self, Snapshot};
use telltale_schema::text::printable;
use telltale_smi::{Cell, Column, Style};

use crate::columns::{KindPart, RowKind, RowPlace};
use crate::value::whole;

/// Rows that are printed; the others are counted.
const MAX_ROWS: usize = 60;
/// How objects print themselves: as in a file, with more than ASCII.
pub(crate) const STYLE: Style = Style { width: None, color: false, unicode: true };
/// How many characters a whole bar has.
const BAR: usize = 10;

/// What stands in one cell.
struct Shown {
    text: String,
    /// Which share of a bar is full, where it has one.
    share: Option<f64>,
}

/// The table for a terminal.
pub(crate) fn text(snapshot: &Snapshot, kind: RowKind, rows: &[RowPlace]) -> String {
    let columns = titles(kind).iter().map(|(title, is_number)| match is_number {
        true => Column::right(title, 0),
        false => Column::left(title, 0),
    });
    let mut drawn = telltale_smi::Table::new(columns.collect());
    for place in rows.iter().take(MAX_ROWS) {
        let cells = cells(snapshot, place).into_iter().map(|shown| match shown.share {
            Some(share) => Cell::new(format!("{} {}", bar(share), shown.text)),
            None => Cell::new(shown.text),
        });
        drawn.push(cells.collect());
    }
    let text = drawn.render(&STYLE) + &more(rows).unwrap_or_default();
    text.trim_end().to_owned()
}

/// The table for a notebook.
pub(crate) fn html(snapshot: &Snapshot, kind: RowKind, rows: &[RowPlace]) -> String {
    let mut html = String::from("<table class=\"telltale\"><thead><tr>");
    for (title, _) in titles(kind) {
        html.push_str(&format!("<th style=\"text-align:left\">{title}</th>"));
    }
    html.push_str("</tr></thead><tbody>");
    for place in rows.iter().take(MAX_ROWS) {
        html.push_str("<tr>");
        for (shown, (_, is_number)) in cells(snapshot, place).iter().zip(titles(kind)) {
            let side = if *is_number { "right" } else { "left" };
            let text = escaped(&shown.text);
            let bar = shown.share.map_or_else(String::new, |share| {
                let percent = share.clamp(0.0, 1.0) * 100.0;
                format!(
                    "<div style=\"width:8em;height:.5em;background:#8883\"><div style=\"width:\
                     {percent:.0}%;height:100%;background:#3a7\"></div></div>"
                )
            });
            html.push_str(&format!("<td style=\"text-align:{side}\">{text}{bar}</td>"));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    if rows.is_empty() {
        html.push_str("<p>none</p>");
    }
    if let Some(more) = more(rows) {
        html.push_str(&format!("<p>{more}</p>"));
    }
    html
}

/// How many rows are not shown.
fn more(rows: &[RowPlace]) -> Option<String> {
    let left = rows.len().checked_sub(MAX_ROWS).filter(|left| *left > 0)?;
    Some(format!("and {left} more"))
}

/// The headings of what is shown, and whether numbers stand below.
fn titles(kind: RowKind) -> &'static [(&'static str, bool)] {
    match kind {
        RowKind::Devices => &[
            ("DEVICE", false),
            ("PRODUCT", false),
            ("HEALTH", false),
            ("TEMPERATURE", true),
            ("POWER", true),
            ("DRAM", false),
            ("HOLDERS", true),
        ],
        RowKind::Processes => &[
            ("PID", true),
            ("USER", false),
            ("NAME", false),
            ("DEVICES", false),
            ("DRAM", true),
            ("L1", true),
        ],
        RowKind::Memory => &[
            ("DEVICE", false),
            ("KIND", false),
            ("HOLDER", false),
            ("BYTES", true),
            ("BUFFERS", true),
            ("PEAK", true),
        ],
    }
}

fn cells(snapshot: &Snapshot, place: &RowPlace) -> Vec<Shown> {
    match place {
        RowPlace::Device(at) => device(&snapshot.devices[*at]),
        RowPlace::Process(at) => process(snapshot, &snapshot.processes[*at]),
        RowPlace::Memory(part) => memory(snapshot, part),
    }
}

fn device(device: &snapshot::Device) -> Vec<Shown> {
    let sensor = |name: &str| {
        let found = SENSORS.iter().find(|sensor| sensor.name == name);
        let value = found.and_then(|it| Some((it, it.value(&device.telemetry)?.as_f64())));
        plain(value.map(|(sensor, value)| sensor.text(value, sensor.decimals)))
    };
    let holders = device.holders.value().map(|holders| holders.len().to_string());
    vec![
        plain(Some(printable(&device.id))),
        plain(Some(printable(device.identity.product()))),
        plain(Some(device.health().state.name().to_owned())),
        sensor("temperature"),
        sensor("power"),
        space(device, MemorySpace::Dram),
        plain(holders),
    ]
}

fn space(device: &snapshot::Device, space: MemorySpace) -> Shown {
    let usage = device.space(space);
    let used = usage.and_then(|usage| usage.used_bytes.value().copied());
    let capacity = usage.and_then(|usage| usage.capacity_bytes.value().copied());
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| String::from("-"), quantity::bytes);
    let share = used.zip(capacity).filter(|(_, capacity)| *capacity > 0);
    Shown {
        text: format!("{} / {}", bytes(used), bytes(capacity)),
        share: share.map(|(used, capacity)| used as f64 / capacity as f64),
    }
}

fn process(snapshot: &Snapshot, process: &snapshot::Process) -> Vec<Shown> {
    let bytes = |name: &str| {
        let value = Field::named(name).map(|field| field.total(process));
        plain(match value {
            Some(Value::Number(number)) => Some(quantity::bytes(whole(number))),
            _ => None,
        })
    };
    let devices = process.devices.iter().filter_map(|held| snapshot.devices.get(held.device));
    let devices: Vec<_> = devices.map(|device| printable(&device.id)).collect();
    let user = process.user.value().map(|user| printable(user));
    vec![
        plain(process.pid.map(|pid| pid.to_string())),
        plain(user.or_else(|| process.uid.value().map(ToString::to_string))),
        plain(Some(printable(&process.name))),
        plain(Some(devices.join(" "))),
        bytes("dram"),
        bytes("l1"),
    ]
}

fn memory(snapshot: &Snapshot, part: &KindPart) -> Vec<Shown> {
    let process = part.held.map(|(at, _)| &snapshot.processes[at]);
    let holder = process.map(|process| match process.pid {
        Some(pid) => format!("{pid} {}", printable(&process.name)),
        None => printable(&process.name),
    });
    let recorded = part.held.and_then(|(_, usage)| usage.recorded().copied());
    vec![
        plain(Some(printable(&snapshot.devices[part.device].id))),
        plain(Some(part.kind.name().to_owned())),
        plain(Some(holder.unwrap_or_else(|| part.holder.name().to_owned()))),
        plain(Some(quantity::bytes(part.bytes))),
        plain(recorded.map(|usage| quantity::count(usage.live_buffers))),
        plain(recorded.map(|usage| quantity::bytes(usage.peak_bytes))),
    ]
}

/// A text, or what stands where there is no value.
fn plain(text: Option<String>) -> Shown {
    Shown { text: text.unwrap_or_else(|| String::from("-")), share: None }
}

fn bar(share: f64) -> String {
    let full = (0..BAR).filter(|at| share.clamp(0.0, 1.0) * BAR as f64 > *at as f64 + 0.5).count();
    "█".repeat(full) + &"░".repeat(BAR - full)
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
