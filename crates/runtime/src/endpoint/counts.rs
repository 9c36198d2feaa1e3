//! What the endpoint says about itself.

use telltale_schema::snapshot::{MetricSample, MetricValue};

use crate::problem::Step;

/// How connections and queries went so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) queries: u64,
    pub(super) refused_users: u64,
    pub(super) deadlines_missed: u64,
    pub(super) broken_connections: u64,
    pub(super) refused_queries: u64,
    pub(super) failed_accepts: u64,
}

impl Counts {
    /// The endpoint's own metrics.
    pub(super) fn samples(&self) -> Vec<MetricSample> {
        let errors = [
            ("user", self.refused_users),
            ("deadline", self.deadlines_missed),
            ("connection", self.broken_connections),
            ("query", self.refused_queries),
            ("accept", self.failed_accepts),
        ];
        let errors = errors.into_iter().map(|(reason, count)| {
            let help = "Connections and queries the endpoint gave up or refused, by reason.";
            counter("telltale_endpoint_errors_total", help, Some(("reason", reason)), count)
        });
        let help = "Queries the endpoint answered.";
        [counter("telltale_endpoint_queries_total", help, None, self.queries)]
            .into_iter()
            .chain(errors)
            .collect()
    }
}

/// How often something could not be done in `step`.
pub(super) fn problem_sample(step: Step, count: u64) -> MetricSample {
    let help = "What the recording runtime could not do, by step.";
    counter("telltale_problems_total", help, Some(("step", step.name())), count)
}

fn counter(name: &str, help: &str, label: Option<(&str, &str)>, count: u64) -> MetricSample {
    MetricSample {
        name: name.to_owned(),
        help: help.to_owned(),
        unit: String::new(),
        labels: label
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        value: MetricValue::Counter(count),
    }
}
