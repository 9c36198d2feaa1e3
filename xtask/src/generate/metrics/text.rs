//! The Rust code and the Markdown table that metric definitions become.

use std::fmt::Write;

use super::{Metric, Scope};

/// The Rust source of the definitions, before rustfmt.
pub(super) fn rust(metrics: &[Metric]) -> String {
    let mut code = String::from(
        "// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.\n\n\
         use super::{MetricDefinition, MetricKind, Scope, Unit};\n\n\
         /// Every metric Telltale can expose, sorted by name.\n\
         pub static DEFINITIONS: &[MetricDefinition] = &[\n",
    );
    for metric in metrics {
        let Metric { name, unit, kind, scope, labels, help, since, absent_when: _ } = metric;
        let entry = format!(
            "MetricDefinition {{ name: {name:?}, unit: Unit::{unit:?}, kind: MetricKind::{kind:?}, \
             help: {help:?}, labels: &{labels:?}, scope: Scope::{scope:?}, since: {since:?} }},\n"
        );
        code.push_str(&entry);
    }
    code.push_str("];\n");
    for (index, metric) in metrics.iter().enumerate() {
        let constant = metric.name.trim_start_matches("telltale_").to_uppercase();
        let help = &metric.help;
        let entry = format!(
            "\n/// {help}\npub const {constant}: &MetricDefinition = &DEFINITIONS[{index}];\n"
        );
        code.push_str(&entry);
    }
    code
}

/// The table of all metrics, one section a scope.
pub(super) fn table(metrics: &[Metric]) -> String {
    let mut page = String::from(
        "<!-- Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit. -->\n\n\
         # Metrics\n\n\
         Every metric that Telltale defines, by what one series belongs to. A value that is not known\n\
         is left out, never written as 0 or -1; the last column says when that happens.\n",
    );
    for (scope, title) in [
        (Scope::Device, "One device"),
        (Scope::Process, "One process"),
        (Scope::Source, "One source of readings"),
        (Scope::Service, "The service itself"),
    ] {
        section(&mut page, title, metrics.iter().filter(|metric| metric.scope == scope));
    }
    page
}

fn section<'a>(page: &mut String, title: &str, metrics: impl Iterator<Item = &'a Metric>) {
    let mut metrics = metrics.peekable();
    if metrics.peek().is_none() {
        return;
    }
    let head = "| name | kind | unit | labels | meaning | since | absent when |\n\
                |---|---|---|---|---|---|---|\n";
    write!(page, "\n## {title}\n\n{head}").expect("a string takes any text");
    for metric in metrics {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let unit = metric.unit.words().replace('_', " ");
        let labels = metric.labels.join(", ");
        let Metric { name, help, since, absent_when, .. } = metric;
        let row = [&format!("`{name}`"), &kind, &unit, &labels, help, since, absent_when]
            .map(|cell| cell.replace('|', "\\|"))
            .join(" | ");
        writeln!(page, "| {row} |").expect("a string takes any text");
    }
}
