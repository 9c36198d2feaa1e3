//! The limits of the coordinator's messages, field by field. The numbers come from
//! `cluster.proto`. What is not named here is once in a message, or as small as the bytes of it.

use super::message::numbers::{
    before_drain, begun_collective, coordinator_message, decision_summary, device_health,
    finished_worker, folded_stack, get_incident_response, get_rank_map_response,
    get_status_response, get_steps_response, get_trace_response, hang_stacks, incident,
    latency_matrix, list_decisions_response, list_incidents_response, list_nodes_response, node,
    node_message, operations, progress, rank_standing, rank_wait, refusal, repetition, report,
    sign, slot_holder, slow_link, slow_rank, slow_stage, stage_work, standings, step_analysis,
    traffic, unhealthy, verdict, vitals, worker, worker_failed,
};
use crate::limits::cluster::{
    MAX_AWAITED_RANKS, MAX_DEVICES, MAX_EVICTED, MAX_EVIDENCE, MAX_FAILURE_BYTES, MAX_FINISHED,
    MAX_FOLDED, MAX_FRAMES, MAX_LATEST_COLLECTIVES, MAX_MATRIX_CELLS, MAX_MATRIX_NODES,
    MAX_MISSING, MAX_NODE_BYTES, MAX_OPERATION_GROUPS, MAX_OPERATIONS, MAX_PROGRESS, MAX_SIGNS,
    MAX_SLOW, MAX_SPAN_NAMES, MAX_STEP_TIMES, MAX_SUSPECTS, MAX_TRACE_OPERATIONS, MAX_TRAFFIC,
    MAX_VERDICTS, MAX_WINDOWS, MAX_WORKERS,
};
use crate::limits::{MAX_NAME_BYTES, MAX_TEXT_BYTES};
use crate::shape::{FieldLimit, many, once, text};

/// Bytes that one number of a packed list takes at most.
const MAX_NUMBER_BYTES: usize = 5;
/// The same of 64 bits.
const MAX_LONG_NUMBER_BYTES: usize = 10;
/// Nodes, slots, incidents and decisions in one answer.
const MAX_ROWS: usize = 1 << 17;
/// All of these together in one answer: a few bytes stand for a few hundred in memory.
pub(crate) const MAX_PARTS: usize = 1 << 21;

/// Limits of a message of an agent.
pub(super) const NODE_MESSAGE: &[FieldLimit] = &[
    text(node_message::NODE, "node name", MAX_NODE_BYTES),
    once(
        4,
        "registrations",
        &[
            text(node_message::NODE, "address of a node", MAX_NODE_BYTES),
            text(node_message::REPORT, "job name", MAX_TEXT_BYTES),
        ],
    ),
    once(node_message::REPORT, "reports", REPORT),
    once(node_message::ACKNOWLEDGEMENT, "acknowledgements", &[]),
    once(node_message::STANDINGS, "standings", STANDINGS),
];

const STANDINGS: &[FieldLimit] = &[
    many(
        standings::RANKS,
        "standings of ranks",
        MAX_WORKERS,
        &[
            text(rank_standing::ACTIVITY, "activity", MAX_NAME_BYTES),
            text(rank_standing::OPERATION, "operation", MAX_TEXT_BYTES),
            text(rank_standing::FILE, "file of a line", MAX_TEXT_BYTES),
            text(rank_standing::FUNCTION, "function", MAX_TEXT_BYTES),
            text(rank_standing::DETAIL, "detail of a standing", MAX_TEXT_BYTES),
            texts(rank_standing::STACK, "lines of a stack", MAX_FRAMES),
            many(
                rank_standing::COLLECTIVES,
                "latest collectives",
                MAX_LATEST_COLLECTIVES,
                &[text(begun_collective::NAME, "name of a collective", MAX_NAME_BYTES)],
            ),
        ],
    ),
    texts(standings::MISSING, "missing stacks", MAX_MISSING),
];

/// Texts, several of them.
const fn texts(number: u32, name: &'static str, max_count: usize) -> FieldLimit {
    FieldLimit { number, name, max_count, max_bytes: MAX_TEXT_BYTES, inner: &[] }
}

