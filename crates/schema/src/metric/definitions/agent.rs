// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// The epoch whose workers run.
pub const AGENT_EPOCH: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_epoch",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "The epoch whose workers run.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Process groups whose members were not taken: too many of them, or no ranks of the job.
pub const AGENT_GROUPS_REFUSED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_groups_refused_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Process groups whose members were not taken: too many of them, or no ranks of the job.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Version of the agent.
pub const AGENT_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "Version of the agent.",
    labels: &["version"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Latencies that were not reported: warm_up, excused (a checkpoint), overwritten (more than a window in one report), no_place.
pub const AGENT_LATENCIES_DROPPED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_latencies_dropped_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Latencies that were not reported: warm_up, excused (a checkpoint), overwritten (more than a window in one report), no_place.",
    labels: &["reason"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Posts that could not be read.
pub const AGENT_MALFORMED_POSTS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_malformed_posts_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Posts that could not be read.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Memory that the node has.
pub const AGENT_MEMORY_TOTAL_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_memory_total_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Memory that the node has.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Memory of the node that is in use.
pub const AGENT_MEMORY_USED_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_memory_used_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Memory of the node that is in use.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Messages to the coordinator for which the way to it had no room.
pub const AGENT_MESSAGES_LOST_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_messages_lost_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Messages to the coordinator for which the way to it had no room.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Orders of a coordinator that were not obeyed: term (a later leader was heard before), sequence (a later order of the same leader was), epoch (of one that is over, or out of turn).
pub const AGENT_ORDERS_IGNORED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_orders_ignored_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Orders of a coordinator that were not obeyed: term (a later leader was heard before), sequence (a later order of the same leader was), epoch (of one that is over, or out of turn).",
    labels: &["reason"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Lines of workers that the agent's own output had no room for; the files have them.
pub const AGENT_OUTPUT_LINES_DROPPED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_output_lines_dropped_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Lines of workers that the agent's own output had no room for; the files have them.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Output of workers that could not be written to its files.
pub const AGENT_OUTPUT_UNWRITTEN_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_output_unwritten_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Output of workers that could not be written to its files.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Mean latency of transfers with the peer, by its rank, in the last report that had any.
pub const AGENT_PEER_LATENCY_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_peer_latency_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "Mean latency of transfers with the peer, by its rank, in the last report that had any.",
    labels: &["peer"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// How busy the node's processors were during the last report's interval.
pub const AGENT_PROCESSORS_BUSY_RATIO: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_processors_busy_ratio",
    unit: Unit::Ratio,
    kind: MetricKind::Gauge,
    help: "How busy the node's processors were during the last report's interval.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Files that were not read since their directory has too many, counted at each scan.
pub const AGENT_READ_FILES_LEFT_OUT_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_read_files_left_out_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Files that were not read since their directory has too many, counted at each scan.",
    labels: &["format"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Records in files of other tools, by the files' format (inspector, flight_recorder): given to be counted, malformed, queue_full.
pub const AGENT_READ_RECORDS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_read_records_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Records in files of other tools, by the files' format (inspector, flight_recorder): given to be counted, malformed, queue_full.",
    labels: &["format", "outcome"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes of such files that were passed over: lines or files that are too long, or written faster than read.
pub const AGENT_READ_SKIPPED_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_read_skipped_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes of such files that were passed over: lines or files that are too long, or written faster than read.",
    labels: &["format"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Records of collectives and transfers that workers posted: taken, or refused, queue_full, stale (another epoch's), unknown_group, elsewhere (another node's rank), implausible, or unverified (of an unknown sender: shown, but not reported).
pub const AGENT_RECORDS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_records_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Records of collectives and transfers that workers posted: taken, or refused, queue_full, stale (another epoch's), unknown_group, elsewhere (another node's rank), implausible, or unverified (of an unknown sender: shown, but not reported).",
    labels: &["outcome"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while the agent has workers of an epoch, 0 otherwise.
pub const AGENT_RUNNING: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_running",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while the agent has workers of an epoch, 0 otherwise.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Mean latency of transfers with the peer, as senders say who are not known to be workers; nothing is decided by it.
pub const AGENT_UNVERIFIED_PEER_LATENCY_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_unverified_peer_latency_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "Mean latency of transfers with the peer, as senders say who are not known to be workers; nothing is decided by it.",
    labels: &["peer"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Windows of latencies that a report had no room for.
pub const AGENT_WINDOWS_DROPPED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_windows_dropped_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Windows of latencies that a report had no room for.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Processor time of the worker's own process.
pub const AGENT_WORKER_CPU_SECONDS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_worker_cpu_seconds_total",
    unit: Unit::Seconds,
    kind: MetricKind::Counter,
    help: "Processor time of the worker's own process.",
    labels: &["rank"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Starts and ends of workers that are not those of the present epoch.
pub const AGENT_WORKER_EVENTS_IGNORED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_worker_events_ignored_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Starts and ends of workers that are not those of the present epoch.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Kills of workers that did not stop when they were asked to.
pub const AGENT_WORKER_KILLS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_worker_kills_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Kills of workers that did not stop when they were asked to.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Resident memory of the worker's own process.
pub const AGENT_WORKER_RESIDENT_MEMORY_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_worker_resident_memory_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Resident memory of the worker's own process.",
    labels: &["rank"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Workers that were started.
pub const AGENT_WORKER_STARTS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_worker_starts_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Workers that were started.",
    labels: &[],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while the system says that the worker is stopped, 0 otherwise.
pub const AGENT_WORKER_STOPPED: &MetricDefinition = &MetricDefinition {
    name: "telltale_agent_worker_stopped",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while the system says that the worker is stopped, 0 otherwise.",
    labels: &["rank"],
    scope: Scope::Agent,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};
