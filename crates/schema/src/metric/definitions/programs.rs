// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// Hits that were compared with a newly described program.
pub const PROCESS_PROGRAM_CACHE_CHECKS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_checks_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Hits that were compared with a newly described program.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Look-ups that met another program with the same hash and were distinguished from it.
pub const PROCESS_PROGRAM_CACHE_COLLISIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_collisions_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Look-ups that met another program with the same hash and were distinguished from it.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Programs that the process compiled.
pub const PROCESS_PROGRAM_CACHE_COMPILES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_compiles_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Programs that the process compiled.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Programs that the process's program cache dropped to make room.
pub const PROCESS_PROGRAM_CACHE_EVICTIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_evictions_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Programs that the process's program cache dropped to make room.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Hits that differed from the newly described program.
pub const PROCESS_PROGRAM_CACHE_FAILED_CHECKS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_failed_checks_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Hits that differed from the newly described program.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Programs that the process could not describe or compile.
pub const PROCESS_PROGRAM_CACHE_FAILED_COMPILES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_failed_compiles_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Programs that the process could not describe or compile.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Dispatches that found their program in the cache.
pub const PROCESS_PROGRAM_CACHE_HITS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_hits_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Dispatches that found their program in the cache.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Dispatches that did not find their program in the cache.
pub const PROCESS_PROGRAM_CACHE_MISSES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_misses_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Dispatches that did not find their program in the cache.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Time spent so far in a phase of dispatching: key, look_up and update are extrapolated from samples, compile and check are exact.
pub const PROCESS_PROGRAM_CACHE_PHASE_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_phase_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "Time spent so far in a phase of dispatching: key, look_up and update are extrapolated from samples, compile and check are exact.",
    labels: &["process", "user", "container_id", "pod_uid", "phase"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What the programs in the process's program cache weigh, keys included.
pub const PROCESS_PROGRAM_CACHE_WEIGHT_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_cache_weight_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "What the programs in the process's program cache weigh, keys included.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 for each program, by its name, whose kernels are on the device at present; 256 at most.
pub const PROCESS_PROGRAM_LOADED: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_program_loaded",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 for each program, by its name, whose kernels are on the device at present; 256 at most.",
    labels: &["process", "user", "container_id", "pod_uid", "program"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Programs in the process's program cache.
pub const PROCESS_PROGRAMS_CACHED: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_programs_cached",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Programs in the process's program cache.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Programs whose kernels are on the device at present.
pub const PROCESS_PROGRAMS_LOADED: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_programs_loaded",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Programs whose kernels are on the device at present.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};
