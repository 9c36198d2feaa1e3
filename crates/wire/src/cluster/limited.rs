//! The limits of the coordinator's messages, field by field. The numbers are those of
//! `cluster.proto`. What is not named here is once in a message, or as small as the bytes of it.

use crate::limits::cluster::{
    MAX_AWAITED_RANKS, MAX_DEVICES, MAX_EVICTED, MAX_EVIDENCE, MAX_MATRIX_CELLS, MAX_MATRIX_NODES,
    MAX_NODE_BYTES, MAX_OPERATION_GROUPS, MAX_OPERATIONS, MAX_PROGRESS, MAX_SIGNS, MAX_SLOW,
    MAX_SPAN_NAMES, MAX_STEP_TIMES, MAX_SUSPECTS, MAX_TRACE_OPERATIONS, MAX_TRAFFIC, MAX_VERDICTS,
    MAX_WINDOWS, MAX_WORKERS,
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
    text(1, "node name", MAX_NODE_BYTES),
    once(
        4,
        "registrations",
        &[text(1, "address of a node", MAX_NODE_BYTES), text(5, "job name", MAX_TEXT_BYTES)],
    ),
    once(5, "reports", REPORT),
    once(6, "acknowledgements", &[]),
];

const REPORT: &[FieldLimit] = &[
    many(2, "workers", MAX_WORKERS, &[]),
    many(3, "progress of groups", MAX_PROGRESS, PROGRESS),
    many(4, "windows of transfers", MAX_WINDOWS, &[]),
    many(5, "windows of collectives", MAX_WINDOWS, &[]),
    once(7, "vitals", VITALS),
    once(8, "operations", OPERATIONS),
    many(9, "withheld processors", MAX_WORKERS, &[]),
    many(11, "traffic", MAX_TRAFFIC, &[text(1, "address", 16), text(2, "address", 16)]),
];

const OPERATIONS: &[FieldLimit] = &[
    FieldLimit {
        number: 1,
        name: "names of computations",
        max_count: MAX_SPAN_NAMES,
        max_bytes: MAX_NAME_BYTES,
        inner: &[],
    },
    numbers(2, "groups of operations", MAX_OPERATION_GROUPS),
    numbers(3, "ranks of operations", MAX_OPERATIONS),
    numbers(4, "steps of operations", MAX_OPERATIONS),
    numbers(5, "kinds of operations", MAX_OPERATIONS),
    numbers(6, "subjects of operations", MAX_OPERATIONS),
    numbers(7, "places of groups", MAX_OPERATIONS),
    numbers(8, "sizes of operations", MAX_OPERATIONS),
    numbers(9, "starts of operations", MAX_OPERATIONS),
    numbers(10, "durations of operations", MAX_OPERATIONS),
];

/// Numbers, packed or not.
const fn numbers(number: u32, name: &'static str, max_count: usize) -> FieldLimit {
    let max_bytes = max_count * MAX_LONG_NUMBER_BYTES;
    FieldLimit { number, name, max_count, max_bytes, inner: &[] }
}

/// Numbers may be packed or not.
const PROGRESS: &[FieldLimit] = &[FieldLimit {
    number: 5,
    name: "awaited ranks",
    max_count: MAX_AWAITED_RANKS,
    max_bytes: MAX_AWAITED_RANKS * MAX_NUMBER_BYTES,
    inner: &[],
}];

const VITALS: &[FieldLimit] =
    &[many(4, "processes", MAX_WORKERS, &[]), many(5, "devices", MAX_DEVICES, DEVICE)];

const DEVICE: &[FieldLimit] =
    &[text(1, "device name", MAX_NAME_BYTES), text(3, "state of a device", MAX_TEXT_BYTES)];

/// Limits of a message to an agent.
pub(super) const COORDINATOR_MESSAGE: &[FieldLimit] = &[
    text(1, "node name", MAX_NODE_BYTES),
    once(
        8,
        "assignments",
        &[text(6, "address of rank 0", MAX_NODE_BYTES), text(10, "job name", MAX_TEXT_BYTES)],
    ),
    once(12, "refusals", &[text(1, "reason", MAX_TEXT_BYTES)]),
];

/// Limits of an answer of GetStatus.
pub(super) const STATUS_ANSWER: &[FieldLimit] = &[
    text(1, "job name", MAX_TEXT_BYTES),
    text(8, "address of rank 0", MAX_NODE_BYTES),
    text(22, "incident number", MAX_NAME_BYTES),
    text(24, "store", MAX_TEXT_BYTES),
    text(25, "version", MAX_NAME_BYTES),
];

/// Limits of an answer of ListNodes.
pub(super) const NODES_ANSWER: &[FieldLimit] = &[many(1, "nodes", MAX_ROWS, NODE)];

