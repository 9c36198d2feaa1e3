//! What the endpoint says about itself.

use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::{
    ENDPOINT_ERRORS_TOTAL, ENDPOINT_QUERIES_TOTAL, PROBLEMS_TOTAL,
};
use telltale_schema::snapshot::{MetricSample, MetricValue};

use crate::problem::ProblemStep;

/// How connections and queries went so far.
#[derive(Debug, Default)]
pub(super) struct EndpointCounts {
    pub(super) queries: u64,
    pub(super) refused_users: u64,
    pub(super) deadlines_missed: u64,
    pub(super) broken_connections: u64,
    pub(super) refused_queries: u64,
    pub(super) failed_accepts: u64,
}

impl EndpointCounts {
    /// The endpoint's own metrics.
    pub(super) fn samples(&self) -> Vec<MetricSample> {
        let errors = [
            ("user", self.refused_users),
            ("deadline", self.deadlines_missed),
            ("connection", self.broken_connections),
            ("query", self.refused_queries),
            ("accept", self.failed_accepts),
        ];
        let errors = errors
            .into_iter()
            .map(|(reason, count)| counter(ENDPOINT_ERRORS_TOTAL, Some(("reason", reason)), count));
        [counter(ENDPOINT_QUERIES_TOTAL, None, self.queries)].into_iter().chain(errors).collect()
    }
}

/// How often something could not be done in `step`.
pub(super) fn problem_sample(step: ProblemStep, count: u64) -> MetricSample {
    counter(PROBLEMS_TOTAL, Some(("step", step.name())), count)
}

/// A sample without the label that says which process it is of: the reader knows that.
fn counter(definition: &MetricDefinition, label: Option<(&str, &str)>, count: u64) -> MetricSample {
    MetricSample {
        name: definition.name.to_owned(),
        help: definition.help.to_owned(),
        unit: String::new(),
        labels: label
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        value: MetricValue::Counter(count),
    }
}
