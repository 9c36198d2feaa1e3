//! The coordinator's own metrics as text, by the definitions of the schema.

use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions as defined;
use telltale_wire::exposition::{Buckets, Encoder, Format, Head, Labels, Number};

use super::counters::{Counters, RefusalReason, WAIT_BOUNDS_MS};
use super::gauges::{Gauges, JobGauges};

/// The whole text.
pub(super) fn text(format: Format, counters: &Counters, gauges: &Gauges) -> String {
    let mut text = String::new();
    let mut page = MetricsPage(Encoder::new(format, &mut text));
    let version = [("version", env!("CARGO_PKG_VERSION"), 1)];
    page.labelled(defined::COORDINATOR_INFO, version);
    page.one(defined::COORDINATOR_LEADING, u64::from(gauges.leads));
    if let Some(job) = &gauges.job {
        page.job(job);
    }
    page.metrics(gauges);
    page.traffic(counters, gauges);
    page.0.finish();
    text
}

struct MetricsPage<'t>(Encoder<'t>);

impl MetricsPage<'_> {
    fn job(&mut self, job: &JobGauges) {
        self.one(defined::COORDINATOR_TERM, job.term);
        self.one(defined::COORDINATOR_EPOCH, job.epoch);
        self.one(defined::COORDINATOR_RUNNING, u64::from(job.runs));
        let mode = job.mode.to_string();
        self.labelled(defined::COORDINATOR_MODE_INFO, [("mode", mode.as_str(), 1)]);
        self.one(defined::COORDINATOR_RESTARTS, job.restarts.into());
        self.one(defined::COORDINATOR_INCIDENT_OPEN, u64::from(job.incident_open));
        let nodes = [
            ("active", job.active),
            ("standby", job.standby),
            ("silent", job.silent),
            ("barred", job.barred),
            ("ended", job.ended),
        ];
        let nodes = nodes.map(|(state, count)| ("state", state, whole(count)));
        self.labelled(defined::COORDINATOR_NODES, nodes);
    }

    fn metrics(&mut self, gauges: &Gauges) {
        let metrics = &gauges.metrics;
        self.one(defined::COORDINATOR_INCIDENTS_TOTAL, metrics.incidents);
        self.one(defined::COORDINATOR_INCIDENTS_UNKEPT_TOTAL, gauges.dropped_incidents);
        self.one(defined::COORDINATOR_EVICTIONS_TOTAL, metrics.evictions);
        let decisions = [("stored", metrics.decisions), ("failed", metrics.failed_decisions)];
        let decisions = decisions.map(|(outcome, count)| ("outcome", outcome, count));
        self.labelled(defined::COORDINATOR_DECISIONS_TOTAL, decisions);
        let stale = [
            ("incarnation", metrics.stale_incarnations),
            ("sequence", metrics.stale_sequences),
            ("epoch", metrics.stale_epochs),
            ("ranks", metrics.foreign_ranks),
            ("unknown_node", metrics.unknown_nodes),
            ("crowded", metrics.refused_nodes),
            ("not_leading", metrics.not_leading),
        ];
        let stale = stale.map(|(reason, count)| ("reason", reason, count));
        self.labelled(defined::COORDINATOR_STALE_MESSAGES_TOTAL, stale);
    }

    fn traffic(&mut self, counters: &Counters, gauges: &Gauges) {
        self.one(defined::COORDINATOR_CONNECTIONS_TOTAL, counters.connections.get());
        self.one(defined::COORDINATOR_STREAMS, whole(gauges.streams));
        self.one(defined::COORDINATOR_CALLS_TOTAL, counters.calls.get());
        self.one(defined::COORDINATOR_MESSAGES_TOTAL, counters.messages.get());
        let refused = RefusalReason::ALL;
        let refused = refused.map(|(one, name)| ("reason", name, counters.refused(one).get()));
        self.labelled(defined::COORDINATOR_REFUSED_TOTAL, refused);
        let orders = [
            ("sent", counters.orders.get()),
            ("lost", counters.lost_orders.get()),
            ("repeated", gauges.metrics.repeated_orders),
        ];
        let orders = orders.map(|(outcome, count)| ("outcome", outcome, count));
        self.labelled(defined::COORDINATOR_ORDERS_TOTAL, orders);
        self.waits(counters);
        let counts = &gauges.detection;
        let dropped = [
            ("reports", counters.unobserved.get()),
            ("looks", counters.late_evaluations.get()),
            ("strangers", counts.strangers),
            ("windows", counts.too_many_windows),
            ("foreign", counts.edges.foreign),
            ("within_node", counts.edges.within_node),
            ("edges", counts.edges.no_place),
            ("waits", counts.waits),
            ("progress", counts.progress),
        ];
        let dropped = dropped.map(|(what, count)| ("what", what, count));
        self.labelled(defined::COORDINATOR_DETECTION_DROPPED_TOTAL, dropped);
    }

    fn waits(&mut self, counters: &Counters) {
        let bounds = WAIT_BOUNDS_MS.map(|bound_ms| bound_ms as f64 / 1000.0);
        let (counts, sum) = counters.waits.get();
        let buckets = Buckets { bounds: &bounds, counts: &counts, sum: sum.as_secs_f64() };
        let mut family = self.0.family(&Head::of(defined::COORDINATOR_REPORT_WAIT_SECONDS));
        family.histogram(&[], buckets, None);
    }

    fn one(&mut self, definition: &MetricDefinition, value: u64) {
        self.0.family(&Head::of(definition)).sample(&[], Number::Whole(value), None);
    }

    fn labelled<const COUNT: usize>(
        &mut self,
        definition: &MetricDefinition,
        samples: [(&str, &str, u64); COUNT],
    ) {
        let mut family = self.0.family(&Head::of(definition));
        for (label, value, number) in samples {
            let labels = Labels::new([(label, value)]).expect("our labels have good names");
            family.sample(&[&labels], Number::Whole(number), None);
        }
    }
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use telltale_schema::metric::COORDINATOR_DEFINITIONS;

    use super::*;

    #[test]
    fn every_metric_of_the_definitions_is_reported() {
        let job = JobGauges {
            term: 1,
            epoch: 2,
            runs: true,
            mode: telltale_cluster::policy::Mode::Act,
            restarts: 3,
            incident_open: false,
            active: 4,
            standby: 1,
            silent: 0,
            barred: 0,
            ended: 0,
        };
        let gauges = Gauges { job: Some(job), ..Gauges::default() };
        let text = text(Format::Text, &Counters::default(), &gauges);
        let reported: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        let defined = COORDINATOR_DEFINITIONS.iter().map(|definition| definition.name);
        assert_eq!(reported, defined.collect());
        assert!(text.contains("telltale_coordinator_nodes{state=\"active\"} 4\n"), "{text}");
    }
}