const REPORT: &[FieldLimit] = &[
    many(report::WORKERS, "workers", MAX_WORKERS, WORKER),
    many(report::PROGRESS, "progress of groups", MAX_PROGRESS, PROGRESS),
    many(report::EDGES, "windows of transfers", MAX_WINDOWS, &[]),
    many(report::WAITS, "windows of collectives", MAX_WINDOWS, &[]),
    once(report::VITALS, "vitals", VITALS),
    once(report::OPERATIONS, "operations", OPERATIONS),
    many(report::WITHHELD, "withheld processors", MAX_WORKERS, &[]),
    many(
        report::TRAFFIC,
        "traffic",
        MAX_TRAFFIC,
        &[text(traffic::LOCAL, "address", 16), text(traffic::REMOTE, "address", 16)],
    ),
];

const WORKER: &[FieldLimit] = &[
    text(worker::MESSAGE, "failure of a worker", MAX_FAILURE_BYTES),
    text(worker::LOG, "path of a log", MAX_FAILURE_BYTES),
];

const OPERATIONS: &[FieldLimit] = &[
    FieldLimit {
        number: operations::NAMES,
        name: "names of computations",
        max_count: MAX_SPAN_NAMES,
        max_bytes: MAX_NAME_BYTES,
        inner: &[],
    },
    numbers(operations::GROUPS, "groups of operations", MAX_OPERATION_GROUPS),
    numbers(operations::RANKS, "ranks of operations", MAX_OPERATIONS),
    numbers(operations::STEPS, "steps of operations", MAX_OPERATIONS),
    numbers(operations::KINDS, "kinds of operations", MAX_OPERATIONS),
    numbers(operations::SUBJECTS, "subjects of operations", MAX_OPERATIONS),
    numbers(operations::GROUP_PLACES, "places of groups", MAX_OPERATIONS),
    numbers(operations::SIZE_BUCKETS, "sizes of operations", MAX_OPERATIONS),
    numbers(operations::STARTS_US, "starts of operations", MAX_OPERATIONS),
    numbers(operations::DURATIONS_US, "durations of operations", MAX_OPERATIONS),
];

/// Numbers, packed or not.
const fn numbers(number: u32, name: &'static str, max_count: usize) -> FieldLimit {
    let max_bytes = max_count * MAX_LONG_NUMBER_BYTES;
    FieldLimit { number, name, max_count, max_bytes, inner: &[] }
}

/// Numbers may be packed or not.
const PROGRESS: &[FieldLimit] =
    &[awaited_ranks(progress::SENDS_TO), awaited_ranks(progress::RECEIVES_FROM)];

const fn awaited_ranks(number: u32) -> FieldLimit {
    let max_bytes = MAX_AWAITED_RANKS * MAX_NUMBER_BYTES;
    FieldLimit {
        number,
        name: "awaited ranks",
        max_count: MAX_AWAITED_RANKS,
        max_bytes,
        inner: &[],
    }
}

const VITALS: &[FieldLimit] = &[
    many(vitals::PROCESSES, "processes", MAX_WORKERS, &[]),
    many(vitals::DEVICES, "devices", MAX_DEVICES, DEVICE),
    once(vitals::HOST, "state of the machine", DEVICE),
];

const DEVICE: &[FieldLimit] = &[
    text(device_health::DEVICE, "device name", MAX_NAME_BYTES),
    text(device_health::REASON, "state of a device", MAX_TEXT_BYTES),
    text(device_health::RULE, "rule", MAX_NAME_BYTES),
];

/// Limits of a message to an agent.
pub(super) const COORDINATOR_MESSAGE: &[FieldLimit] = &[
    text(coordinator_message::NODE, "node name", MAX_NODE_BYTES),
    once(
        8,
        "assignments",
        &[
            text(coordinator_message::REGISTER, "address of rank 0", MAX_NODE_BYTES),
            text(coordinator_message::STOP, "job name", MAX_TEXT_BYTES),
        ],
    ),
    once(
        coordinator_message::REFUSAL,
        "refusals",
        &[text(refusal::REASON, "reason", MAX_TEXT_BYTES)],
    ),
];

