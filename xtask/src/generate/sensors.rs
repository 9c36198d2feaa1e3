//! Sensor definitions: `sensors.toml` becomes the list that all outputs loop over.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;
use telltale_schema::metric::{DEFINITIONS, MetricDefinition};

use super::{GenerateError, Output, formatted};

/// Where sensors are defined.
const SOURCE: &str = "crates/schema/sensors.toml";
const RUST: &str = "crates/schema/src/sensor/definitions.rs";

/// The whole of `sensors.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definitions {
    sensor: Vec<Sensor>,
}

/// One entry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sensor {
    field: String,
    of: Option<Part>,
    r#type: Type,
    metric: String,
    #[serde(default)]
    label: BTreeMap<String, String>,
    history: Option<u16>,
    title: String,
    help: String,
    name: Option<String>,
    #[serde(default)]
    decimals: usize,
}

/// A part of the telemetry that not all devices have.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Load,
    MemoryCounts,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Type {
    Float,
    Whole,
}

/// The Rust file.
pub(super) fn output(root: &Path) -> Result<Output, GenerateError> {
    let path = root.join(SOURCE);
    let source = std::fs::read_to_string(&path)
        .map_err(|source| GenerateError::Read { path: path.clone(), source })?;
    let wrong = |reason: String| GenerateError::Metrics { path: SOURCE, reason };
    let sensors =
        toml::from_str::<Definitions>(&source).map_err(|error| wrong(error.to_string()))?.sensor;
    let mut code = format!(
        "// Generated from {SOURCE} by `cargo xtask generate`. Do not edit.\n\n\
         use super::{{Access, Sensor}};\nuse crate::metric::definitions as metric;\n\
         use crate::reading::Absence;\nuse crate::snapshot::{{Load, MemoryCounts}};\n\n\
         /// Every sensor; those of one metric in the order of their series.\n\
         pub static SENSORS: &[Sensor] = &[\n"
    );
    for sensor in &sensors {
        let metric = DEFINITIONS.iter().find(|metric| metric.name == sensor.metric);
        let metric = metric.ok_or_else(|| wrong(format!("no metric {}", sensor.metric)))?;
        entry(&mut code, sensor, metric);
    }
    code.push_str("];\n");
    Ok(Output { path: RUST.to_owned(), text: formatted(root, &code)? })
}

fn entry(code: &mut String, sensor: &Sensor, metric: &MetricDefinition) {
    let Sensor { field, of, r#type, label, history, title, help, name, decimals, .. } = sensor;
    let constant = metric.name.trim_start_matches("telltale_").to_uppercase();
    let label = label.first_key_value();
    let suffix = metric.unit.suffix().unwrap_or("total");
    let short = field.trim_end_matches(suffix).trim_end_matches('_');
    let name = name.as_deref().unwrap_or(short);
    let access = match r#type {
        Type::Float => "Float",
        Type::Whole => "Whole",
    };
    let (part, get, place) = match of {
        None => (None, format!("Some(&telemetry.{field})"), format!("&mut telemetry.{field}")),
        Some(part) => {
            let (part, type_name) = match part {
                Part::Load => ("load", "Load"),
                Part::MemoryCounts => ("memory_counts", "MemoryCounts"),
            };
            let made = format!("Box::new({type_name}::absent(Absence::NotKept, \"\"))");
            (
                Some(part),
                format!("telemetry.{part}.as_ref().map(|part| &part.{field})"),
                format!("&mut telemetry.{part}.get_or_insert_with(|| {made}).{field}"),
            )
        }
    };
    writeln!(
        code,
        "Sensor {{ field: {field:?}, part: {part:?}, metric: metric::{constant}, label: {label:?}, history: {history:?}, \
         title: {title:?}, name: {name:?}, help: {help:?}, decimals: {decimals}, \
         access: Access::{access}(|telemetry| {get}, |telemetry| {place}) }},"
    )
    .expect("a string takes any text");
}
