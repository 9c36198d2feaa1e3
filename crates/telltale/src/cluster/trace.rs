//! The latest training steps as a trace that <https://ui.perfetto.dev> and Chromium's `chrome://tracing` open: the trace
//! event format, with a process for each node and a thread for each rank.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use telltale_control_plane::operator::OperatorError;
use telltale_wire::cluster::message::{
    GetRankMapResponse, GetTraceRequest, GetTraceResponse, OperationNature, OperationPart,
};

use super::{ClusterQuery, replacing, report};
use crate::exit::{Failure, Status};

/// Lines of one rank for operations that overlap; further ones share the last.
const LANES: usize = 16;

/// One operation.
#[derive(Debug, Clone)]
struct TracedOperation {
    rank: u32,
    step: u64,
    name: String,
    nature: OperationNature,
    part: OperationPart,
    start_ns: i64,
    duration_ns: u64,
    work_ns: u64,
    unit: u32,
}

/// Asks the coordinator for the steps and writes them. A file that was there is replaced once the trace is whole.
pub(super) fn write(asking: &ClusterQuery, file: &Path) -> Result<Status, Failure> {
    let (map, operations) = fetch(asking).map_err(|error| Failure::because(&error))?;
    if operations.is_empty() {
        return asking.printer.refused(report::NONE);
    }
    replacing::replace(file, ("trace", "--trace"), |to| events(&map, operations, to))?;
    Ok(Status::Fine)
}

fn fetch(
    asking: &ClusterQuery,
) -> Result<(GetRankMapResponse, Vec<TracedOperation>), OperatorError> {
    let map = asking.ask(async |client| client.rank_map().await)?;
    let (mut from, mut all) = (GetTraceRequest::default(), Vec::new());
    loop {
        let asked = from;
        let part = asking.ask(async |client| client.trace(asked).await)?;
        let next = part.next.filter(|next| (next.step, next.place) > (from.step, from.place));
        all.extend(operations(&part));
        match next {
            Some(next) => from = next,
            None => return Ok((map, all)),
        }
    }
}

/// The operations of an answer, as far as its lists go.
fn operations(part: &GetTraceResponse) -> Vec<TracedOperation> {
    let (mut step, mut start_ns) = (0_i64, 0_i64);
    let one = |place: usize| {
        step = step.wrapping_add(*part.steps.get(place)?);
        start_ns = start_ns.wrapping_add(*part.starts_ns.get(place)?);
        let kind = usize::try_from(*part.kinds.get(place)?).ok()?;
        Some(TracedOperation {
            rank: *part.ranks.get(place)?,
            step: step.cast_unsigned(),
            name: part.names.get(kind)?.clone(),
            nature: OperationNature::try_from(*part.natures.get(kind)?).unwrap_or_default(),
            part: OperationPart::try_from(*part.parts.get(place)?).unwrap_or_default(),
            start_ns,
            duration_ns: *part.durations_ns.get(place)?,
            work_ns: *part.works_ns.get(place)?,
            unit: *part.units.get(place)?,
        })
    };
    (0..part.ranks.len()).map_while(one).collect()
}

fn events(
    map: &GetRankMapResponse,
    mut all: Vec<TracedOperation>,
    to: &mut dyn Write,
) -> io::Result<()> {
    all.sort_by_key(|one| (one.rank, one.start_ns, std::cmp::Reverse(one.duration_ns)));
    let base_ns = all.iter().map(|one| one.start_ns).min().unwrap_or(0);
    let workers = map.workers_per_node.max(1);
    let node_of = |rank: u32| rank / workers;
    let mut out = Events { to, is_first: true };
    out.to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
    for holder in &map.holders {
        out.add(&named("process_name", holder.slot, 0, &format!("node {}", holder.node)))?;
    }
    let mut lanes: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for one in &all {
        let begin_ns = one.start_ns - base_ns;
        let end_ns = begin_ns.saturating_add_unsigned(one.duration_ns);
        let free = lanes.entry(one.rank).or_default();
        let lane = free.iter().position(|until| *until <= begin_ns).unwrap_or(free.len());
        let lane = lane.min(LANES - 1);
        if lane == free.len() {
            free.push(end_ns);
            let name = if lane == 0 { String::new() } else { format!(" ({})", lane + 1) };
            let name = format!("rank {}{name}", one.rank);
            out.add(&named("thread_name", node_of(one.rank), thread(one.rank, lane), &name))?;
        }
        free[lane] = end_ns;
        let place = json!({ "pid": node_of(one.rank), "tid": thread(one.rank, lane) });
        out.add(&joined(&place, slice(one, begin_ns)))?;
        // An arrow from the sender to the receiver.
        let flow = format!("{}.{}", one.step, one.unit);
        match one.part {
            OperationPart::Sends => {
                let flow = json!({ "ph": "s", "cat": "transfer", "name": "transfer", "id": flow, "ts": us(begin_ns) });
                out.add(&joined(&place, flow))?;
            }
            OperationPart::Receives => {
                let flow = json!({ "ph": "f", "bp": "e", "cat": "transfer", "name": "transfer", "id": flow, "ts": us(end_ns) });
                out.add(&joined(&place, flow))?;
            }
            _ => {}
        }
    }
    out.to.write_all(b"\n]}\n")
}

/// A thread's number: those of one rank are beside each other.
fn thread(rank: u32, lane: usize) -> u64 {
    u64::from(rank) * LANES as u64 + lane as u64
}

/// An operation from its begin to its end.
fn slice(one: &TracedOperation, begin_ns: i64) -> Value {
    let nature = match one.nature {
        OperationNature::Compute => "compute",
        OperationNature::Communication => "communication",
        OperationNature::Between => "between",
        OperationNature::Unspecified => "other",
    };
    let waited_us = one.duration_ns.saturating_sub(one.work_ns) as f64 / 1e3;
    json!({
        "ph": "X", "name": one.name, "cat": nature, "ts": us(begin_ns),
        "dur": one.duration_ns as f64 / 1e3,
        "args": { "step": one.step, "rank": one.rank, "waited_us": waited_us },
    })
}

fn named(what: &str, process: u32, thread: u64, name: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": { "name": name } })
}

/// Two objects in one.
fn joined(one: &Value, other: Value) -> Value {
    let fields = [one.clone(), other].into_iter().filter_map(|part| match part {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    Value::Object(fields.flatten().collect())
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

/// Events as they are written, with commas between them.
struct Events<'a> {
    to: &'a mut dyn Write,
    is_first: bool,
}

impl Events<'_> {
    fn add(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.is_first) {
            self.to.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.to, event).map_err(io::Error::from)
    }
}
