// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// Alerts of the rule that fire; 0 when all is well.
pub const ALERT_FIRING: &MetricDefinition = &MetricDefinition {
    name: "telltale_alert_firing",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Alerts of the rule that fire; 0 when all is well.",
    labels: &["rule", "severity"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Notifications of alerts by what became of them: the webhook took them, it did not, or too many waited.
pub const ALERT_NOTIFICATIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_alert_notifications_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Notifications of alerts by what became of them: the webhook took them, it did not, or too many waited.",
    labels: &["result"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Alerts that were not followed because too many were pending or fired at that time.
pub const ALERTS_DROPPED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_alerts_dropped_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Alerts that were not followed because too many were pending or fired at that time.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Version of the service.
pub const BUILD_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_build_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "Version of the service.",
    labels: &["version"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Processes of other users that the service may not read, counted by the names of their files; they are not counted elsewhere.
pub const CLOSED_PROCESSES: &MetricDefinition = &MetricDefinition {
    name: "telltale_closed_processes",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Processes of other users that the service may not read, counted by the names of their files; they are not counted elsewhere.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// How long the last collection took, all sources together.
pub const COLLECTION_DURATION_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_collection_duration_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "How long the last collection took, all sources together.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Time that collections have taken, all of them together.
pub const COLLECTION_SECONDS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_collection_seconds_total",
    unit: Unit::Seconds,
    kind: MetricKind::Counter,
    help: "Time that collections have taken, all of them together.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Collections that the service has made.
pub const COLLECTIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_collections_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Collections that the service has made.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Times that the running service read its configuration again: taken, or refused because it makes no sense, so that the one before holds.
pub const CONFIGURATION_RELOADS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_configuration_reloads_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Times that the running service read its configuration again: taken, or refused because it makes no sense, so that the one before holds.",
    labels: &["outcome"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 for each thing that is wrong: with a device (part is empty), or with a part of the machine (device is empty).
pub const FAULT: &MetricDefinition = &MetricDefinition {
    name: "telltale_fault",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 for each thing that is wrong: with a device (part is empty), or with a part of the machine (device is empty).",
    labels: &["device", "part", "fault", "state"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Times that the history could not be opened, written or read, or that its files were removed or replaced; it is tried again each time.
pub const HISTORY_FAILURES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_history_failures_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Times that the history could not be opened, written or read, or that its files were removed or replaced; it is tried again each time.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes that the history takes on the disk.
pub const HISTORY_SIZE_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_history_size_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes that the history takes on the disk.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 when the history could be written and read the last time, 0 when the disk, its files or their directory did not allow it.
pub const HISTORY_UP: &MetricDefinition = &MetricDefinition {
    name: "telltale_history_up",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 when the history could be written and read the last time, 0 when the disk, its files or their directory did not allow it.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// How the parts of the machine are (fans, supplies, network, memory, drivers): 1 for the present state, ok, warning or failed, and 0 for the others.
pub const HOST_HEALTH: &MetricDefinition = &MetricDefinition {
    name: "telltale_host_health",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "How the parts of the machine are (fans, supplies, network, memory, drivers): 1 for the present state, ok, warning or failed, and 0 for the others.",
    labels: &["state"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Connections that are open by HTTP.
pub const HTTP_CONNECTIONS: &MetricDefinition = &MetricDefinition {
    name: "telltale_http_connections",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Connections that are open by HTTP.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Connections closed by HTTP before their time: too many, too slow, or not understood.
pub const HTTP_REFUSED_CONNECTIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_http_refused_connections_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Connections closed by HTTP before their time: too many, too slow, or not understood.",
    labels: &["reason"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Requests answered by HTTP, by status code.
pub const HTTP_REQUESTS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_http_requests_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Requests answered by HTTP, by status code.",
    labels: &["code"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// When the last collection began, in seconds since 1970.
pub const LAST_COLLECTION_TIMESTAMP_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_last_collection_timestamp_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "When the last collection began, in seconds since 1970.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Connections that are open at the legacy allocation socket.
pub const LEGACY_CONNECTIONS: &MetricDefinition = &MetricDefinition {
    name: "telltale_legacy_connections",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Connections that are open at the legacy allocation socket.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Messages that came at the legacy allocation socket, by type.
pub const LEGACY_MESSAGES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_legacy_messages_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Messages that came at the legacy allocation socket, by type.",
    labels: &["type"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What the legacy allocation socket did not believe: messages, connections, and pids in messages that are not their sender's.
pub const LEGACY_REFUSED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_legacy_refused_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "What the legacy allocation socket did not believe: messages, connections, and pids in messages that are not their sender's.",
    labels: &["reason"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What the service dropped because a queue of its own was full or its reader too slow.
pub const QUEUE_DROPPED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_queue_dropped_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "What the service dropped because a queue of its own was full or its reader too slow.",
    labels: &["queue"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// How long the last text of metrics took to make; most scrapes get one that is made already.
pub const SCRAPE_DURATION_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_scrape_duration_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "How long the last text of metrics took to make; most scrapes get one that is made already.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Times that metrics were asked for by HTTP.
pub const SCRAPES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_scrapes_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Times that metrics were asked for by HTTP.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Series left out of a text of metrics: process is in the row _other instead, the others are in none.
pub const SERIES_DROPPED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_series_dropped_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Series left out of a text of metrics: process is in the row _other instead, the others are in none.",
    labels: &["reason"],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Processor time that the service has used, in user and kernel mode.
pub const SERVICE_CPU_SECONDS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_service_cpu_seconds_total",
    unit: Unit::Seconds,
    kind: MetricKind::Counter,
    help: "Processor time that the service has used, in user and kernel mode.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// The service's memory that is resident.
pub const SERVICE_RESIDENT_MEMORY_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_service_resident_memory_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "The service's memory that is resident.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// When the service started, in seconds since 1970.
pub const SERVICE_START_TIME_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_service_start_time_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "When the service started, in seconds since 1970.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Runtime directories with more names than are read, 65536 in each; processes with files beyond are not counted.
pub const TRUNCATED_DIRECTORIES: &MetricDefinition = &MetricDefinition {
    name: "telltale_truncated_directories",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Runtime directories with more names than are read, 65536 in each; processes with files beyond are not counted.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};
