//! What endpoints reported besides memory when they answered last: they are not asked each time.

use std::collections::BTreeMap;
use std::sync::Arc;

use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{MetricSample, MetricValue};
use telltale_wire::Report;

use super::claims::described;
use super::reported;
use crate::observation::Described;

/// How long the last answer stands in for one that does not come. From then on only what counts up is
/// kept of it: that cannot have become less, and would in the sum over a row.
const BELIEVED_NS: u64 = 60_000_000_000;

/// One answer.
#[derive(Debug)]
pub(crate) struct EndpointAnswer {
    /// The samples of a snapshot.
    pub(crate) metrics: Arc<[MetricSample]>,
    /// The devices that some of them are about.
    pub(crate) measured: Arc<[Described]>,
    uptime_ns: Option<u64>,
    /// When it came, on the monotonic clock.
    at_ns: u64,
    /// Nothing is left of it but what counts up.
    is_old: bool,
}

/// The last answers of processes that live.
#[derive(Debug, Default)]
pub(crate) struct Answered(BTreeMap<ProcessIdentity, EndpointAnswer>);

// === impl EndpointAnswer ===

impl EndpointAnswer {
    /// Takes what is not memory from a report that came at `at_ns`.
    pub(crate) fn of(report: &mut Report, at_ns: u64) -> Self {
        let measured = report.devices.iter().map(described).collect();
        let (uptime_ns, metrics) = (report.uptime_ns, reported::metrics(report).into());
        Self { metrics, measured, uptime_ns, at_ns, is_old: false }
    }

    /// Drops what may be another value by now: all but counters and histograms.
    fn grow_old(&mut self) {
        let counts_up = |sample: &&MetricSample| match sample.value {
            MetricValue::Counter(_) | MetricValue::Histogram { .. } => true,
            MetricValue::Gauge(_) => false,
        };
        self.metrics = self.metrics.iter().filter(counts_up).cloned().collect();
        (self.uptime_ns, self.is_old) = (None, true);
    }

    /// How long the process has been recording, as reported, by now.
    pub(crate) fn uptime_ns(&self, now_ns: u64) -> Option<u64> {
        self.uptime_ns.map(|reports| reports.saturating_add(now_ns.saturating_sub(self.at_ns)))
    }
}

// === impl Answered ===

impl Answered {
    /// Takes an answer. One that is not `whole` was asked for memory alone and replaces nothing but how
    /// long the process has been recording, where that is known no more.
    pub(crate) fn note(
        &mut self,
        identity: ProcessIdentity,
        whole: bool,
        answer: impl FnOnce() -> EndpointAnswer,
    ) {
        match self.0.get_mut(&identity) {
            Some(known) if !whole => {
                if known.is_old {
                    let EndpointAnswer { uptime_ns, at_ns, .. } = answer();
                    (known.uptime_ns, known.at_ns) = (uptime_ns, at_ns);
                }
            }
            _ => _ = self.0.insert(identity, answer()),
        }
    }

    /// Lets go of processes that do not `live`, and of what may have changed since they answered.
    pub(crate) fn keep(&mut self, live: impl Fn(&ProcessIdentity) -> bool, now_ns: u64) {
        self.0.retain(|identity, answer| {
            let live = live(identity);
            if live && now_ns.saturating_sub(answer.at_ns) >= BELIEVED_NS && !answer.is_old {
                answer.grow_old();
            }
            live
        });
    }

    /// The last answer of a process.
    pub(crate) fn of(&self, identity: &ProcessIdentity) -> Option<&EndpointAnswer> {
        self.0.get(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answered, BELIEVED_NS, EndpointAnswer};
    use telltale_schema::process::ProcessIdentity;
    use telltale_schema::snapshot::{MetricSample, MetricValue};

    fn identity(pid: u32) -> ProcessIdentity {
        ProcessIdentity { boot_id: [0; 16], pid_namespace: 1, pid, start_time_ticks: 7 }
    }

    fn answer(uptime_ns: u64) -> EndpointAnswer {
        let sample = |name: &str, value| MetricSample {
            name: name.to_owned(),
            help: String::new(),
            unit: String::new(),
            labels: Vec::new(),
            value,
        };
        let (bounds, counts, sum) = (Vec::new(), vec![1], 0.5);
        let metrics = vec![
            sample("steps", MetricValue::Counter(5)),
            sample("loss", MetricValue::Gauge(0.5)),
            sample("seconds", MetricValue::Histogram { bounds, counts, sum }),
        ];
        EndpointAnswer {
            metrics: metrics.into(),
            measured: [].into(),
            uptime_ns: Some(uptime_ns),
            at_ns: 10,
            is_old: false,
        }
    }

    fn names(answered: &Answered) -> Vec<&str> {
        let metrics = &answered.of(&identity(1)).unwrap().metrics;
        metrics.iter().map(|sample| sample.name.as_str()).collect()
    }

    #[test]
    fn a_whole_answer_stays_until_the_next_one_and_its_gauges_not_for_ever() {
        let mut answered = Answered::default();
        answered.note(identity(1), true, || answer(5));
        answered.note(identity(1), false, || answer(7));
        assert_eq!(answered.of(&identity(1)).unwrap().uptime_ns(30), Some(25));
        answered.keep(|_| true, 10 + BELIEVED_NS - 1);
        assert_eq!(names(&answered), ["steps", "loss", "seconds"]);
        for _ in 0..2 {
            answered.keep(|_| true, 10 + BELIEVED_NS);
            assert_eq!(names(&answered), ["steps", "seconds"]);
            assert_eq!(answered.of(&identity(1)).unwrap().uptime_ns(30), None);
        }
        answered.note(identity(1), false, || EndpointAnswer { metrics: [].into(), ..answer(7) });
        assert_eq!(names(&answered), ["steps", "seconds"]);
        assert_eq!(answered.of(&identity(1)).unwrap().uptime_ns(30), Some(27));
        answered.note(identity(1), true, || answer(5));
        assert_eq!(names(&answered), ["steps", "loss", "seconds"]);
    }

    #[test]
    fn an_answer_goes_with_its_process() {
        let mut answered = Answered::default();
        answered.note(identity(1), true, || answer(5));
        answered.note(identity(2), false, || answer(5));
        answered.keep(|identity| identity.pid == 2, 11);
        assert!(answered.of(&identity(1)).is_none() && answered.of(&identity(2)).is_some());
    }
}
