//! What happens in the demo of a cluster, one thing after the other, in words and as JSON.

use std::time::Duration;

use serde_json::{Value, json};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DemoEvent {
    /// When, from the demo's beginning.
    pub(super) at: Duration,
    /// How long after the node was killed, if it was.
    pub(super) after_kill: Option<Duration>,
    pub(super) what: DemoEventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DemoEventKind {
    /// Coordinator and agents were started.
    Started { nodes: usize, spares: usize },
    /// The coordinator decided something.
    Decided { epoch: u64, why: String, evicted: Vec<String> },
    /// All workers of an epoch run.
    Runs { epoch: u64, nodes: Vec<String>, spares: Vec<String> },
    /// The first step of an epoch is done.
    Stepped { epoch: u64, step: u64, resumed_after: u64 },
    /// The demo killed a node.
    Killed { node: String, rank: u32, step: u64, processes: usize },
    /// Workers failed.
    Failed { ranks: Vec<u32> },
    /// The coordinator does not hear a node any more.
    Silent { node: String },
    /// Every rank has done all steps.
    Trained { steps: u64, digest: String },
    /// So has every rank of the undisturbed training.
    Undisturbed { steps: u64, digest: String },
}

impl DemoEventKind {
    /// Its name in JSON.
    fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Decided { .. } => "decided",
            Self::Runs { .. } => "runs",
            Self::Stepped { .. } => "stepped",
            Self::Killed { .. } => "killed",
            Self::Failed { .. } => "failed",
            Self::Silent { .. } => "silent",
            Self::Trained { .. } => "trained",
            Self::Undisturbed { .. } => "undisturbed",
        }
    }

    /// Whether it is of what the demo is there to show.
    pub(super) fn is_trouble(&self) -> bool {
        matches!(self, Self::Killed { .. } | Self::Failed { .. } | Self::Silent { .. })
    }

    fn words(&self) -> String {
        match self {
            Self::Started { nodes, spares } => {
                format!(
                    "a coordinator and {} agents started, {spares} of them a spare",
                    nodes + spares
                )
            }
            Self::Decided { epoch, why, evicted } => {
                let out = match evicted.is_empty() {
                    true => String::new(),
                    false => format!("{} out; ", evicted.join(", ")),
                };
                format!("epoch {epoch}: {out}{why}")
            }
            Self::Runs { epoch, nodes, spares } => {
                let spares = match (spares.is_empty(), epoch) {
                    // Enough nodes were there before all.
                    (true, 1) => String::from("the spare is yet to come"),
                    (true, _) => String::from("no spare is left"),
                    (false, _) => format!("spare: {}", spares.join(", ")),
                };
                format!("epoch {epoch} runs on {}; {spares}", nodes.join(", "))
            }
            Self::Stepped { epoch, step, resumed_after: 0 } => {
                format!("step {step} is done, the first of epoch {epoch}")
            }
            Self::Stepped { epoch, step, resumed_after } => {
                format!("step {step} is done in epoch {epoch}, resumed after step {resumed_after}")
            }
            Self::Killed { node, rank, step, processes } => {
                format!("KILLED {node} (rank {rank}) after step {step}, all {processes} processes")
            }
            Self::Failed { ranks } => {
                let ranks: Vec<_> = ranks.iter().map(u32::to_string).collect();
                match ranks.as_slice() {
                    [rank] => format!("rank {rank} fails"),
                    ranks => format!("ranks {} fail", ranks.join(", ")),
                }
            }
            Self::Silent { node } => format!("{node} is not heard any more"),
            Self::Trained { steps, digest } => {
                format!("every rank has done {steps} steps; weights {digest}")
            }
            Self::Undisturbed { steps, digest } => {
                format!("undisturbed, {steps} steps; weights {digest}")
            }
        }
    }

    fn fields(&self) -> Value {
        match self {
            Self::Started { nodes, spares } => json!({"nodes": nodes, "spares": spares}),
            Self::Decided { epoch, why, evicted } => {
                json!({"epoch": epoch, "why": why, "evicted": evicted})
            }
            Self::Runs { epoch, nodes, spares } => {
                json!({"epoch": epoch, "nodes": nodes, "spares": spares})
            }
            Self::Stepped { epoch, step, resumed_after } => {
                json!({"epoch": epoch, "step": step, "resumed_after": resumed_after})
            }
            Self::Killed { node, rank, step, processes } => {
                json!({"node": node, "rank": rank, "step": step, "processes": processes})
            }
            Self::Failed { ranks } => json!({"ranks": ranks}),
            Self::Silent { node } => json!({"node": node}),
            Self::Trained { steps, digest } | Self::Undisturbed { steps, digest } => {
                json!({"steps": steps, "weights_digest": digest})
            }
        }
    }
}

impl DemoEvent {
    /// A line for a person.
    pub(super) fn line(&self) -> String {
        let after = self.after_kill.map(|after| format!("+{:.2} s", after.as_secs_f64()));
        let (at, after) = (self.at.as_secs_f64(), after.unwrap_or_default());
        let words = self.what.words();
        let why = match self.what {
            DemoEventKind::Failed { .. } if self.after_kill.is_some() => ", since a peer is gone",
            _ => "",
        };
        format!("{at:6.2} s {after:>8}  {words}{why}")
    }

    /// One object.
    pub(super) fn json(&self) -> Value {
        let mut object = self.what.fields();
        object["event"] = self.what.name().into();
        object["seconds"] = self.at.as_secs_f64().into();
        object["seconds_after_kill"] = self.after_kill.map(|after| after.as_secs_f64()).into();
        object
    }
}
