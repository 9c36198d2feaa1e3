// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// Connections and queries that the process's endpoint gave up or refused, by reason.
pub const ENDPOINT_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_endpoint_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Connections and queries that the process's endpoint gave up or refused, by reason.",
    labels: &["process", "user", "container_id", "pod_uid", "reason"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Queries that the process's endpoint answered.
pub const ENDPOINT_QUERIES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_endpoint_queries_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Queries that the process's endpoint answered.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes that one of the device's biggest holders has allocated in the space and not freed; those of all other processes are in the row _other.
pub const HOLDER_MEMORY_LIVE_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_holder_memory_live_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes that one of the device's biggest holders has allocated in the space and not freed; those of all other processes are in the row _other.",
    labels: &["process", "user", "container_id", "pod_uid", "pid", "device", "space"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Most live bytes that one of the device's biggest holders has had in the space: the peaks of its kinds of memory added up.
pub const HOLDER_MEMORY_PEAK_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_holder_memory_peak_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Most live bytes that one of the device's biggest holders has had in the space: the peaks of its kinds of memory added up.",
    labels: &["process", "user", "container_id", "pod_uid", "pid", "device", "space"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// When the runtime of one of the biggest holders began to record, in seconds since 1970, to within one.
pub const HOLDER_START_TIME_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_holder_start_time_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "When the runtime of one of the biggest holders began to record, in seconds since 1970, to within one.",
    labels: &["process", "user", "container_id", "pod_uid", "pid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What the process's recording runtime could not do, by step.
pub const PROBLEMS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_problems_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "What the process's recording runtime could not do, by step.",
    labels: &["process", "user", "container_id", "pod_uid", "step"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Share of the last second in which the process's work ran on the device; processes that are alike add up.
pub const PROCESS_BUSY_RATIO: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_busy_ratio",
    unit: Unit::Ratio,
    kind: MetricKind::Gauge,
    help: "Share of the last second in which the process's work ran on the device; processes that are alike add up.",
    labels: &["process", "user", "container_id", "pod_uid", "device"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while the core's debug stream has a reader, else 0.
pub const PROCESS_DEBUG_CONNECTED: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_connected",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while the core's debug stream has a reader, else 0.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Events of the core that its client or the default consumer took.
pub const PROCESS_DEBUG_EVENTS_DELIVERED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_events_delivered_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Events of the core that its client or the default consumer took.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Events of the core that its filter did not want.
pub const PROCESS_DEBUG_EVENTS_FILTERED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_events_filtered_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Events of the core that its filter did not want.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Events of the core that found no room: for their number (events), their bytes, or for want of memory.
pub const PROCESS_DEBUG_EVENTS_LOST_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_events_lost_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Events of the core that found no room: for their number (events), their bytes, or for want of memory.",
    labels: &["process", "user", "container_id", "pod_uid", "core", "cause"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Events of the core that passed its filter while a consumer was connected, lost ones included.
pub const PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_events_published_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Events of the core that passed its filter while a consumer was connected, lost ones included.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Events of the core that waited when a connection ended.
pub const PROCESS_DEBUG_EVENTS_UNREAD_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_events_unread_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Events of the core that waited when a connection ended.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Events of the core that the default consumer could not write to files or could not print.
pub const PROCESS_DEBUG_EVENTS_UNSAVED_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_events_unsaved_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Events of the core that the default consumer could not write to files or could not print.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Events of the core that wait to be read.
pub const PROCESS_DEBUG_EVENTS_WAITING: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_events_waiting",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Events of the core that wait to be read.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What the events of the core that wait to be read hold, headers included.
pub const PROCESS_DEBUG_WAITING_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_debug_waiting_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "What the events of the core that wait to be read hold, headers included.",
    labels: &["process", "user", "container_id", "pod_uid", "core"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Frees of an address that had been freed already.
pub const PROCESS_DOUBLE_FREES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_double_frees_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Frees of an address that had been freed already.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Identity of the process; a label that is not known is empty.
pub const PROCESS_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "Identity of the process; a label that is not known is empty.",
    labels: &[
        "process",
        "user",
        "container_id",
        "pod_uid",
        "pid",
        "namespace_pid",
        "container_engine",
        "command",
    ],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes of compiled kernels that the process keeps.
pub const PROCESS_KERNEL_CACHE_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_kernel_cache_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes of compiled kernels that the process keeps.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Compiled kernels that were pushed out of what the process keeps.
pub const PROCESS_KERNEL_CACHE_EVICTIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_kernel_cache_evictions_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Compiled kernels that were pushed out of what the process keeps.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Size of the L1 ring buffer that kernels are loaded through.
pub const PROCESS_L1_RING_BUFFER_CAPACITY_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_l1_ring_buffer_capacity_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Size of the L1 ring buffer that kernels are loaded through.",
    labels: &["process", "user", "container_id", "pod_uid", "device"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Programs in the L1 ring buffer that kernels are loaded through.
pub const PROCESS_L1_RING_BUFFER_PROGRAMS: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_l1_ring_buffer_programs",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Programs in the L1 ring buffer that kernels are loaded through.",
    labels: &["process", "user", "container_id", "pod_uid", "device"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes in use of the L1 ring buffer that kernels are loaded through.
pub const PROCESS_L1_RING_BUFFER_USED_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_l1_ring_buffer_used_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes in use of the L1 ring buffer that kernels are loaded through.",
    labels: &["process", "user", "container_id", "pod_uid", "device"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes of all allocations the process has made on the device, freed ones included.
pub const PROCESS_MEMORY_ALLOCATED_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_memory_allocated_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes of all allocations the process has made on the device, freed ones included.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "kind"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Allocations the process has made on the device.
pub const PROCESS_MEMORY_ALLOCATIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_memory_allocations_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Allocations the process has made on the device.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "kind"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Buffers the process has allocated on the device and not freed.
pub const PROCESS_MEMORY_BUFFERS: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_memory_buffers",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Buffers the process has allocated on the device and not freed.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "kind"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Allocations that the process's allocator refused.
pub const PROCESS_MEMORY_FAILED_ALLOCATIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_memory_failed_allocations_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Allocations that the process's allocator refused.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "kind"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes the process has allocated on the device and not freed.
pub const PROCESS_MEMORY_LIVE_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_memory_live_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes the process has allocated on the device and not freed.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "kind"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Most live bytes the process has had on the device.
pub const PROCESS_MEMORY_PEAK_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_memory_peak_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Most live bytes the process has had on the device.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "kind"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes the process may have on the device.
pub const PROCESS_MEMORY_QUOTA_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_memory_quota_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes the process may have on the device.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "space"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Operations the process has dispatched to the device.
pub const PROCESS_OPERATIONS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_operations_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Operations the process has dispatched to the device.",
    labels: &["process", "user", "container_id", "pod_uid", "device"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What Kubernetes calls the pod and the container that the row's processes are in; a name that is not known is empty.
pub const PROCESS_POD_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_pod_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "What Kubernetes calls the pod and the container that the row's processes are in; a name that is not known is empty.",
    labels: &[
        "process",
        "user",
        "container_id",
        "pod_uid",
        "pod_namespace",
        "pod_name",
        "container_name",
    ],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Allocations at an address that was still live; the old one was counted as freed.
pub const PROCESS_REUSED_LIVE_ADDRESSES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_reused_live_addresses_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Allocations at an address that was still live; the old one was counted as freed.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while the runtime holds the process back, 0 while it does not.
pub const PROCESS_THROTTLED: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_throttled",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while the runtime holds the process back, 0 while it does not.",
    labels: &["process", "user", "container_id", "pod_uid", "device"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Times the runtime began to hold the process back.
pub const PROCESS_THROTTLINGS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_throttlings_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Times the runtime began to hold the process back.",
    labels: &["process", "user", "container_id", "pod_uid", "device"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes the process has moved to and from the device, as its runtime counts them.
pub const PROCESS_TRANSFERRED_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_transferred_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes the process has moved to and from the device, as its runtime counts them.",
    labels: &["process", "user", "container_id", "pod_uid", "device", "direction"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Frees of an address that the runtime never recorded.
pub const PROCESS_UNKNOWN_FREES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_unknown_frees_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Frees of an address that the runtime never recorded.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Allocations and frees that could not be recorded for want of room.
pub const PROCESS_UNRECORDED_EVENTS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_unrecorded_events_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Allocations and frees that could not be recorded for want of room.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// How long the process's runtime has been recording.
pub const PROCESS_UPTIME_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_process_uptime_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "How long the process's runtime has been recording.",
    labels: &["process", "user", "container_id", "pod_uid"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Processes that the row stands for: alive, hidden in a PID namespace that cannot be seen, or dead with leftover values that are in no sum.
pub const PROCESSES: &MetricDefinition = &MetricDefinition {
    name: "telltale_processes",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Processes that the row stands for: alive, hidden in a PID namespace that cannot be seen, or dead with leftover values that are in no sum.",
    labels: &["process", "user", "container_id", "pod_uid", "state"],
    scope: Scope::Process,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};
