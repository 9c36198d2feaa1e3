//! The Rust code and the Markdown table that metric definitions become.

use std::fmt::Write;

use telltale_schema::metric::{Scope, otlp};

use super::{Convention, Metric};

/// What each generated Rust file begins with.
const HEAD: &str =
    "// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.\n\n";

/// The scopes with the names of their Rust files and the headings of their tables.
pub(super) const SCOPES: [(Scope, &str, &str); 6] = [
    (Scope::Device, "device", "One device"),
    (Scope::Process, "process", "One process"),
    (Scope::Source, "source", "One source of readings"),
    (Scope::Service, "service", "The service itself"),
    (Scope::Coordinator, "coordinator", "The coordinator of a job"),
    (Scope::Agent, "agent", "The agent of a job's node"),
];

/// The Rust files: one a scope, and those of [`SUBJECTS`].
pub(super) const FILES: [&str; 9] = [
    "agent",
    "coordinator",
    "device",
    "device_errors",
    "device_links",
    "process",
    "programs",
    "service",
    "source",
];

/// How names of metrics begin that have a file apart from their scope's.
const SUBJECTS: [(&str, &str); 11] = [
    ("telltale_process_program", "programs"),
    ("telltale_device_memory_errors", "device_errors"),
    ("telltale_device_sram_", "device_errors"),
    ("telltale_device_xid_", "device_errors"),
    ("telltale_device_remapped_", "device_errors"),
    ("telltale_device_row_", "device_errors"),
    ("telltale_device_retired_", "device_errors"),
    ("telltale_device_page_", "device_errors"),
    ("telltale_device_pcie_", "device_links"),
    ("telltale_device_nvlink_", "device_links"),
    ("telltale_device_numa_", "device_links"),
];

/// The Rust file of a metric.
fn file(metric: &Metric) -> &'static str {
    if let Some((_, file)) = SUBJECTS.iter().find(|(name, _)| metric.name.starts_with(name)) {
        return file;
    }
    let mut scopes = SCOPES.iter();
    let found = scopes.find(|(scope, ..)| *scope == metric.scope);
    found.map(|(_, file, _)| *file).expect("each scope is in the list")
}

/// The programs with metrics, as whose list of definitions is named.
const PROGRAMS: [(&str, &str, &[Scope]); 3] = [
    (
        "the node service",
        "DEFINITIONS",
        &[Scope::Device, Scope::Process, Scope::Source, Scope::Service],
    ),
    ("a coordinator", "COORDINATOR_DEFINITIONS", &[Scope::Coordinator]),
    ("an agent", "AGENT_DEFINITIONS", &[Scope::Agent]),
];

/// The Rust source of the list of all definitions, before rustfmt.
pub(super) fn list(metrics: &[Metric]) -> String {
    let mut code = HEAD.to_owned();
    let is_used = |name: &&str| metrics.iter().any(|metric| file(metric) == *name);
    let files = || FILES.into_iter().filter(is_used);
    code.extend(files().map(|file| format!("mod {file};\n")));
    code.push_str("\nuse super::MetricDefinition;\n\n");
    code.extend(files().map(|file| format!("pub use {file}::*;\n")));
    for (program, name, scopes) in PROGRAMS {
        let about = format!("Every metric that {program} can expose, sorted by name.");
        let is_exposed =
            |metric: &&Metric| scopes.contains(&metric.scope) && metric.rate_of.is_none();
        let own = metrics.iter().filter(is_exposed);
        one_list(&mut code, &about, name, own);
    }
    code
}

fn one_list<'a>(
    code: &mut String,
    about: &str,
    name: &str,
    metrics: impl Iterator<Item = &'a Metric>,
) {
    write!(code, "\n/// {about}\npub static {name}: &[&MetricDefinition] = &[\n")
        .expect("a string takes any text");
    for metric in metrics {
        writeln!(code, "{},", constant(metric)).expect("a string takes any text");
    }
    code.push_str("];\n");
}

