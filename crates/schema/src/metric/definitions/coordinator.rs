// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// Calls by gRPC, streams of agents included.
pub const COORDINATOR_CALLS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_calls_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Calls by gRPC, streams of agents included.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Connections that were let in.
pub const COORDINATOR_CONNECTIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_connections_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Connections that were let in.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Decisions, by what became of them: stored, failed.
pub const COORDINATOR_DECISIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_decisions_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Decisions, by what became of them: stored, failed.",
    labels: &["outcome"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What detection did not take: reports and evaluations it was too busy for, reports of nodes without a slot (strangers), latencies beyond a report's limit (windows), of ranks elsewhere (foreign) or within a node, or without a place (edges, waits, progress).
pub const COORDINATOR_DETECTION_DROPPED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_detection_dropped_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "What detection did not take: reports and evaluations it was too busy for, reports of nodes without a slot (strangers), latencies beyond a report's limit (windows), of ranks elsewhere (foreign) or within a node, or without a place (edges, waits, progress).",
    labels: &["what"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// The epoch of the job that was decided last.
pub const COORDINATOR_EPOCH: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_epoch",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "The epoch of the job that was decided last.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Nodes that were taken out of their slots, other than by an operator.
pub const COORDINATOR_EVICTIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_evictions_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Nodes that were taken out of their slots, other than by an operator.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while an incident is open, 0 otherwise.
pub const COORDINATOR_INCIDENT_OPEN: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_incident_open",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while an incident is open, 0 otherwise.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Incidents that were opened.
pub const COORDINATOR_INCIDENTS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_incidents_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Incidents that were opened.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Incidents that the store had no room for, and that a later leader will not show.
pub const COORDINATOR_INCIDENTS_UNKEPT_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_incidents_unkept_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Incidents that the store had no room for, and that a later leader will not show.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Version of the coordinator.
pub const COORDINATOR_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "Version of the coordinator.",
    labels: &["version"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while this coordinator leads, 0 while another one does or none.
pub const COORDINATOR_LEADING: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_leading",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while this coordinator leads, 0 while another one does or none.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Messages of agents that were taken.
pub const COORDINATOR_MESSAGES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_messages_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Messages of agents that were taken.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// How much the coordinator does by itself: observe, recover, act.
pub const COORDINATOR_MODE_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_mode_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "How much the coordinator does by itself: observe, recover, act.",
    labels: &["mode"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Nodes that are known, by what they are to the job: active, standby, silent, barred, ended.
pub const COORDINATOR_NODES: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_nodes",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Nodes that are known, by what they are to the job: active, standby, silent, barred, ended.",
    labels: &["state"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Orders to agents: sent, lost for want of a way to the node, repeated because it did not answer.
pub const COORDINATOR_ORDERS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_orders_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Orders to agents: sent, lost for want of a way to the node, repeated because it did not answer.",
    labels: &["outcome"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Connections, calls and messages that were refused: crowded, handshake, garbage (another protocol than the port's), flood (frames that ask for nothing), stranger, token, not_leading, too_large, malformed, value, no_place, name (not in the certificate), claimed (a node that is heard on another connection), job (an agent of another job).
pub const COORDINATOR_REFUSED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_refused_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Connections, calls and messages that were refused: crowded, handshake, garbage (another protocol than the port's), flood (frames that ask for nothing), stranger, token, not_leading, too_large, malformed, value, no_place, name (not in the certificate), claimed (a node that is heard on another connection), job (an agent of another job).",
    labels: &["reason"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Time between reading a message of an agent and the coordinator's having taken it in.
pub const COORDINATOR_REPORT_WAIT_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_report_wait_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Histogram,
    help: "Time between reading a message of an agent and the coordinator's having taken it in.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// How often the job was restarted since it began.
pub const COORDINATOR_RESTARTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_restarts",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "How often the job was restarted since it began.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while every node of the epoch has started its workers, 0 otherwise.
pub const COORDINATOR_RUNNING: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_running",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while every node of the epoch has started its workers, 0 otherwise.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Messages of agents that were not acted on: incarnation, sequence, epoch, ranks, unknown_node, crowded, not_leading.
pub const COORDINATOR_STALE_MESSAGES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_stale_messages_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Messages of agents that were not acted on: incarnation, sequence, epoch, ranks, unknown_node, crowded, not_leading.",
    labels: &["reason"],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Streams of agents that are open.
pub const COORDINATOR_STREAMS: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_streams",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Streams of agents that are open.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// The number of the leadership.
pub const COORDINATOR_TERM: &MetricDefinition = &MetricDefinition {
    name: "telltale_coordinator_term",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "The number of the leadership.",
    labels: &[],
    scope: Scope::Coordinator,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};
