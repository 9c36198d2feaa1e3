//! What endpoints told besides memory when they answered last: they are not asked each time.

use std::collections::BTreeMap;
use std::sync::Arc;

use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::MetricSample;
use telltale_wire::Report;

use super::claims::described;
use super::told;
use crate::observation::Described;

/// How long the last answer stands in for one that does not come.
const BELIEVED_NS: u64 = 60_000_000_000;

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The samples of a snapshot.
    pub(crate) metrics: Arc<[MetricSample]>,
    /// The devices that some of them are about.
    pub(crate) measured: Arc<[Described]>,
    uptime_ns: Option<u64>,
    /// When it came, on the monotonic clock.
    at_ns: u64,
}

/// The last answers of processes that live.
#[derive(Debug, Default)]
pub(crate) struct Answered(BTreeMap<ProcessIdentity, Answer>);

// === impl Answer ===

impl Answer {
    /// Takes what is not memory from a report that came at `at_ns`.
    pub(crate) fn of(report: &mut Report, at_ns: u64) -> Self {
        let measured = report.devices.iter().map(described).collect();
        Self { uptime_ns: report.uptime_ns, metrics: told::metrics(report).into(), measured, at_ns }
    }

    /// How long the process has been recording, as it told, by now.
    pub(crate) fn uptime_ns(&self, now_ns: u64) -> Option<u64> {
        self.uptime_ns.map(|told| told.saturating_add(now_ns.saturating_sub(self.at_ns)))
    }
}

// === impl Answered ===

impl Answered {
    /// Takes an answer. One that is not `whole` was asked for memory alone and replaces nothing.
    pub(crate) fn note(
        &mut self,
        identity: ProcessIdentity,
        whole: bool,
        answer: impl FnOnce() -> Answer,
    ) {
        if whole || !self.0.contains_key(&identity) {
            self.0.insert(identity, answer());
        }
    }

    /// Lets go of processes that `known` does not want, and of answers that are too old.
    pub(crate) fn keep(&mut self, known: impl Fn(&ProcessIdentity) -> bool, now_ns: u64) {
        self.0.retain(|identity, answer| {
            known(identity) && now_ns.saturating_sub(answer.at_ns) < BELIEVED_NS
        });
    }

    /// The last answer of a process.
    pub(crate) fn of(&self, identity: &ProcessIdentity) -> Option<&Answer> {
        self.0.get(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Answered, BELIEVED_NS};
    use telltale_schema::process::ProcessIdentity;

    fn identity(pid: u32) -> ProcessIdentity {
        ProcessIdentity { boot_id: [0; 16], pid_namespace: 1, pid, start_time_ticks: 7 }
    }

    fn answer(uptime_ns: u64) -> Answer {
        Answer { metrics: [].into(), measured: [].into(), uptime_ns: Some(uptime_ns), at_ns: 10 }
    }

    #[test]
    fn a_whole_answer_stays_until_the_next_one_and_not_for_ever() {
        let mut answered = Answered::default();
        answered.note(identity(1), true, || answer(5));
        answered.note(identity(1), false, || answer(7));
        assert_eq!(answered.of(&identity(1)).unwrap().uptime_ns(30), Some(25));
        answered.keep(|_| true, 10 + BELIEVED_NS - 1);
        assert!(answered.of(&identity(1)).is_some());
        answered.keep(|_| true, 10 + BELIEVED_NS);
        assert!(answered.of(&identity(1)).is_none());
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
