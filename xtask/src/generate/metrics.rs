//! Metric definitions: `metrics.toml` becomes Rust data and a table for people.
//!
//! The naming rules of Prometheus are checked here, once, so that no exporter has to.

mod rules;
mod text;

use std::path::Path;

use serde::Deserialize;
use telltale_schema::metric::{MetricKind, Scope, Unit};

use super::{GenerateError, GeneratedFile, formatted};

/// Where metrics are defined.
pub const SOURCE: &str = "crates/schema/metrics.toml";
/// The Rust code, without its ending: a file with the list, and a directory with [`text::FILES`].
const RUST: &str = "crates/schema/src/metric/definitions";
const TABLE: &str = "docs/metrics.md";

/// The whole of `metrics.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definitions {
    metric: Vec<Metric>,
}

/// One entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) unit: Unit,
    kind: MetricKind,
    scope: Scope,
    labels: Vec<String>,
    help: String,
    since: String,
    absent_when: String,
    pub(super) rate_of: Option<String>,
    otlp: Option<Convention>,
}

/// A metric in the semantic conventions of OpenTelemetry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Convention {
    name: String,
    #[serde(default)]
    adds_up: bool,
    attribute: Option<(String, String)>,
}

/// The Rust files and the table, where the schema crate defines metrics.
pub(super) fn outputs(
    root: &Path,
    metrics: &[Metric],
) -> Result<Vec<GeneratedFile>, GenerateError> {
    let mut outputs = vec![
        GeneratedFile { path: format!("{RUST}.rs"), text: formatted(root, &text::list(metrics))? },
        GeneratedFile { path: TABLE.to_owned(), text: text::table(metrics) },
    ];
    for file in text::FILES {
        if let Some(code) = text::definitions(metrics, file) {
            let path = format!("{RUST}/{file}.rs");
            outputs.push(GeneratedFile { path, text: formatted(root, &code)? });
        }
    }
    Ok(outputs)
}

/// The metrics that are defined, by name.
pub(super) fn defined(root: &Path) -> Result<Vec<Metric>, GenerateError> {
    let path = root.join(SOURCE);
    let source = std::fs::read_to_string(&path)
        .map_err(|source| GenerateError::Read { path: path.clone(), source })?;
    parse(&source)
}

/// Checks definitions and returns how many there are; for tests of the rules.
///
/// # Errors
/// When an entry breaks a rule.
pub fn check(source: &str) -> Result<usize, GenerateError> {
    parse(source).map(|metrics| metrics.len())
}

fn parse(source: &str) -> Result<Vec<Metric>, GenerateError> {
    let wrong = |reason: String| GenerateError::Metrics { path: SOURCE, reason };
    let mut metrics =
        toml::from_str::<Definitions>(source).map_err(|error| wrong(error.to_string()))?.metric;
    for metric in &metrics {
        rules::breach(metric)
            .map_or(Ok(()), |reason| Err(wrong(format!("{}: {reason}", metric.name))))?;
    }
    metrics.sort_by(|one, other| one.name.cmp(&other.name));
    match metrics.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(wrong(format!("{} is defined twice", pair[0].name))),
        None => Ok(metrics),
    }
}
