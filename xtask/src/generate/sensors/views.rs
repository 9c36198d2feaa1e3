//! What views that are not Rust loop over: the page's list of sensors, and the dashboard's panels.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use telltale_schema::metric::Unit;

use super::entry::{Sensor, SensorView, TelemetryPart};
use crate::generate::GeneratedFile;
use crate::generate::metrics::Metric;

const PAGE: &str = "crates/node/src/page/assets/sensors.js";
const DASHBOARD: &str = "deploy/grafana/telltale.json";
/// The rows of the dashboard between which the panels are: those before are of memory, those behind of links.
const ROWS: [&str; 2] =
    ["\"title\": \"Sensors\"", "\"title\": \"Links, programs and the service\""];
/// A panel's place: three in a row, each so wide and high.
const ACROSS: usize = 3;
const WIDTH: usize = 8;
const HEIGHT: usize = 8;
/// The number of the first panel that is made.
const FIRST_ID: usize = 100;

/// Both.
pub(super) fn outputs(
    root: &Path,
    sensors: &[(Sensor, &Metric)],
) -> Result<[GeneratedFile; 2], io::Error> {
    let dashboard = std::fs::read_to_string(root.join(DASHBOARD))?;
    let text = with_panels(&dashboard, sensors)
        .ok_or_else(|| io::Error::other(format!("{DASHBOARD} lacks a row of {ROWS:?}")))?;
    Ok([
        GeneratedFile { path: PAGE.to_owned(), text: list(sensors) },
        GeneratedFile { path: DASHBOARD.to_owned(), text },
    ])
}

/// The list for the page, with what reads a snapshot by it.
fn list(sensors: &[(Sensor, &Metric)]) -> String {
    let entry = |(sensor, metric): &(Sensor, &Metric)| {
        let entry = json!({
            "field": sensor.field,
            "part": sensor.of.map(TelemetryPart::name),
            "name": sensor.name(metric),
            "title": title(sensor, metric),
            "unit": metric.unit,
            "metric": metric.name,
            "label": sensor.label.first_key_value(),
            "limit": sensor.limit,
            "column": sensor.is_in(SensorView::Table),
            "graph": sensor.is_in(SensorView::Graph),
        });
        format!("  {entry},\n")
    };
    let entries: String = sensors.iter().map(entry).collect();
    format!(
        "// Generated from crates/schema/sensors.toml by `cargo xtask generate`. Do not edit.\n\n\
         /** Every sensor of devices. */\nexport const SENSORS = [\n{entries}];\n\n\
         /** What it says of a device; undefined where the device has no such part. */\n\
         export function of(telemetry, {{ field, part }}) {{\n  \
           return (part ? telemetry[part] : telemetry)?.[field];\n}}\n\n\
         /** The sensor with this field. */\n\
         export function named(field) {{\n  return SENSORS.find((sensor) => sensor.field === field);\n}}\n"
    )
}

/// Its name for people, as a title: the names of what links have are abbreviations.
fn title(sensor: &Sensor, metric: &Metric) -> String {
    if sensor.of == Some(TelemetryPart::Link) {
        return sensor.title.clone();
    }
    let name = sensor.name(metric).replace('_', " ");
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

/// The dashboard with a panel for each sensor that is drawn, and what is behind them moved to make room.
fn with_panels(dashboard: &str, sensors: &[(Sensor, &Metric)]) -> Option<String> {
    let [begin, end] = ROWS.map(|row| dashboard.find(row));
    let begin = begin? + dashboard[begin?..].find("\n  },\n")? + "\n  },\n".len();
    let end = dashboard[..end?].rfind("\n  {\n")? + 1;
    let (before, behind) = (&dashboard[..begin], &dashboard[end..]);
    let top = heights(before).last()? + 1;
    // Prometheus has no rates: panels of the rows behind compute them.
    let is_drawn = |(sensor, metric): &(Sensor, &Metric)| {
        sensor.is_in(SensorView::Graph) && metric.rate_of.is_none()
    };
    let drawn: Vec<usize> = (0..sensors.len()).filter(|at| is_drawn(&sensors[*at])).collect();
    let mut text = before.to_owned();
    for (place, at) in drawn.iter().enumerate() {
        let panel = panel(sensors, place, *at, top);
        let panel = serde_json::to_string_pretty(&panel).expect("a panel has only string keys");
        for line in panel.lines() {
            // The file is indented by one.
            let depth = (line.len() - line.trim_start().len()) / 2;
            text.push_str(&" ".repeat(depth + 2));
            text.push_str(line.trim_start());
            text.push('\n');
        }
        text.truncate(text.len() - 1);
        text.push_str(",\n");
    }
    let now = top + drawn.len().div_ceil(ACROSS) * HEIGHT;
    let was = heights(behind).next()?;
    for line in behind.lines() {
        match height(line) {
            Some(height) => text.push_str(&format!("    \"y\": {},", height - was + now)),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    Some(text)
}

/// A panel's place from the top, where the line has one.
fn height(line: &str) -> Option<usize> {
    line.strip_prefix("    \"y\": ")?.strip_suffix(',')?.parse().ok()
}

fn heights(text: &str) -> impl Iterator<Item = usize> {
    text.lines().filter_map(height)
}

fn panel(sensors: &[(Sensor, &Metric)], place: usize, at: usize, top: usize) -> Value {
    let (sensor, metric) = &sensors[at];
    let source = json!({"type": "prometheus", "uid": "${DS_PROMETHEUS}"});
    let chosen = "instance=~\"$instance\",device=~\"$device\"";
    let labels: String =
        sensor.label.iter().map(|(name, value)| format!(",{name}=\"{value}\"")).collect();
    let target = |reference: &str, query: String, legend: &str| json!({"datasource": source, "expr": query, "legendFormat": legend, "refId": reference});
    let series = format!("{}{{{chosen}{labels}}}", metric.name);
    let mut targets = vec![target("A", series, "{{instance}} {{device}}")];
    if let Some((_, limit)) =
        sensors.iter().find(|(one, _)| Some(&one.field) == sensor.limit.as_ref())
    {
        targets.push(target("B", format!("min({}{{{chosen}}})", limit.name), "lowest limit"));
    }
    json!({
        "id": FIRST_ID + place,
        "title": title(sensor, metric),
        "type": "timeseries",
        "datasource": source,
        "gridPos": {
            "x": place % ACROSS * WIDTH, "y": top + place / ACROSS * HEIGHT, "w": WIDTH, "h": HEIGHT,
        },
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": unit(metric.unit)}, "overrides": []},
        "options": {
            "legend": {
                "displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    })
}

/// A unit as Grafana calls it.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Seconds => "s",
        Unit::Celsius => "celsius",
        Unit::Volts => "volt",
        Unit::Amperes => "amp",
        Unit::Watts => "watt",
        Unit::Joules => "joule",
        Unit::Hertz => "hertz",
        Unit::Ratio => "percentunit",
        Unit::RevolutionsPerMinute => "rotrpm",
        Unit::BytesPerSecond => "Bps",
        Unit::Count | Unit::None => "short",
    }
}
