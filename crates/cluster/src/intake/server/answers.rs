//! What an intake knows, as text for people and programs.

use serde::Serialize;
use std::collections::BTreeMap;

use crate::intake::View;

/// The original's answer: what it has is named as there, what is not known is left out.
#[derive(Debug, Serialize)]
struct Figures {
    /// `active` while workers run here, else `standby`.
    state: &'static str,
    /// The rank of this node's first worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    world_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    /// The mean of what was reported last, in milliseconds.
    latencies: BTreeMap<String, f64>,
}

/// The content type and text of the figures.
pub(super) fn metrics(view: &View, _accept: Option<&str>) -> (&'static str, String) {
    let text = serde_json::to_string(&figures(view));
    ("application/json", text.expect("text and numbers are always JSON"))
}

fn figures(view: &View) -> Figures {
    let scope = view.scope.as_ref();
    let latencies = view.latencies_ns.iter();
    Figures {
        state: if scope.is_some() { "active" } else { "standby" },
        rank: scope.map(|scope| scope.ranks.start),
        world_size: scope.map(|scope| scope.world_size),
        epoch: scope.map(|scope| scope.epoch.number()),
        latencies: latencies
            .map(|(peer, mean_ns)| (peer.to_string(), milliseconds(*mean_ns)))
            .collect(),
    }
}

/// Whole microseconds, so that the text is short.
fn milliseconds(nanoseconds: u64) -> f64 {
    let microseconds = u32::try_from(nanoseconds / 1000).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1000.0
}
