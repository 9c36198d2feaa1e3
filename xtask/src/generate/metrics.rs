//! Metric definitions: `metrics.toml` becomes Rust data and a table for people.
//!
//! The naming rules of Prometheus are checked here, once, so that no exporter has to.

mod rules;
mod text;

use std::path::Path;

use serde::Deserialize;

use super::{GenerateError, Output, formatted};

/// Where metrics are defined.
pub const SOURCE: &str = "crates/schema/metrics.toml";
const RUST: &str = "crates/schema/src/metric/definitions.rs";
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
struct Metric {
    name: String,
    unit: Unit,
    kind: Kind,
    scope: Scope,
    labels: Vec<String>,
    help: String,
    since: String,
    absent_when: String,
}

/// The variants of `telltale_schema::metric::Unit`; `Debug` prints the Rust name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Bytes,
    Seconds,
    Celsius,
    Volts,
    Amperes,
    Watts,
    Joules,
    Hertz,
    Ratio,
    Count,
    RevolutionsPerMinute,
    None,
}

/// The variants of `telltale_schema::metric::MetricKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// The variants of `telltale_schema::metric::Scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scope {
    Device,
    Process,
    Source,
    Service,
}

impl Unit {
    /// The words in tables, and the ending of a metric's name where the unit has one.
    fn words(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::Celsius => "celsius",
            Self::Volts => "volts",
            Self::Amperes => "amperes",
            Self::Watts => "watts",
            Self::Joules => "joules",
            Self::Hertz => "hertz",
            Self::Ratio => "ratio",
            Self::Count => "count",
            Self::RevolutionsPerMinute => "revolutions_per_minute",
            Self::None => "none",
        }
    }
}

/// The Rust file and the table, where the schema crate defines metrics.
pub(super) fn outputs(root: &Path) -> Result<Vec<Output>, GenerateError> {
    let path = root.join(SOURCE);
    let source = std::fs::read_to_string(&path)
        .map_err(|source| GenerateError::Read { path: path.clone(), source })?;
    let metrics = parse(&source)?;
    Ok(vec![
        Output { path: RUST.to_owned(), text: formatted(root, &text::rust(&metrics))? },
        Output { path: TABLE.to_owned(), text: text::table(&metrics) },
    ])
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
