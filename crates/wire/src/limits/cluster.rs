//! How much the coordinator's messages may hold.

/// Workers of one node.
pub const MAX_WORKERS: usize = 1024;
/// Process groups whose progress one report may hold, counted for each worker.
pub const MAX_PROGRESS: usize = 4096;
/// Latency windows that one report may hold of transfers, and again of collectives.
pub const MAX_WINDOWS: usize = 8192;
/// Pairs of addresses whose traffic one report may hold.
pub const MAX_TRAFFIC: usize = 64;
/// Ranks that one rank may say it waits for.
pub const MAX_AWAITED_RANKS: usize = 64;
/// Accelerators of one node.
pub const MAX_DEVICES: usize = 64;
/// Nodes in one answer's matrix of latencies.
pub const MAX_MATRIX_NODES: usize = 64;
/// Cells in one answer's matrix of latencies.
pub const MAX_MATRIX_CELLS: usize = MAX_MATRIX_NODES * MAX_MATRIX_NODES;
/// Bytes of the name or address of a node: as of a domain name.
pub const MAX_NODE_BYTES: usize = 253;
/// Operations that one report may hold.
pub const MAX_OPERATIONS: usize = 16_384;
/// Names of computations that one report may hold.
pub const MAX_SPAN_NAMES: usize = 256;
/// Process groups of the operations of one report.
pub const MAX_OPERATION_GROUPS: usize = 4096;
/// Steps whose times are in one answer.
pub const MAX_STEP_TIMES: usize = 4096;
/// Stages, ranks or links of one analysis.
pub const MAX_SLOW: usize = 256;
/// Operations of steps that are in one answer.
pub const MAX_TRACE_OPERATIONS: usize = 32_768;
/// Bytes of what a worker that failed left, and of the path of its log.
pub const MAX_FAILURE_BYTES: usize = 256;
/// Events of one incident.
pub const MAX_SIGNS: usize = 256;
/// Suspects of one verdict.
pub const MAX_SUSPECTS: usize = 64;
/// Values behind one verdict.
pub const MAX_EVIDENCE: usize = 16;
/// Verdicts of one incident.
pub const MAX_VERDICTS: usize = 256;
/// Nodes that one decision takes out of their slots.
pub const MAX_EVICTED: usize = 1 << 16;
/// Workers of an incident that had ended with exit code 0.
pub const MAX_FINISHED: usize = 64;
/// Latest collectives of a rank.
pub const MAX_LATEST_COLLECTIVES: usize = 64;
/// Lines of a stack.
pub const MAX_FRAMES: usize = 128;
/// Different stacks of a job that hung, and ranks that are named with each.
pub const MAX_FOLDED: usize = 64;
/// Reasons why stacks could not be taken.
pub const MAX_MISSING: usize = 16;