/// Limits of an answer of GetStatus.
pub(super) const STATUS_ANSWER: &[FieldLimit] = &[
    text(get_status_response::JOB, "job name", MAX_TEXT_BYTES),
    text(get_status_response::MASTER_ADDRESS, "address of rank 0", MAX_NODE_BYTES),
    text(get_status_response::OPEN_INCIDENT, "incident number", MAX_NAME_BYTES),
    text(get_status_response::STORE, "store", MAX_TEXT_BYTES),
    text(get_status_response::VERSION, "version", MAX_NAME_BYTES),
];

/// Limits of an answer of ListNodes.
pub(super) const NODES_ANSWER: &[FieldLimit] =
    &[many(list_nodes_response::NODES, "nodes", MAX_ROWS, NODE)];

const NODE: &[FieldLimit] = &[
    text(node::NAME, "node name", MAX_NODE_BYTES),
    text(node::ADDRESS, "address of a node", MAX_NODE_BYTES),
    once(node::VITALS, "vitals", VITALS),
    many(node::WORKER_STATES, "workers", MAX_WORKERS, WORKER),
];

/// Limits of an answer of ListIncidents.
pub(super) const INCIDENTS_ANSWER: &[FieldLimit] =
    &[many(list_incidents_response::INCIDENTS, "incidents", MAX_ROWS, INCIDENT)];

const INCIDENT: &[FieldLimit] = &[
    text(incident::ID, "incident number", MAX_NAME_BYTES),
    many(incident::SIGNS, "signs", MAX_SIGNS, SIGN),
    text(incident::CAUSE, "node name", MAX_NODE_BYTES),
    many(incident::EVICTED, "evicted nodes", MAX_EVICTED, &[]),
    once(
        incident::REPETITION,
        "repetitions",
        &[many(repetition::NODES, "nodes of a repetition", MAX_EVICTED, &[])],
    ),
    many(
        incident::FINISHED,
        "finished workers",
        MAX_FINISHED,
        &[text(finished_worker::NODE, "node name", MAX_NODE_BYTES)],
    ),
];

const SIGN: &[FieldLimit] = &[
    once(
        sign::WORKER_FAILED,
        "failures",
        &[
            text(worker_failed::MESSAGE, "failure of a worker", MAX_FAILURE_BYTES),
            text(worker_failed::LOG, "path of a log", MAX_FAILURE_BYTES),
        ],
    ),
    once(sign::SUSPECTED, "suspicions", VERDICT),
    once(
        sign::UNHEALTHY,
        "failed health",
        &[
            text(unhealthy::PART, "part", MAX_NAME_BYTES),
            text(unhealthy::RULE, "rule", MAX_NAME_BYTES),
            text(unhealthy::REASON, "state of a part", MAX_TEXT_BYTES),
        ],
    ),
    once(
        sign::BEFORE_DRAIN,
        "ends of commands",
        &[text(before_drain::LAST_LINE, "line of a command", MAX_FAILURE_BYTES)],
    ),
];

const VERDICT: &[FieldLimit] = &[
    many(verdict::SUSPECTS, "suspects", MAX_SUSPECTS, &[]),
    many(verdict::EVIDENCE, "evidence", MAX_EVIDENCE, &[]),
];

/// Limits of an answer of GetIncident.
pub(super) const INCIDENT_ANSWER: &[FieldLimit] = &[
    once(get_incident_response::INCIDENT, "incidents", INCIDENT),
    many(get_incident_response::VERDICTS, "verdicts", MAX_VERDICTS, VERDICT),
    once(get_incident_response::MATRIX, "matrices", MATRIX),
    once(get_incident_response::HANG, "hangs", HANG),
];

const HANG: &[FieldLimit] = &[
    text(hang_stacks::KIND, "kind of a hang", MAX_NAME_BYTES),
    numbers(hang_stacks::RANKS, "ranks at fault", MAX_FOLDED),
    many(
        hang_stacks::STACKS,
        "stacks",
        MAX_FOLDED,
        &[
            numbers(folded_stack::RANKS, "ranks of a stack", MAX_FOLDED),
            text(folded_stack::ACTIVITY, "activity", MAX_NAME_BYTES),
            texts(folded_stack::STACK, "lines of a stack", MAX_FRAMES),
        ],
    ),
    texts(hang_stacks::MISSING, "missing stacks", MAX_MISSING),
];

const MATRIX: &[FieldLimit] = &[
    many(latency_matrix::NODES, "nodes of a matrix", MAX_MATRIX_NODES, &[]),
    many(latency_matrix::CELLS, "cells of a matrix", MAX_MATRIX_CELLS, &[]),
];

