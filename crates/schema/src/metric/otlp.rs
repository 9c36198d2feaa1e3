//! Which names metrics and labels have in OpenTelemetry: those of its semantic conventions for
//! hardware and processes (version 1.44, `hw.*` still in development) where they mean the same, and
//! `telltale.*` for what these do not have. `docs/metrics.md` has the names.

use super::{Convention, MetricDefinition, MetricKind, Unit};

/// How a metric's values behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instrument {
    /// A sum that only grows.
    Counter,
    /// A sum that goes up and down.
    UpDownCounter,
    /// A value that is not added to others.
    Gauge,
    /// Observations in buckets.
    Histogram,
}

/// What a metric of ours is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpName {
    /// Its name.
    pub name: String,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// How it behaves.
    pub instrument: Instrument,
    /// An attribute that all of its points have.
    pub attribute: Option<(&'static str, &'static str)>,
}

/// What a metric is called.
pub fn name_of(definition: &MetricDefinition) -> OtlpName {
    let unit = unit(definition.unit);
    if let Some(known) = definition.otlp {
        let instrument = match known.adds_up {
            true => Instrument::UpDownCounter,
            false => instrument(definition.kind),
        };
        let Convention { name, attribute, .. } = known;
        return OtlpName { name: name.to_owned(), unit, instrument, attribute };
    }
    let name = derived(definition.name, definition.unit);
    OtlpName { name, unit, instrument: instrument(definition.kind), attribute: None }
}

/// The name of a metric that the conventions do not have: without its unit, and with a dot behind its subject.
pub fn derived(name: &str, unit: Unit) -> String {
    let stem = name.strip_suffix("_total").unwrap_or(name);
    let stem = stem.strip_prefix("telltale_").unwrap_or(stem);
    let suffix = unit.suffix().map(|unit| format!("_{unit}"));
    let stem = suffix.and_then(|suffix| stem.strip_suffix(&suffix)).unwrap_or(stem);
    format!("telltale.{}", stem.replacen('_', ".", 1))
}

/// How values of a kind behave.
pub const fn instrument(kind: MetricKind) -> Instrument {
    match kind {
        MetricKind::Counter => Instrument::Counter,
        MetricKind::Gauge | MetricKind::Info => Instrument::Gauge,
        MetricKind::Histogram => Instrument::Histogram,
    }
}

/// The unit, as UCUM writes it.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "By",
        Unit::Seconds => "s",
        Unit::Celsius => "Cel",
        Unit::Volts => "V",
        Unit::Amperes => "A",
        Unit::Watts => "W",
        Unit::Joules => "J",
        Unit::Hertz => "Hz",
        Unit::RevolutionsPerMinute => "rpm",
        Unit::BytesPerSecond => "By/s",
        Unit::Ratio | Unit::Count | Unit::None => "1",
    }
}

/// The attribute that a label of ours becomes; one that a process registered keeps its name.
pub fn attribute(metric: Option<&MetricDefinition>, label: &str) -> Option<&'static str> {
    /// Labels that mean something else with some metrics: the beginning of their names.
    const WITH: [(&str, &str, &str); 5] = [
        ("telltale_process", "state", "telltale.process.state"),
        ("telltale_device_health", "state", HEALTH_STATE),
        ("telltale_host_health", "state", HEALTH_STATE),
        ("telltale_fault", "state", HEALTH_STATE),
        ("telltale_device_nvlink_errors", "kind", "error.type"),
    ];
    const ATTRIBUTES: [(&str, &str); 25] = [
        ("device", "hw.id"),
        ("sensor", "hw.sensor_location"),
        ("serial", "hw.serial_number"),
        ("board_type", "hw.model"),
        ("firmware_version", "hw.firmware_version"),
        ("architecture", "telltale.device.architecture"),
        ("asic_id", "telltale.device.asic_id"),
        ("pci_address", "telltale.device.pci_address"),
        ("clock", "telltale.device.clock"),
        ("noc", "telltale.device.noc"),
        ("kind", "telltale.memory.kind"),
        ("space", "telltale.memory.space"),
        ("process", "process.executable.name"),
        ("user", "process.owner"),
        ("pid", "process.pid"),
        ("namespace_pid", "process.vpid"),
        ("command", "process.command_line"),
        ("container_id", "container.id"),
        ("container_engine", "container.runtime.name"),
        ("pod_uid", "k8s.pod.uid"),
        ("pod_namespace", "k8s.namespace.name"),
        ("pod_name", "k8s.pod.name"),
        ("container_name", "k8s.container.name"),
        ("source", "telltale.source"),
        ("version", "service.version"),
    ];
    let name = metric.map_or("", |metric| metric.name);
    let special = WITH.iter().find(|(start, other, _)| *other == label && name.starts_with(start));
    if let Some((_, _, attribute)) = special {
        return Some(attribute);
    }
    ATTRIBUTES.iter().find(|(other, _)| *other == label).map(|(_, attribute)| *attribute)
}

/// The attribute that says how hardware is.
pub const HEALTH_STATE: &str = "hw.state";

/// How the conventions call a state of health; `unknown` they do not have.
pub fn health_state(state: &str) -> &str {
    if state == "warning" { "degraded" } else { state }
}
