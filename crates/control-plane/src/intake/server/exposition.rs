//! What an intake knows as Prometheus' text or OpenMetrics, by the definitions of the schema.

use std::fmt::Display;

use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions as defined;
use telltale_wire::exposition::{Encoder, Format, Head, Labels, Number};

use crate::intake::{IntakeView, OwnCounts};
use telltale_cluster::intake::formats::ReaderCounts;

/// The whole text.
pub(super) fn text(format: Format, view: &IntakeView) -> String {
    let mut text = String::new();
    let mut page = AgentPage(Encoder::new(format, &mut text));
    page.labelled(defined::AGENT_INFO, "version", [(env!("CARGO_PKG_VERSION"), whole(1))]);
    page.one(defined::AGENT_RUNNING, Some(whole(view.scope.is_some().into())));
    let epoch = view.scope.as_ref().map(|scope| whole(scope.epoch.number()));
    page.one(defined::AGENT_EPOCH, epoch);
    page.agent(&view.agent);
    page.records(view);
    page.node(view);
    page.0.finish();
    text
}

struct AgentPage<'t>(Encoder<'t>);

impl AgentPage<'_> {
    fn agent(&mut self, counts: &OwnCounts) {
        let metrics = &counts.metrics;
        let ignored = [
            ("term", metrics.stale_terms),
            ("sequence", metrics.stale_orders),
            ("epoch", metrics.stale_epochs),
        ];
        let ignored = ignored.map(|(reason, count)| (reason, whole(count)));
        self.labelled(defined::AGENT_ORDERS_IGNORED_TOTAL, "reason", ignored);
        for (definition, count) in [
            (defined::AGENT_MESSAGES_LOST_TOTAL, counts.lost_messages),
            (defined::AGENT_WINDOWS_DROPPED_TOTAL, metrics.dropped_windows),
            (defined::AGENT_WORKER_EVENTS_IGNORED_TOTAL, metrics.stale_workers),
            (defined::AGENT_WORKER_STARTS_TOTAL, metrics.starts),
            (defined::AGENT_WORKER_KILLS_TOTAL, metrics.kills),
            (defined::AGENT_OUTPUT_LINES_DROPPED_TOTAL, counts.lines_not_echoed),
            (defined::AGENT_OUTPUT_UNWRITTEN_BYTES_TOTAL, counts.bytes_not_written),
        ] {
            self.one(definition, Some(whole(count)));
        }
    }

    fn records(&mut self, view: &IntakeView) {
        let counts = &view.counts;
        let tracker = &counts.tracker;
        let outcomes = [
            ("taken", tracker.taken),
            ("refused", counts.refused),
            ("queue_full", counts.queue_full),
            ("stale", counts.stale),
            ("unknown_group", tracker.unknown_group),
            ("elsewhere", tracker.elsewhere.saturating_add(counts.foreign_checkpoints)),
            ("implausible", tracker.implausible),
            ("unverified", counts.unverified),
        ];
        let outcomes = outcomes.map(|(outcome, count)| (outcome, whole(count)));
        self.labelled(defined::AGENT_RECORDS_TOTAL, "outcome", outcomes);
        self.one(defined::AGENT_MALFORMED_POSTS_TOTAL, Some(whole(counts.malformed_posts)));
        let both = tracker.edges.plus(&tracker.waits);
        let dropped = [
            ("warm_up", both.warm_up),
            ("excused", both.excused),
            ("overwritten", both.overwritten),
            ("no_place", both.no_place.saturating_add(tracker.progress)),
        ];
        let dropped = dropped.map(|(reason, count)| (reason, whole(count)));
        self.labelled(defined::AGENT_LATENCIES_DROPPED_TOTAL, "reason", dropped);
        self.one(defined::AGENT_GROUPS_REFUSED_TOTAL, Some(whole(tracker.groups_refused)));
        self.readers(view);
        let latencies = view.latencies_ns.iter();
        let latencies = latencies.map(|(peer, mean_ns)| (peer, seconds(*mean_ns)));
        self.labelled(defined::AGENT_PEER_LATENCY_SECONDS, "peer", latencies);
        let latencies = view.unverified_latencies_ns.iter();
        let latencies = latencies.map(|(peer, mean_ns)| (peer, seconds(*mean_ns)));
        self.labelled(defined::AGENT_UNVERIFIED_PEER_LATENCY_SECONDS, "peer", latencies);
    }

    fn readers(&mut self, view: &IntakeView) {
        let mut family = self.0.family(&Head::of(defined::AGENT_READ_RECORDS_TOTAL));
        for (format, counts) in &view.readers {
            let outcomes = [
                ("given", counts.read),
                ("malformed", counts.malformed),
                ("queue_full", counts.dropped),
            ];
            for (outcome, count) in outcomes {
                let labels = Labels::new([("format", format.name()), ("outcome", outcome)]);
                let labels = labels.expect("our labels have good names");
                family.sample(&[&labels], whole(count), None);
            }
        }
        let of = |count: fn(&ReaderCounts) -> u64| {
            view.readers.iter().map(move |(format, counts)| (format.name(), whole(count(counts))))
        };
        let skipped = of(|counts| counts.skipped_bytes);
        self.labelled(defined::AGENT_READ_SKIPPED_BYTES_TOTAL, "format", skipped);
        let left_out = of(|counts| counts.files_left_out);
        self.labelled(defined::AGENT_READ_FILES_LEFT_OUT_TOTAL, "format", left_out);
    }

    fn node(&mut self, view: &IntakeView) {
        let usage = &view.usage;
        let stopped = usage.iter().map(|one| (one.rank, whole(one.is_stopped.into())));
        self.labelled(defined::AGENT_WORKER_STOPPED, "rank", stopped);
        let cpu = usage.iter().map(|one| (one.rank, Number::Float(one.cpu_seconds)));
        self.labelled(defined::AGENT_WORKER_CPU_SECONDS_TOTAL, "rank", cpu);
        let resident = usage.iter().map(|one| (one.rank, whole(one.resident_bytes)));
        self.labelled(defined::AGENT_WORKER_RESIDENT_MEMORY_BYTES, "rank", resident);
        let vitals = &view.vitals;
        let busy = vitals.processors_busy_ratio.map(Number::Float);
        self.one(defined::AGENT_PROCESSORS_BUSY_RATIO, busy);
        self.one(defined::AGENT_MEMORY_USED_BYTES, vitals.memory_used_bytes.map(whole));
        self.one(defined::AGENT_MEMORY_TOTAL_BYTES, vitals.memory_total_bytes.map(whole));
    }

    /// A metric without labels; left out where its value is not known.
    fn one(&mut self, definition: &MetricDefinition, value: Option<Number>) {
        if let Some(value) = value {
            self.0.family(&Head::of(definition)).sample(&[], value, None);
        }
    }

    fn labelled<Value: Display>(
        &mut self,
        definition: &MetricDefinition,
        label: &str,
        samples: impl IntoIterator<Item = (Value, Number)>,
    ) {
        let mut family = self.0.family(&Head::of(definition));
        for (value, number) in samples {
            let value = value.to_string();
            let labels = Labels::new([(label, value.as_str())]);
            let labels = labels.expect("our labels have good names");
            family.sample(&[&labels], number, None);
        }
    }
}

