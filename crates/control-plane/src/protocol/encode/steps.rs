//! Training steps and where their time goes.

use telltale_wire::cluster::message;

use telltale_cluster::detection::steps::{Analysis, RankWait, StepsView};
use telltale_cluster::node::NodeName;

/// All that is known of a job's steps.
pub(crate) fn steps(from: &StepsView) -> message::GetStepsResponse {
    let times =
        from.times.iter().map(|one| message::StepTime { step: one.step, time_ns: one.time_ns });
    message::GetStepsResponse {
        latest: (from.latest.steps > 0).then(|| analysis(&from.latest)),
        all: (from.all.steps > 0).then(|| analysis(&from.all)),
        times: times.collect(),
        left_out: from.left_out,
        waits: from.waits.iter().map(wait).collect(),
    }
}

fn wait(from: &RankWait) -> message::RankWait {
    message::RankWait {
        rank: from.rank.0,
        node: name(from.node.as_ref()),
        awaited: from.awaited.0,
        awaited_node: name(from.awaited_node.as_ref()),
        time_ns: unsigned(from.ns),
    }
}

fn analysis(from: &Analysis) -> message::StepAnalysis {
    let stages = from.stages.iter().map(|one| message::SlowStage {
        stage: one.stage,
        ratio: one.ratio,
        work: one
            .kinds
            .iter()
            .map(|(name, ratio)| message::StageWork { name: name.to_string(), ratio: *ratio })
            .collect(),
        rank_count: u32::try_from(one.rank_count).unwrap_or(u32::MAX),
        ranks: one.ranks.iter().map(|rank| rank.0).collect(),
    });
    let ranks = from.ranks.iter().map(|one| message::SlowRank {
        rank: one.rank.0,
        node: name(one.node.as_ref()),
        ratio: one.slowness.ratio,
        cost_ns: unsigned(one.slowness.cost_ns),
        slow: one.slowness.slow_steps,
        observed: one.slowness.steps,
        is_between: one.is_between,
        withheld: one.withheld,
    });
    let links = from.links.iter().map(|one| message::SlowLink {
        from: one.from.0,
        from_node: name(one.from_node.as_ref()),
        to: one.to.0,
        to_node: name(one.to_node.as_ref()),
        ratio: one.slowness.ratio,
        cost_ns: unsigned(one.slowness.cost_ns),
        slow: one.slowness.slow_steps,
        observed: one.slowness.steps,
    });
    message::StepAnalysis {
        steps: from.steps,
        first_step: from.first_step,
        last_step: from.last_step,
        slowdown: from.slowdown,
        actual_ns: unsigned(from.actual_ns),
        even_ns: unsigned(from.even_ns),
        stages_ns: from.stages_ns as i64,
        ranks_ns: from.ranks_ns as i64,
        data_ns: from.data_ns as i64,
        noise_ns: from.noise_ns as i64,
        links_ns: from.links_ns as i64,
        stages: stages.collect(),
        ranks: ranks.collect(),
        links: links.collect(),
    }
}

fn name(node: Option<&NodeName>) -> String {
    node.map(|node| node.as_str().to_owned()).unwrap_or_default()
}

/// Whole nanoseconds; 0 for less.
const fn unsigned(ns: f64) -> u64 {
    ns as u64
}
