//! Sensor definitions: `sensors.toml` becomes the list that all outputs loop over, and the lines between marks in files
//! that have a field for each sensor.

mod entry;
mod views;

use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

use entry::{Sensor, SensorView, TelemetryPart, Type};

use super::metrics::Metric;
use super::{GenerateError, GeneratedFile, formatted};

/// Where sensors are defined.
const SOURCE: &str = "crates/schema/sensors.toml";
/// The Rust code, without its ending: a file with the list, and a directory with one of each part.
const RUST: &str = "crates/schema/src/sensor/definitions";

/// Files with a field for each sensor.
const MARKED: [&str; 7] = [
    "crates/schema/src/snapshot/device.rs",
    "crates/schema/src/snapshot/errors.rs",
    "crates/schema/src/snapshot/link.rs",
    "crates/schema/src/snapshot/nvlink.rs",
    "crates/schema/src/snapshot/power.rs",
    "crates/wire/src/telemetry/decode/device.rs",
    "crates/wire/proto/telemetry.proto",
];
/// Columns that a line may have.
const MAX_COLUMNS: usize = 100;
/// What begins and ends the lines that are made: `From sensors.toml: fields of load.`
const BEGIN: &str = "// From sensors.toml: ";
const END: &str = "// End of these.";
const PARTS: [(&str, Option<TelemetryPart>); 7] = [
    ("telemetry", None),
    ("load", Some(TelemetryPart::Load)),
    ("memory_counts", Some(TelemetryPart::MemoryCounts)),
    ("link", Some(TelemetryPart::Link)),
    ("power", Some(TelemetryPart::Power)),
    ("errors", Some(TelemetryPart::Errors)),
    ("nvlink", Some(TelemetryPart::Nvlink)),
];

/// The whole of `sensors.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definitions {
    sensor: Vec<Sensor>,
}

/// The list, and the files with lines between marks.
pub(super) fn outputs(
    root: &Path,
    metrics: &[Metric],
) -> Result<Vec<GeneratedFile>, GenerateError> {
    let path = root.join(SOURCE);
    let source = std::fs::read_to_string(&path)
        .map_err(|source| GenerateError::Read { path: path.clone(), source })?;
    let wrong = |reason: String| GenerateError::Metrics { path: SOURCE, reason };
    let sensors =
        toml::from_str::<Definitions>(&source).map_err(|error| wrong(error.to_string()))?.sensor;
    let sensors: Vec<(Sensor, &Metric)> = sensors
        .into_iter()
        .map(|sensor| {
            let metric = metrics.iter().find(|metric| metric.name == sensor.metric);
            let metric = metric.ok_or_else(|| wrong(format!("no metric {}", sensor.metric)))?;
            Ok((sensor, metric))
        })
        .collect::<Result<_, GenerateError>>()?;
    let mut outputs =
        vec![GeneratedFile { path: format!("{RUST}.rs"), text: formatted(root, &list(&sensors))? }];
    for (part, of) in PARTS {
        if let Some(code) = definitions(&sensors, of) {
            let path = format!("{RUST}/{part}.rs");
            outputs.push(GeneratedFile { path, text: formatted(root, &code)? });
        }
    }
    let views = views::outputs(root, &sensors).map_err(|reason| wrong(reason.to_string()))?;
    outputs.extend(views);
    for path in MARKED {
        let file = root.join(path);
        let text = std::fs::read_to_string(&file)
            .map_err(|source| GenerateError::Read { path: file.clone(), source })?;
        let text =
            between_marks(&text, &sensors).map_err(|reason| wrong(format!("{path}: {reason}")))?;
        outputs.push(GeneratedFile { path: path.to_owned(), text });
    }
    Ok(outputs)
}

/// The Rust source of the list, before rustfmt.
fn list(sensors: &[(Sensor, &Metric)]) -> String {
    let mut code = head();
    for (part, of) in PARTS {
        if sensors.iter().any(|(sensor, _)| sensor.of == of) {
            writeln!(code, "mod {part};").expect("a string takes any text");
        }
    }
    code.push_str(
        "\nuse super::Sensor;\n\n\
         /// Every sensor; those of one metric in the order of their series.\n\
         pub static SENSORS: &[Sensor] = &[\n",
    );
    for (sensor, _) in sensors {
        let part = sensor.of.map_or(PARTS[0].0, TelemetryPart::name);
        writeln!(code, "{part}::{},", sensor.field.to_uppercase())
            .expect("a string takes any text");
    }
    code.push_str("];\n");
    code
}