/// Limits of an answer of GetSteps.
pub(super) const STEPS_ANSWER: &[FieldLimit] = &[
    once(get_steps_response::LATEST, "analyses", ANALYSIS),
    once(get_steps_response::ALL, "analyses", ANALYSIS),
    many(get_steps_response::TIMES, "times of steps", MAX_STEP_TIMES, &[]),
    many(get_steps_response::WAITS, "waits", MAX_SLOW, WAIT),
];

const ANALYSIS: &[FieldLimit] = &[
    many(step_analysis::STAGES, "stages", MAX_SLOW, STAGE),
    many(
        step_analysis::RANKS,
        "slow ranks",
        MAX_SLOW,
        &[text(slow_rank::NODE, "node name", MAX_NODE_BYTES)],
    ),
    many(step_analysis::LINKS, "slow links", MAX_SLOW, LINK),
];

/// Limits of an answer of GetTrace.
pub(super) const TRACE_ANSWER: &[FieldLimit] = &[
    many(get_trace_response::NAMES, "kinds of operations", MAX_SPAN_NAMES, &[]),
    numbers(get_trace_response::NATURES, "kinds of operations", MAX_SPAN_NAMES),
    numbers(get_trace_response::RANKS, "ranks of operations", MAX_TRACE_OPERATIONS),
    numbers(get_trace_response::STEPS, "steps of operations", MAX_TRACE_OPERATIONS),
    numbers(get_trace_response::KINDS, "kinds of operations", MAX_TRACE_OPERATIONS),
    numbers(get_trace_response::PARTS, "parts of operations", MAX_TRACE_OPERATIONS),
    numbers(get_trace_response::STARTS_NS, "starts of operations", MAX_TRACE_OPERATIONS),
    numbers(get_trace_response::DURATIONS_NS, "durations of operations", MAX_TRACE_OPERATIONS),
    numbers(get_trace_response::WORKS_NS, "work of operations", MAX_TRACE_OPERATIONS),
    numbers(get_trace_response::UNITS, "units of operations", MAX_TRACE_OPERATIONS),
];

const LINK: &[FieldLimit] = &[
    text(slow_link::FROM_NODE, "node name", MAX_NODE_BYTES),
    text(slow_link::TO_NODE, "node name", MAX_NODE_BYTES),
];

const WAIT: &[FieldLimit] = &[
    text(rank_wait::NODE, "node name", MAX_NODE_BYTES),
    text(rank_wait::AWAITED_NODE, "node name", MAX_NODE_BYTES),
];

const STAGE: &[FieldLimit] = &[
    many(
        slow_stage::WORK,
        "kinds of computations",
        MAX_SPAN_NAMES,
        &[text(stage_work::NAME, "name", MAX_NAME_BYTES)],
    ),
    numbers(slow_stage::RANKS, "ranks of a stage", MAX_AWAITED_RANKS),
];

/// Limits of an answer of GetRankMap.
pub(super) const RANK_MAP_ANSWER: &[FieldLimit] =
    &[many(get_rank_map_response::HOLDERS, "slots", MAX_ROWS, HOLDER)];

const HOLDER: &[FieldLimit] = &[
    text(slot_holder::NODE, "node name", MAX_NODE_BYTES),
    text(slot_holder::ADDRESS, "address of a node", MAX_NODE_BYTES),
];

/// Limits of an answer of ListDecisions.
pub(super) const DECISIONS_ANSWER: &[FieldLimit] =
    &[many(list_decisions_response::DECISIONS, "decisions", MAX_ROWS, DECISION)];

const DECISION: &[FieldLimit] = &[
    text(decision_summary::WHY, "reason of a decision", MAX_TEXT_BYTES),
    many(decision_summary::EVICTED, "evicted nodes", MAX_EVICTED, &[]),
    text(decision_summary::INCIDENT, "incident number", MAX_NAME_BYTES),
];

/// Limits of a request that names a node or an incident, and of one that names nothing.
pub(super) const REQUEST: &[FieldLimit] = &[text(1, "name", MAX_NODE_BYTES)];

/// Limits of an answer without lists or texts.
pub(super) const PLAIN_ANSWER: &[FieldLimit] = &[];
