//! What is known of the cluster so far, and what happened. It receives everything with the moment
//! it was seen; it checks nothing itself.

use std::time::{Duration, SystemTime};

use telltale_wire::cluster::message::NodeState;

use super::event::{DemoEvent, DemoEventKind};
use super::view::ClusterView;
use super::worker_line::WorkerLine;

/// How long after the last failure it has received all.
const SETTLING: Duration = Duration::from_millis(300);

/// See the module.
#[derive(Debug)]
pub(super) struct Timeline {
    /// How many steps there are to do.
    pub(super) steps: u64,
    /// When it began, on the clock of the coordinator's moments.
    began: SystemTime,
    pub(super) nodes: Vec<NodeProgress>,
    pub(super) view: ClusterView,
    pub(super) events: Vec<DemoEvent>,
    killed: Option<Killed>,
    /// The last decision that was shown.
    decided: Option<u64>,
    /// The last epoch reported as running, and that it has done a step.
    ran: u64,
    stepped: u64,
    failed: usize,
    trained: bool,
    /// Nothing more happens.
    pub(super) has_ended: bool,
}

/// What is known of a node.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeProgress {
    pub(super) name: String,
    /// Its worker's.
    pub(super) rank: Option<u32>,
    pub(super) epoch: u64,
    pub(super) step: u64,
    steps_before: u64,
    pub(super) loss: Option<f64>,
    /// The weights at the end.
    pub(super) digest: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Killed {
    node: usize,
    at: Duration,
}

// === impl Timeline ===

impl Timeline {
    pub(super) fn begin(names: Vec<String>, slots: usize, steps: u64, began: SystemTime) -> Self {
        let spares = names.len().saturating_sub(slots);
        let nodes = names.into_iter();
        let nodes = nodes.map(|name| NodeProgress { name, ..NodeProgress::default() }).collect();
        let mut timeline = Self {
            steps,
            began,
            nodes,
            view: ClusterView::default(),
            events: Vec::new(),
            killed: None,
            decided: None,
            ran: 0,
            stepped: 0,
            failed: 0,
            trained: false,
            has_ended: false,
        };
        timeline.happened(Duration::ZERO, DemoEventKind::Started { nodes: slots, spares });
        timeline
    }

    /// A line of a node's worker.
    pub(super) fn hear(&mut self, at: Duration, node: usize, line: WorkerLine) {
        let Some(found) = self.nodes.get_mut(node) else { return };
        match line {
            WorkerLine::Begun { rank, epoch, steps_before } => {
                found.rank = Some(rank);
                found.epoch = epoch;
                (found.step, found.steps_before) = (steps_before, steps_before);
            }
            WorkerLine::Step { step, loss } => {
                (found.step, found.loss) = (step, loss);
                let (epoch, resumed_after) = (found.epoch, found.steps_before);
                if epoch > self.stepped {
                    self.stepped = epoch;
                    self.happened(at, DemoEventKind::Stepped { epoch, step, resumed_after });
                }
            }
            WorkerLine::Ended { digest, .. } => {
                found.digest = Some(digest);
                self.check_end(at);
            }
        }
    }

    /// What the coordinator says.
    pub(super) fn observe(&mut self, at: Duration, view: ClusterView) {
        let before = self.events.len();
        let decided = self.decided;
        for decision in &view.decisions {
            if self.decided.is_none_or(|last| decision.number > last) {
                self.decided = Some(decision.number);
                let (why, evicted) = (decision.why.clone(), decision.evicted.clone());
                let what = DemoEventKind::Decided { epoch: decision.epoch, why, evicted };
                self.happened(self.since(decision.stored), what);
            }
        }
        self.add_failures(at, &view, decided != self.decided);
        for node in view.nodes.iter().filter(|node| node.state == NodeState::Silent) {
            let was = self.view.nodes.iter().find(|before| before.name == node.name);
            if was.is_none_or(|before| before.state != NodeState::Silent) {
                self.happened(at, DemoEventKind::Silent { node: node.name.clone() });
            }
        }
        if view.runs && view.epoch > self.ran {
            self.ran = view.epoch;
            let spares = view.nodes.iter().filter(|node| node.state == NodeState::Standby);
            let spares = spares.map(|node| node.name.clone()).collect();
            let nodes = view.holders.clone();
            self.happened(at, DemoEventKind::Runs { epoch: view.epoch, nodes, spares });
        }
        // What is seen in one check has moments of its own.
        self.events[before..].sort_by_key(|event| event.at);
        self.view = view;
        self.check_end(at);
    }

