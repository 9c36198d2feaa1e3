//! What an intake knows, as text for people and programs.

use std::collections::BTreeMap;

use serde::Serialize;
use telltale_wire::exposition::{Format, choose};

use super::exposition;
use crate::intake::IntakeView;

/// The original's answer: what it has is named as there, what is not known is left out.
#[derive(Debug, Serialize)]
struct AgentMetrics {
    /// `active` while workers run here, else `standby`.
    state: &'static str,
    /// The rank of this node's first worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    world_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    /// Memory in use, as a percentage of the node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    ram_usage: Option<f64>,
    /// How busy the node's processors are, as a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_usage: Option<f64>,
    /// The mean of what was reported last, in milliseconds.
    latencies: BTreeMap<String, f64>,
    /// The peers whose latency there is as reported by a process of which it is not known that it is a worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unverified: Vec<String>,
}

/// The content type and text of the metrics: the original's JSON, unless one of Prometheus' texts is
/// wanted more; none where none of them is wanted.
pub(super) fn metrics(view: &IntakeView, accept: Option<&str>) -> Option<(&'static str, String)> {
    let [text, open_metrics] = Format::ALL.map(Format::offer);
    match choose(accept, &[("application/json", None), text, open_metrics])? {
        0 => {
            let text = serde_json::to_string(&own_metrics(view));
            Some(("application/json", text.expect("text and numbers are always JSON")))
        }
        other => {
            let format = Format::ALL[other - 1];
            Some((format.content_type(), exposition::text(format, view)))
        }
    }
}

fn own_metrics(view: &IntakeView) -> AgentMetrics {
    let scope = view.scope.as_ref();
    let (verified, others) = (&view.latencies_ns, &view.unverified_latencies_ns);
    let others = others.iter().filter(|(peer, _)| !verified.contains_key(peer));
    let vitals = &view.vitals;
    let memory = vitals.memory_used_bytes.zip(vitals.memory_total_bytes);
    AgentMetrics {
        state: if scope.is_some() { "active" } else { "standby" },
        rank: scope.map(|scope| scope.ranks.start),
        world_size: scope.map(|scope| scope.world_size),
        epoch: scope.map(|scope| scope.epoch.number()),
        ram_usage: memory.and_then(|(used, all)| percent(used, all)),
        cpu_usage: vitals.processors_busy_ratio.map(|ratio| tenths(ratio * 100.0)),
        unverified: others.clone().map(|(peer, _)| peer.to_string()).collect(),
        latencies: verified
            .iter()
            .chain(others)
            .map(|(peer, mean_ns)| (peer.to_string(), milliseconds(*mean_ns)))
            .collect(),
    }
}

/// A share of memory; in MiB, since a number of bytes may not fit.
fn percent(part_bytes: u64, all_bytes: u64) -> Option<f64> {
    let [part, all] = [part_bytes, all_bytes].map(|bytes| u32::try_from(bytes >> 20).ok());
    let share = f64::from(part?) / f64::from(all.filter(|all| *all > 0)?);
    Some(tenths(share * 100.0))
}

/// A tenth is exact enough, and its text short.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Whole microseconds, so that the text is short.
fn milliseconds(nanoseconds: u64) -> f64 {
    let microseconds = u32::try_from(nanoseconds / 1000).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1000.0
}
