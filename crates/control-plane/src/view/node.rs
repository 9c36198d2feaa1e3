//! Nodes, their workers, processes and devices.

use serde::Serialize;
use telltale_wire::cluster::message::{DeviceHealth, Node, Worker};

use super::words;

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// `active`, `standby`, `silent`, `barred`, or `ended` with the job.
    pub state: &'static str,
    /// Why it is kept out: `quarantined`, `suspected`, `draining` or `removed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<&'static str>,
    /// Its slot, if it holds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// The first of its ranks, if it holds a slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_rank: Option<u32>,
    /// Where its workers are reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How many workers it can run; 0 if it has not registered with this leader.
    pub workers: u32,
    /// What it said last that it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityView>,
    /// How long ago it was heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_ago_ns: Option<u64>,
    /// Its failures that count.
    pub failures: u32,
    /// How busy its processors are, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors_busy_ratio: Option<f64>,
    /// Memory that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Memory that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    /// Its workers, by rank.
    pub worker_states: Vec<WorkerView>,
    /// Its workers' processes.
    pub processes: Vec<ProcessView>,
    /// Its accelerators, where a node service reports them.
    pub devices: Vec<DeviceView>,
    /// The most severe of what is wrong with the machine around them, where a node service reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<DeviceView>,
}

/// What an agent does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActivityView {
    /// `idle`, `preparing` or `committed`.
    pub kind: &'static str,
    /// The epoch that it is about.
    pub epoch: u64,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerView {
    /// Its rank.
    pub rank: u32,
    /// `running`, `stopped`, `finished`, `ended` or `failed`.
    pub state: &'static str,
    /// How a failed one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// One worker's process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessView {
    /// Whose.
    pub rank: u32,
    /// Its number on its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// Processor time, in processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<f64>,
    /// Memory that is resident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

/// One accelerator, or another part of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceView {
    /// What its node's service calls it.
    pub device: String,
    /// Whether nothing is wrong with it.
    pub healthy: bool,
    /// What is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// `ok`, `warning` or `failed`, where its agent reports that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<&'static str>,
    /// The rule that found what is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
}

impl From<&Node> for NodeView {
    fn from(node: &Node) -> Self {
        let vitals = node.vitals.clone().unwrap_or_default();
        let activity = node.activity.map(|activity| ActivityView {
            kind: words::activity(activity.kind()),
            epoch: activity.epoch,
        });
        Self {
            name: node.name.clone(),
            state: words::node_state(node.state()),
            bar: words::bar(node.bar()),
            slot: node.slot,
            first_rank: node.first_rank,
            address: (!node.address.is_empty()).then(|| node.address.clone()),
            workers: node.workers,
            activity,
            heard_ago_ns: node.heard_ago_ns,
            failures: node.failures,
            processors_busy_ratio: vitals.processors_busy_ratio,
            memory_used_bytes: vitals.memory_used_bytes,
            memory_total_bytes: vitals.memory_total_bytes,
            worker_states: node.worker_states.iter().map(WorkerView::from).collect(),
            processes: vitals
                .processes
                .iter()
                .map(|process| ProcessView {
                    rank: process.rank,
                    process_id: process.process_id,
                    processors: process.processors,
                    resident_bytes: process.resident_bytes,
                })
                .collect(),
            devices: vitals.devices.into_iter().map(DeviceView::from).collect(),
            host: vitals.host.map(DeviceView::from),
        }
    }
}

impl From<DeviceHealth> for DeviceView {
    fn from(from: DeviceHealth) -> Self {
        let health = words::health(from.state());
        let DeviceHealth { device, healthy, reason, rule, .. } = from;
        Self { device, healthy, reason, health, rule }
    }
}

impl From<&Worker> for WorkerView {
    fn from(worker: &Worker) -> Self {
        Self {
            rank: worker.rank,
            state: words::worker_state(worker.state()),
            end: worker.end.as_ref().map(words::end),
        }
    }
}

impl NodeView {
    /// Its workers in a few words: `4 running`, or `3 running, 1 failed`.
    #[must_use]
    pub fn workers_sentence(&self) -> String {
        let mut counted: Vec<(&'static str, usize)> = Vec::new();
        for worker in &self.worker_states {
            match counted.iter_mut().find(|(state, _)| *state == worker.state) {
                Some((_, count)) => *count += 1,
                None => counted.push((worker.state, 1)),
            }
        }
        let parts = counted.iter().map(|(state, count)| format!("{count} {state}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}