    /// Tells of workers that have failed, all at once: when no more come, or something is decided.
    fn add_failures(&mut self, at: Duration, view: &ClusterView, is_decided: bool) {
        let new = view.failures.get(self.failed..).unwrap_or_default();
        let Some(last) = new.iter().map(|failure| failure.at).max() else { return };
        let last = self.since(last);
        if is_decided || at.saturating_sub(last) > SETTLING {
            let mut ranks: Vec<u32> = new.iter().map(|failure| failure.rank).collect();
            ranks.sort_unstable();
            self.failed = view.failures.len();
            self.happened(last, DemoEventKind::Failed { ranks });
        }
    }

    fn check_end(&mut self, at: Duration) {
        if let Some(digest) = self.digest().filter(|_| !self.trained) {
            self.trained = true;
            self.happened(at, DemoEventKind::Trained { steps: self.steps, digest });
        }
    }

    /// The node with this rank was killed, with so many processes.
    pub(super) fn kill(&mut self, at: Duration, node: usize, processes: usize) {
        self.killed = Some(Killed { node, at });
        let found = &self.nodes[node];
        let (rank, step) = (found.rank.unwrap_or_default(), found.step);
        self.happened(
            at,
            DemoEventKind::Killed { node: found.name.clone(), rank, step, processes },
        );
    }

    /// The undisturbed training has come to its end.
    pub(super) fn undisturbed(&mut self, at: Duration, digest: String) {
        self.happened(at, DemoEventKind::Undisturbed { steps: self.steps, digest });
    }

    /// How long after the kill the dead node was given up, all workers ran again, and the first step
    /// was done.
    pub(super) fn recovery(&self) -> Option<[Duration; 3]> {
        let after = |is: &dyn Fn(&DemoEventKind) -> bool| {
            let mut later = self.events.iter().filter(|event| event.after_kill.is_some());
            later.find(|event| is(&event.what))?.after_kill
        };
        let given_up = after(
            &|what| matches!(what, DemoEventKind::Decided { evicted, .. } if !evicted.is_empty()),
        );
        let ran = after(&|what| matches!(what, DemoEventKind::Runs { .. }));
        let stepped = after(&|what| matches!(what, DemoEventKind::Stepped { .. }));
        Some([given_up?, ran?, stepped?])
    }

    /// Whether the demo killed a node and the coordinator evicted it.
    pub(super) fn has_evicted(&self) -> bool {
        let is_eviction = |event: &DemoEvent| {
            event.after_kill.is_some()
                && matches!(&event.what, DemoEventKind::Decided { evicted, .. } if !evicted.is_empty())
        };
        self.events.iter().any(is_eviction)
    }

    /// Whether the demo killed this node.
    pub(super) fn is_killed(&self, node: usize) -> bool {
        self.killed.is_some_and(|killed| killed.node == node)
    }

    /// Whether it is time to kill `node`: half of all steps are done, and there is a spare.
    pub(super) fn is_half_way(&self, node: usize) -> bool {
        let has_spare = self.view.nodes.iter().any(|node| node.state == NodeState::Standby);
        self.killed.is_none() && has_spare && self.nodes[node].step >= self.steps / 2
    }

    /// The weights at the end, once every node that holds a slot has reported the same.
    pub(super) fn digest(&self) -> Option<String> {
        let holder = |name: &String| self.nodes.iter().find(|node| node.name == *name);
        let mut digests = self.view.holders.iter().map(|name| holder(name)?.digest.as_ref());
        let first = digests.next()??;
        digests.all(|digest| digest == Some(first)).then(|| first.clone())
    }

    /// Whether every node that holds a slot has reported its weights.
    pub(super) fn is_over(&self) -> bool {
        let has_ended = |name: &String| {
            self.nodes.iter().any(|node| node.name == *name && node.digest.is_some())
        };
        !self.view.holders.is_empty() && self.view.holders.iter().all(has_ended)
    }

    fn happened(&mut self, at: Duration, what: DemoEventKind) {
        let killed = self.killed.map(|killed| killed.at);
        let after_kill = killed.and_then(|killed| at.checked_sub(killed));
        self.events.push(DemoEvent { at, after_kill, what });
    }

