//! Findings that have lasted: a host that stands still for half a second is ten steps of a quick job.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::suspicion::Culprit;
use crate::time::Moment;

/// For so long steps must say the same before it is reported.
const LEAST: Duration = Duration::from_secs(2);

/// What the latest steps say, and since when they have said so of each node and link.
#[derive(Debug, Clone, Default)]
pub(super) struct Lasting {
    findings: Vec<DetectorFinding>,
    since: BTreeMap<(u32, u32), Moment>,
}

impl Lasting {
    /// Takes what steps say that have ended from `begin` on.
    pub(super) fn found(&mut self, begin: Moment, findings: Vec<DetectorFinding>) {
        let before = std::mem::take(&mut self.since);
        for finding in &findings {
            let place = place(finding);
            let since = before.get(&place).map_or(begin, |since| begin.min(*since));
            self.since.insert(place, since);
        }
        self.findings = findings;
    }

    /// What has lasted.
    pub(super) fn findings(&self, now: Moment) -> Vec<DetectorFinding> {
        let has_lasted = |finding: &&DetectorFinding| {
            self.since.get(&place(finding)).is_some_and(|since| now.since(*since) >= LEAST)
        };
        self.findings.iter().filter(has_lasted).cloned().collect()
    }
}

/// The two ends of a link whichever way is slow, or a node twice.
fn place(finding: &DetectorFinding) -> (u32, u32) {
    match finding.culprits.first() {
        Some(Culprit::Node(node) | Culprit::Sender(node) | Culprit::Receiver(node)) => {
            (*node, *node)
        }
        Some(Culprit::BothWays(one, other) | Culprit::OneWay(one, other)) => {
            (*one.min(other), *one.max(other))
        }
        None => (u32::MAX, u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::VerdictKind;

    fn slow_node() -> Vec<DetectorFinding> {
        vec![DetectorFinding::of_node(VerdictKind::SlowNode, 3, 0.9, Vec::new())]
    }

    #[test]
    fn what_steps_say_for_a_moment_is_not_reported() {
        let at = |ms: u64| Moment::from_ns(ms * 1_000_000);
        let mut lasting = Lasting::default();
        let mut evaluate = |begin_ms, now_ms, findings| {
            lasting.found(at(begin_ms), findings);
            lasting.findings(at(now_ms)).len()
        };
        assert_eq!(evaluate(700, 1000, slow_node()), 0);
        assert_eq!(evaluate(1000, 2000, Vec::new()), 0);
        assert_eq!(evaluate(2500, 3000, slow_node()), 0);
        assert_eq!(evaluate(3000, 4000, slow_node()), 0);
        assert_eq!(evaluate(4000, 5000, slow_node()), 1);
        // Of long steps the first evaluation is enough.
        assert_eq!(evaluate(2000, 5000, slow_node()), 1);
        // No step ends, and what was found still holds.
        assert_eq!(lasting.findings(at(60_000)).len(), 1);
    }
}