/// The Rust source of the sensors of one part, before rustfmt; none where it has none.
fn definitions(sensors: &[(Sensor, &Metric)], of: Option<TelemetryPart>) -> Option<String> {
    let mut sensors = sensors.iter().filter(|(sensor, _)| sensor.of == of).peekable();
    sensors.peek()?;
    let mut code = head();
    code.push_str("use crate::metric::definitions as metric;\n");
    if let Some(part) = of {
        code.push_str("use crate::reading::Absence;\n");
        code.push_str("use crate::sensor::{FieldPath, Sensor};\n");
        writeln!(code, "use crate::snapshot::{};", part.type_name())
            .expect("a string takes any text");
    } else {
        code.push_str("use crate::sensor::{FieldPath, Sensor};\n");
    }
    for (sensor, metric) in sensors {
        entry(&mut code, sensor, metric);
    }
    Some(code)
}

fn head() -> String {
    format!("// Generated from {SOURCE} by `cargo xtask generate`. Do not edit.\n\n")
}

/// The text with the lines between each two marks as the sensors make them.
fn between_marks(text: &str, sensors: &[(Sensor, &Metric)]) -> Result<String, String> {
    let mut made = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        writeln!(made, "{line}").expect("a string takes any text");
        let Some((_, mark)) = line.split_once(BEGIN) else { continue };
        let (kind, part) =
            mark.trim_end_matches('.').split_once(" of ").ok_or("a mark is wrong")?;
        let part = PARTS.iter().find(|(name, _)| *name == part).ok_or("a mark names no part")?.1;
        let indent = &line[..line.len() - line.trim_start().len()];
        for (sensor, _) in sensors.iter().filter(|(sensor, _)| sensor.of == part) {
            let lines = lines_of(sensor, kind, MAX_COLUMNS - indent.len());
            for line in lines.ok_or("a mark names nothing that is made")? {
                writeln!(made, "{indent}{line}").expect("a string takes any text");
            }
        }
        let end = lines.find(|line| line.trim() == END).ok_or("a mark has no end")?;
        writeln!(made, "{end}").expect("a string takes any text");
    }
    Ok(made)
}

/// A comment of lines that are no longer than this.
pub(super) fn comment(mark: &str, text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![mark.to_owned()];
    for word in text.split(' ') {
        let is_full = lines.last().is_some_and(|line| line.len() + 1 + word.len() > columns);
        if is_full {
            lines.push(mark.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines
}

/// What stands for a sensor where a file has a field for each.
fn lines_of(sensor: &Sensor, kind: &str, columns: usize) -> Option<Vec<String>> {
    let Sensor { field, doc, proto, r#type, .. } = sensor;
    let (rust, message) = match r#type {
        Type::Float => ("f64", "NumberReading"),
        Type::Whole => ("u64", "WholeReading"),
    };
    Some(match kind {
        "fields" => {
            let default = sensor
                .later
                .then(|| format!("#[serde(default = \"Reading::<{rust}>::unreported\")]"));
            let field = format!("pub {field}: Reading<{rust}>,");
            comment("///", doc, columns).into_iter().chain(default).chain([field]).collect()
        }
        "absences" => vec![format!("{field}: Reading::absent(reason, detail),")],
        "decoding" => vec![format!("{field}: reading(from.{field}),")],
        "messages" => {
            [comment("//", doc, columns), vec![format!("{message} {field} = {proto};")]].concat()
        }
        _ => return None,
    })
}

fn entry(code: &mut String, sensor: &Sensor, metric: &Metric) {
    let Sensor { field, proto, of, r#type, label, history, title, help, decimals, limit, .. } =
        sensor;
    let (name, heading) = (sensor.name(metric), sensor.heading());
    let [column, graph, csv] =
        [SensorView::Table, SensorView::Graph, SensorView::Csv].map(|view| sensor.is_in(view));
    let constant = metric.name.trim_start_matches("telltale_").to_uppercase();
    let label = label.first_key_value();
    let access = match r#type {
        Type::Float => "Float",
        Type::Whole => "Whole",
    };
    let part = of.map(TelemetryPart::name);
    let place =
        of.map_or_else(String::new, |part| format!("{}: {}, ", part.name(), part.type_name()));
    writeln!(
        code,
        "\npub(super) const {}: Sensor = Sensor {{ field: {field:?}, part: {part:?}, proto: {proto}, metric: metric::{constant}, label: {label:?}, history: {history:?}, \
         title: {title:?}, name: {name:?}, help: {help:?}, decimals: {decimals}, \
         heading: {heading:?}, is_column: {column}, is_graph: {graph}, is_csv: {csv}, limit: {limit:?}, \
         access: access!({access}, {place}{field}) }};",
        field.to_uppercase()
    )
    .expect("a string takes any text");
}