    fn since(&self, moment: SystemTime) -> Duration {
        moment.duration_since(self.began).unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use telltale_wire::cluster::message::NodeState;

    use super::super::view::{ClusterView, DecisionView, FailureView, NodeView};
    use super::super::worker_line::WorkerLine;
    use super::Timeline;

    fn second(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// A view in which these nodes hold the slots, and the others are as it is said.
    fn view(
        epoch: u64,
        runs: bool,
        holders: [&str; 2],
        others: &[(&str, NodeState)],
    ) -> ClusterView {
        let holding = holders.map(|name| (name, NodeState::Active));
        let nodes = holding.iter().chain(others).map(|(name, state)| NodeView {
            name: (*name).to_owned(),
            state: *state,
            heard_ago: Some(Duration::from_millis(400)),
        });
        ClusterView {
            epoch,
            runs,
            nodes: nodes.collect(),
            holders: holders.map(str::to_owned).to_vec(),
            ..ClusterView::default()
        }
    }

    fn begun(rank: u32, epoch: u64, steps_before: u64) -> WorkerLine {
        WorkerLine::Begun { rank, epoch, steps_before }
    }

    fn step(step: u64) -> WorkerLine {
        WorkerLine::Step { step, loss: Some(4.25) }
    }

    fn ended(digest: &str) -> WorkerLine {
        WorkerLine::Ended { steps: 8, digest: digest.to_owned() }
    }

    /// Two nodes and a spare, up to the moment when it is time to kill the second one.
    fn half_way() -> Timeline {
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let mut timeline = Timeline::begin(names, 2, 8, UNIX_EPOCH);
        timeline.observe(second(1), view(1, true, ["a", "b"], &[]));
        for node in [0, 1] {
            timeline.hear(second(2), node, begun(node as u32, 1, 0));
            timeline.hear(second(3), node, step(4));
        }
        assert!(!timeline.is_half_way(1), "there is no spare yet");
        timeline.observe(second(3), view(1, true, ["a", "b"], &[("c", NodeState::Standby)]));
        assert!(timeline.is_half_way(1));
        timeline
    }

    /// The same, when the spare does its first step in the place of the second one.
    pub(in super::super) fn swapped() -> Timeline {
        let mut timeline = half_way();
        timeline.kill(second(4), 1, 3);
        assert!(!timeline.is_half_way(1), "once is enough");
        let mut after = view(2, false, ["a", "b"], &[("c", NodeState::Standby)]);
        after.decisions.push(DecisionView {
            number: 7,
            epoch: 2,
            why: "nodes that did not answer are replaced".to_owned(),
            evicted: vec!["b".to_owned()],
            stored: UNIX_EPOCH + Duration::from_millis(9500),
        });
        after.failures.push(FailureView {
            incident: "1-1".to_owned(),
            rank: 0,
            at: UNIX_EPOCH + Duration::from_millis(4020),
        });
        timeline.observe(second(10), after.clone());
        let mut swapped = view(2, true, ["a", "c"], &[("b", NodeState::Silent)]);
        (swapped.decisions, swapped.failures) = (after.decisions, after.failures);
        timeline.observe(second(11), swapped);
        timeline.hear(second(12), 2, begun(1, 2, 4));
        timeline.hear(second(13), 2, step(5));
        timeline
    }

    #[test]
    fn each_thing_is_reported_once_with_its_moment_and_how_long_after_the_kill_it_was() {
        let mut timeline = swapped();
        timeline.observe(second(14), timeline.view.clone());
        for (node, digest) in [(0, "00ff"), (2, "00ff")] {
            assert!(!timeline.is_over());
            timeline.hear(second(15), node, ended(digest));
        }
        assert!(timeline.is_over());
        let lines: Vec<String> = timeline.events.iter().map(super::DemoEvent::line).collect();
        let expected = [
            "  0.00 s           a coordinator and 3 agents started, 1 of them a spare",
            "  1.00 s           epoch 1 runs on a, b; the spare is yet to come",
            "  3.00 s           step 4 is done, the first of epoch 1",
            "  4.00 s  +0.00 s  KILLED b (rank 1) after step 4, all 3 processes",
            "  4.02 s  +0.02 s  rank 0 fails, since a peer is gone",
            "  9.50 s  +5.50 s  epoch 2: b out; nodes that did not answer are replaced",
            " 11.00 s  +7.00 s  b is not heard any more",
            " 11.00 s  +7.00 s  epoch 2 runs on a, c; no spare is left",
            " 13.00 s  +9.00 s  step 5 is done in epoch 2, resumed after step 4",
            " 15.00 s +11.00 s  every rank has done 8 steps; weights 00ff",
        ];
        assert_eq!(lines, expected);
        let recovery = [Duration::from_millis(5500), second(7), second(9)];
        assert_eq!(timeline.recovery(), Some(recovery));
        let killed = timeline.events[3].json();
        assert_eq!(
            (&killed["event"], &killed["seconds_after_kill"]),
            (&"killed".into(), &0.0.into())
        );
    }

    #[test]
    fn ranks_that_do_not_agree_have_no_weights_in_common() {
        let mut timeline = swapped();
        for (node, digest) in [(0, "00ff"), (2, "00fe")] {
            timeline.hear(second(15), node, ended(digest));
        }
        assert!(timeline.is_over());
        assert_eq!(timeline.digest(), None);
    }
}