/// The Rust source of the definitions of one file, before rustfmt; none where it has none.
pub(super) fn definitions(metrics: &[Metric], name: &str) -> Option<String> {
    let mut metrics = metrics.iter().filter(|metric| file(metric) == name).peekable();
    metrics.peek()?;
    let mut code = String::new();
    for metric in metrics {
        let Metric { name, unit, kind, scope, labels, help, since, absent_when: _, rate_of, otlp } =
            metric;
        let otlp = otlp.as_ref().map(convention);
        let otlp = otlp.map_or_else(|| String::from("None"), |one| format!("Some({one})"));
        let constant = constant(metric);
        let entry = format!(
            "\n/// {help}\npub const {constant}: &MetricDefinition = &MetricDefinition {{ \
             name: {name:?}, unit: Unit::{unit:?}, kind: MetricKind::{kind:?}, help: {help:?}, \
             labels: &{labels:?}, scope: Scope::{scope:?}, since: {since:?}, \
             rate_of: {rate_of:?}, otlp: {otlp} }};\n"
        );
        code.push_str(&entry);
    }
    let convention = if code.contains("Convention {") { "Convention, " } else { "" };
    Some(format!(
        "{HEAD}use crate::metric::{{{convention}MetricDefinition, MetricKind, Scope, Unit}};\n{code}"
    ))
}

fn convention(Convention { name, adds_up, attribute }: &Convention) -> String {
    format!("Convention {{ name: {name:?}, adds_up: {adds_up}, attribute: {attribute:?} }}")
}

/// The name of a metric's constant.
fn constant(metric: &Metric) -> String {
    metric.name.trim_start_matches("telltale_").to_uppercase()
}

fn of_scope(metrics: &[Metric], scope: Scope) -> impl Iterator<Item = &Metric> {
    metrics.iter().filter(move |metric| metric.scope == scope)
}

/// What OpenTelemetry calls it, with what all of its points say there; none of what the service does not send.
fn otlp_name(metric: &Metric) -> String {
    if matches!(metric.scope, Scope::Coordinator | Scope::Agent) {
        return String::new();
    }
    if let Some(counter) = &metric.rate_of {
        return format!("not sent, nor in `/metrics`: `rate({counter})`");
    }
    let Some(Convention { name, attribute, .. }) = &metric.otlp else {
        return format!("`{}`", otlp::derived(&metric.name, metric.unit));
    };
    let attribute = attribute.as_ref().map(|(key, value)| format!(" with `{key}={value}`"));
    format!("`{name}`{}", attribute.unwrap_or_default())
}

/// The table of all metrics, one section a scope.
pub(super) fn table(metrics: &[Metric]) -> String {
    let mut page = String::from(
        "<!-- Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit. -->\n\n\
         # Metrics\n\n\
         Every metric that Telltale defines, by what one series belongs to. A value that is not known\n\
         is left out, never written as 0 or -1; the last column says when that happens. Processes with\n\
         the same name, user and container share a row; [prometheus.md](prometheus.md) says how.\n",
    );
    for (scope, _, title) in SCOPES {
        section(&mut page, title, of_scope(metrics, scope));
    }
    page
}

fn section<'a>(page: &mut String, title: &str, metrics: impl Iterator<Item = &'a Metric>) {
    let mut metrics = metrics.peekable();
    if metrics.peek().is_none() {
        return;
    }
    let head = "| name | kind | unit | labels | meaning | since | absent when | in OTLP |\n\
                |---|---|---|---|---|---|---|---|\n";
    write!(page, "\n## {title}\n\n{head}").expect("a string takes any text");
    for metric in metrics {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let unit = metric.unit.suffix().map_or_else(
            || format!("{:?}", metric.unit).to_lowercase(),
            |suffix| suffix.replace('_', " "),
        );
        let labels = metric.labels.join(", ");
        let Metric { name, help, since, absent_when, .. } = metric;
        let otlp = otlp_name(metric);
        let row = [&format!("`{name}`"), &kind, &unit, &labels, help, since, absent_when, &otlp]
            .map(|cell| cell.replace('|', "\\|"))
            .join(" | ");
        writeln!(page, "| {row} |").expect("a string takes any text");
    }
}