const fn whole(number: u64) -> Number {
    Number::Whole(number)
}

fn seconds(nanoseconds: u64) -> Number {
    Number::Float(std::time::Duration::from_nanos(nanoseconds).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use telltale_schema::metric::AGENT_DEFINITIONS;

    use super::*;
    use crate::intake::{Scope, WorkerUsage};
    use telltale_cluster::epoch::Epoch;
    use telltale_cluster::rank::Rank;
    use telltale_cluster::vitals::Vitals;

    fn full() -> IntakeView {
        let usage = WorkerUsage {
            rank: Rank(3),
            pid: 7,
            is_stopped: true,
            resident_bytes: 4096,
            cpu_seconds: 1.5,
            cpu_ratio: None,
        };
        IntakeView {
            scope: Some(Scope { epoch: Epoch::new(2), world_size: 4, ranks: 3..4 }),
            latencies_ns: BTreeMap::from([(Rank(1), 30_000)]),
            unverified_latencies_ns: BTreeMap::from([(Rank(2), 50_000)]),
            readers: BTreeMap::from([(
                telltale_cluster::intake::formats::Format::Inspector,
                ReaderCounts::default(),
            )]),
            usage: vec![usage],
            vitals: Vitals {
                processors_busy_ratio: Some(0.5),
                memory_used_bytes: Some(1),
                memory_total_bytes: Some(2),
                ..Vitals::default()
            },
            ..IntakeView::default()
        }
    }

    #[test]
    fn every_metric_of_the_definitions_is_reported() {
        let text = text(Format::Text, &full());
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let defined = AGENT_DEFINITIONS.iter().map(|definition| definition.name);
        assert_eq!(types.collect::<BTreeSet<&str>>(), defined.collect());
        for line in [
            "telltale_agent_peer_latency_seconds{peer=\"1\"} 0.00003\n",
            "telltale_agent_unverified_peer_latency_seconds{peer=\"2\"} 0.00005\n",
            "telltale_agent_worker_stopped{rank=\"3\"} 1\n",
            "telltale_agent_records_total{outcome=\"taken\"} 0\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let text = text(Format::OpenMetrics, &IntakeView::default());
        assert!(text.contains("telltale_agent_running 0\n"), "{text}");
        assert!(!text.contains("memory_total") && !text.contains("agent_epoch"), "{text}");
    }
}