const NODE: &[FieldLimit] = &[
    text(1, "node name", MAX_NODE_BYTES),
    text(6, "address of a node", MAX_NODE_BYTES),
    once(11, "vitals", VITALS),
    many(12, "workers", MAX_WORKERS, &[]),
];

/// Limits of an answer of ListIncidents.
pub(super) const INCIDENTS_ANSWER: &[FieldLimit] = &[many(1, "incidents", MAX_ROWS, INCIDENT)];

const INCIDENT: &[FieldLimit] = &[
    text(1, "incident number", MAX_NAME_BYTES),
    many(5, "signs", MAX_SIGNS, SIGN),
    text(10, "node name", MAX_NODE_BYTES),
    many(12, "evicted nodes", MAX_EVICTED, &[]),
];

const SIGN: &[FieldLimit] = &[once(5, "suspicions", VERDICT)];

const VERDICT: &[FieldLimit] =
    &[many(2, "suspects", MAX_SUSPECTS, &[]), many(5, "evidence", MAX_EVIDENCE, &[])];

/// Limits of an answer of GetIncident.
pub(super) const INCIDENT_ANSWER: &[FieldLimit] = &[
    once(1, "incidents", INCIDENT),
    many(2, "verdicts", MAX_VERDICTS, VERDICT),
    once(3, "matrices", MATRIX),
];

const MATRIX: &[FieldLimit] = &[
    many(1, "nodes of a matrix", MAX_MATRIX_NODES, &[]),
    many(2, "cells of a matrix", MAX_MATRIX_CELLS, &[]),
];

/// Limits of an answer of GetSteps.
pub(super) const STEPS_ANSWER: &[FieldLimit] = &[
    once(1, "analyses", ANALYSIS),
    once(2, "analyses", ANALYSIS),
    many(3, "times of steps", MAX_STEP_TIMES, &[]),
    many(5, "waits", MAX_SLOW, ENDS),
];

const ANALYSIS: &[FieldLimit] = &[
    many(12, "stages", MAX_SLOW, STAGE),
    many(13, "slow ranks", MAX_SLOW, &[text(2, "node name", MAX_NODE_BYTES)]),
    many(14, "slow links", MAX_SLOW, ENDS),
];

/// Limits of an answer of GetTrace.
pub(super) const TRACE_ANSWER: &[FieldLimit] = &[
    many(1, "kinds of operations", MAX_SPAN_NAMES, &[]),
    numbers(2, "kinds of operations", MAX_SPAN_NAMES),
    numbers(3, "ranks of operations", MAX_TRACE_OPERATIONS),
    numbers(4, "steps of operations", MAX_TRACE_OPERATIONS),
    numbers(5, "kinds of operations", MAX_TRACE_OPERATIONS),
    numbers(6, "parts of operations", MAX_TRACE_OPERATIONS),
    numbers(7, "starts of operations", MAX_TRACE_OPERATIONS),
    numbers(8, "durations of operations", MAX_TRACE_OPERATIONS),
    numbers(9, "work of operations", MAX_TRACE_OPERATIONS),
    numbers(10, "units of operations", MAX_TRACE_OPERATIONS),
];

/// Names of two nodes.
const ENDS: &[FieldLimit] =
    &[text(2, "node name", MAX_NODE_BYTES), text(4, "node name", MAX_NODE_BYTES)];

const STAGE: &[FieldLimit] = &[
    many(3, "kinds of computations", MAX_SPAN_NAMES, &[text(1, "name", MAX_NAME_BYTES)]),
    numbers(5, "ranks of a stage", MAX_AWAITED_RANKS),
];

/// Limits of an answer of GetRankMap.
pub(super) const RANK_MAP_ANSWER: &[FieldLimit] = &[many(5, "slots", MAX_ROWS, HOLDER)];

const HOLDER: &[FieldLimit] =
    &[text(2, "node name", MAX_NODE_BYTES), text(3, "address of a node", MAX_NODE_BYTES)];

/// Limits of an answer of ListDecisions.
pub(super) const DECISIONS_ANSWER: &[FieldLimit] = &[many(1, "decisions", MAX_ROWS, DECISION)];

const DECISION: &[FieldLimit] = &[
    text(5, "reason of a decision", MAX_TEXT_BYTES),
    many(6, "evicted nodes", MAX_EVICTED, &[]),
    text(7, "incident number", MAX_NAME_BYTES),
];

/// Limits of a request that names a node or an incident, and of one that names nothing.
pub(super) const REQUEST: &[FieldLimit] = &[text(1, "name", MAX_NODE_BYTES)];

/// Limits of an answer without lists or texts.
pub(super) const PLAIN_ANSWER: &[FieldLimit] = &[];
