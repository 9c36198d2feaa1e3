//! Published production jobs as records that clients post.
//!
//! A trace has one operation in a line: step, rank, pipeline stage, data-parallel replica, kind, number, micro-batch, start
//! and duration in microseconds (`crates/steps/tests/data/stragglers`).

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use serde_json::{Map, Value, json};

use super::second::Second;
use super::stream::{Heard, JobLine, line};
use crate::faults::machine::name;

/// What passes between stages and replicas; the traces do not say how much.
const BYTES: u64 = 1 << 24;
/// By how much the clock of each node is ahead of that of the one before, in microseconds.
const AHEAD_US: u64 = 3_600_000_000;

/// A job: its operations, how many stages and replicas it has, and how many ranks are on one node.
#[derive(Debug, Clone)]
pub struct Trace {
    operations: Vec<TraceOperation>,
    stages: u64,
    replicas: u64,
    workers: u64,
}

#[derive(Debug, Clone)]
struct TraceOperation {
    step: u64,
    stage: u64,
    replica: u64,
    kind: String,
    start_us: i64,
    duration_us: i64,
}

// === impl Trace ===

impl Trace {
    /// Reads a trace whose first line names the columns; a node has `workers` of its ranks.
    ///
    /// # Errors
    /// When it cannot be read, or a line is no operation.
    pub fn read(from: impl BufRead, workers: u32) -> io::Result<Self> {
        let mut operations = Vec::new();
        for (number, line) in from.lines().enumerate().skip(1) {
            operations.push(TraceOperation::parse(&line?).ok_or_else(|| {
                let text = format!("line {} of the trace is no operation", number + 1);
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?);
        }
        let most = |of: fn(&TraceOperation) -> u64| {
            operations.iter().map(of).max().map_or(0, |one| one + 1)
        };
        let (stages, replicas) = (most(|one| one.stage), most(|one| one.replica));
        Ok(Self { operations, stages, replicas, workers: u64::from(workers.max(1)) })
    }

    /// How many ranks it has.
    #[must_use]
    pub const fn ranks(&self) -> u64 {
        self.stages * self.replicas
    }

    /// How many nodes.
    #[must_use]
    pub const fn nodes(&self) -> u64 {
        self.ranks().div_ceil(self.workers)
    }

    /// How many ranks each node has.
    #[must_use]
    pub const fn workers(&self) -> u64 {
        self.workers
    }

    /// What each rank posts of the next `steps` steps, numbered from `first`: records, one in a line.
    #[must_use]
    pub fn posts(&self, first: u64, steps: u64) -> BTreeMap<u64, Vec<String>> {
        let mut posts: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let of_steps = self.operations.chunk_by(|one, next| one.step == next.step);
        for (number, operations) in (0_u64..).zip(of_steps) {
            if !(first..first + steps).contains(&number) {
                continue;
            }
            for one in operations {
                posts.entry(self.rank(one)).or_default().push(self.record(one, number).to_string());
            }
            for rank in 0..self.ranks() {
                let end = json!({ "opType": "step", "global_rank": rank, "step": number });
                posts.entry(rank).or_default().push(end.to_string());
            }
        }
        posts
    }

    /// Writes the job as a detector gets it: what a node posts of a step comes when that ends.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, job: &str, to: &mut impl Write) -> io::Result<()> {
        let node = |number: u64| name(u32::try_from(number).unwrap_or(u32::MAX)).to_string();
        let nodes = (0..self.nodes()).map(node).collect();
        let workers_per_node = u32::try_from(self.workers).unwrap_or(u32::MAX);
        line(to, &JobLine { job: job.to_owned(), nodes, workers_per_node })?;
        let mut at = 0.0;
        for (number, operations) in
            (0..).zip(self.operations.chunk_by(|one, next| one.step == next.step))
        {
            let ends = operations.iter().map(|one| one.start_us + one.duration_us);
            let starts = operations.iter().map(|one| one.start_us);
            let [first, last] = [starts.min(), ends.max()].map(Option::unwrap_or_default);
            at += (last - first) as f64 / 1e6;
            let mut of_nodes: BTreeMap<u64, Vec<String>> = BTreeMap::new();
            for (rank, records) in self.posts(number, 1) {
                of_nodes.entry(rank / self.workers).or_default().extend(records);
            }
            for (number, records) in of_nodes {
                let second = Second { records, sent_us: None, withheld: None, traffic: Vec::new() };
                line(to, &Heard::new(at, node(number), second))?;
            }
        }
        Ok(())
    }

    const fn rank(&self, one: &TraceOperation) -> u64 {
        one.replica * self.stages + one.stage
    }

    /// The operation as a client posts it.
    fn record(&self, one: &TraceOperation, number: u64) -> Value {
        let rank = self.rank(one);
        let (stage, stages) = (one.stage, self.stages);
        let (first, last) = (stage == 0, stage + 1 == stages);
        let ahead_us = i64::try_from(rank / self.workers * AHEAD_US).unwrap_or(0);
        let start = one.start_us + ahead_us;
        let transfer = |kind: &str, peer: u64| {
            let direction = if kind.ends_with("send") { "send" } else { "recv" };
            json!({ "opType": direction, "remoteRank": peer, "bytes": BYTES,
                    "context_rank": rank, "context_size": self.ranks() })
        };
        let collective = |name: &str, group: String, place: u64, size: u64| {
            json!({ "opType": name, "group": group, "bytes": BYTES, "context_rank": place,
                    "context_size": size })
        };
        let of_stage = |name| collective(name, format!("dp{stage}"), one.replica, self.replicas);
        let what = match one.kind.as_str() {
            kind @ ("forward-send" | "backward-recv") if !last => transfer(kind, rank + 1),
            kind @ ("forward-recv" | "backward-send") if !first => transfer(kind, rank - 1),
            "params-all-gather" => of_stage("all_gather"),
            "grads-reduce-scatter" => of_stage("reduce_scatter"),
            "embedding-grads-all-reduce" => {
                let group = format!("embedding{}", one.replica);
                collective("all_reduce", group, u64::from(last), 2)
            }
            "optimizer-clip-main-grad" => {
                collective("all_reduce", String::new(), rank, self.ranks())
            }
            kind => json!({ "opType": "compute", "name": kind }),
        };
        let when = json!({
            "global_rank": rank, "step": number, "finished": true,
            "startTime": start, "endTime": start + one.duration_us,
        });
        let fields = [what, when].into_iter().filter_map(|part| match part {
            Value::Object(fields) => Some(fields),
            _ => None,
        });
        Value::Object(fields.flatten().collect::<Map<_, _>>())
    }
}

impl TraceOperation {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |place: usize| fields.get(place)?.parse::<i64>().ok();
        let whole = |place: usize| u64::try_from(number(place)?).ok();
        Some(Self {
            step: whole(0)?,
            stage: whole(2)?,
            replica: whole(3)?,
            kind: (*fields.get(4)?).to_owned(),
            start_us: number(7)?,
            duration_us: number(8)?,
        })
    }
}
