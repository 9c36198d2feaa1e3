//! Training steps from what all ranks report, and where their time goes.
//!
//! Operations are gathered until every rank has ended the step, put together, and let go: what stays are the latest
//! steps and a summary of each.

mod analysis;
mod clocks;
mod findings;
mod lasting;
mod progress;
mod waits;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use telltale_steps::{Kind, Kinds, Nature, Partners, Processors, Step, StepBuilder};

use crate::detection::finding::DetectorFinding;
use crate::detection::members::Members;
pub(super) use crate::detection::steps::analysis::Path;
use crate::detection::steps::analysis::StepSummary;
pub use crate::detection::steps::analysis::{
    Analysis, LinkCost, RankCost, StageWork, StepTime, StepsView,
};
use crate::detection::steps::clocks::Clocks;
use crate::detection::steps::lasting::Lasting;
use crate::detection::steps::progress::StepProgress;
pub use crate::detection::steps::waits::RankWait;
use crate::latency::{Collective, Direction, SizeBucket};
use crate::observation::Observation;
use crate::rank::Rank;
use crate::time::Moment;
use crate::work::{FinishedOperation, Work};

/// Operations of the open steps together.
const MAX_OPEN_OPERATIONS: usize = 1 << 22;
/// Steps that are checked together, if they take long.
const STEPS_TOGETHER: usize = 10;
/// The same number, of steps that are new.
const FULL: u64 = STEPS_TOGETHER as u64;
/// Steps that are short are checked together as far back as this, since hosts are not idle for moments only,
const LONG_ENOUGH_NS: i64 = 10_000_000_000;
/// but not more of them,
const MOST_STEPS_TOGETHER: usize = 50;
/// and not of more operations.
const MOST_OPERATIONS_TOGETHER: usize = 1 << 20;
/// Fewer are enough if each rank has done this much in them.
const ENOUGH_OPERATIONS: usize = 200;
/// So many operations are analysed in each evaluation; of more, steps are analysed less often.
const OPERATIONS_PER_WINDOW: usize = 100_000;

/// Reports by which it is judged how much processor time is withheld from a rank.
const REPORTS_TOGETHER: usize = 10;

/// What operations are compared by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum KindKey {
    Compute(Arc<str>),
    Transfer(Direction, SizeBucket),
    Collective(Collective, SizeBucket),
}

/// Gathers the steps of one epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    kinds: Kinds,
    kind_of: HashMap<KindKey, Kind>,
    open: BTreeMap<u64, StepBuilder>,
    open_operations: usize,
    progress: StepProgress,
    clocks: Clocks,
    /// Which part of the time the processor was withheld from each rank, by the latest reports.
    withheld: BTreeMap<Rank, VecDeque<f64>>,
    /// When each rank ended its last operation of the last step that was closed, and which that was.
    ends: BTreeMap<u32, i64>,
    closed: Option<u64>,
    latest: VecDeque<Step>,
    /// When each of these was over.
    closed_at: VecDeque<Moment>,
    /// Steps since the last analysis, and looks.
    fresh: u64,
    evaluations_since: u32,
    summary: StepSummary,
    lasting: Lasting,
    view: Option<Arc<StepsView>>,
}

impl Steps {
    /// A new epoch: steps begin again.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes the operations of one node's report, and what was withheld from its workers.
    pub(super) fn observe(
        &mut self,
        now: Moment,
        node: u32,
        observation: &Observation,
        members: &Members,
    ) {
        self.clocks.observe(now, node, observation);
        // What was withheld before its first operation is not of its steps.
        let own = observation.withheld.iter().filter(|one| {
            members.of_rank(one.rank) == Some(node) && self.progress.has_begun(one.rank)
        });
        for one in own {
            let recent = self.withheld.entry(one.rank).or_default();
            recent.push_back(one.part());
            if recent.len() > REPORTS_TOGETHER {
                recent.pop_front();
            }
        }
        let is_whole = self.progress.begin_report(node, &observation.operations, members);
        for one in &observation.operations.list {
            if members.of_rank(one.rank) != Some(node) {
                continue;
            }
            let first = self.open.first_key_value().map_or(one.step, |(step, _)| *step);
            if !self.progress.take(one, first, is_whole) {
                continue;
            }
            let Some(operation) = self.operation(one) else { continue };
            if self.open_operations >= MAX_OPEN_OPERATIONS {
                self.drop_oldest();
            }
            self.open_operations += 1;
            let step = self.open.entry(one.step).or_insert_with(|| StepBuilder::new(one.step));
            step.add(one.rank.0, operation);
        }
    }

    /// Whether this job reports steps, so that its slow nodes and links are found by them.
    pub(super) fn any(&self) -> bool {
        !self.latest.is_empty()
    }

    /// Puts together the steps that are over, and looks where their time goes if enough is new.
    pub(super) fn evaluate(&mut self, now: Moment, members: &Members) {
        if self.progress.is_empty() {
            return;
        }
        self.evaluations_since = self.evaluations_since.saturating_add(1);
        if !self.progress.evaluate(members) {
            return;
        }
        let over = self.progress.over();
        while self.open.first_key_value().is_some_and(|(step, _)| *step < over) {
            if let Some((_, step)) = self.open.pop_first() {
                self.close(now, step, members);
            }
            // Each step is analysed, however many end in one evaluation.
            if self.fresh >= FULL {
                self.analyse(now, members);
            }
        }
        self.progress.go_on_at(over);
        if self.is_due() {
            self.analyse(now, members);
        }
    }

    /// What is slow by the latest steps, and has been for long enough.
    pub(super) fn findings(&self, now: Moment) -> Vec<DetectorFinding> {
        self.lasting.findings(now)
    }

    /// What the latest transfers took from node to node; none where there were none that can be compared.
    pub(super) fn paths(&self) -> Option<&[Path]> {
        let paths = self.view.as_ref().map(|view| view.latest.paths.as_slice());
        paths.filter(|paths| !paths.is_empty())
    }

    /// Where the time of the latest and of all steps goes. Before any was analysed, that some were left out.
    pub(super) fn view(&self) -> Option<Arc<StepsView>> {
        let left_out = || {
            let nothing = Analysis::default();
            let view = self.summary.view(nothing, (&[], &self.kinds), Vec::new());
            (view.left_out > 0).then(|| Arc::new(view))
        };
        self.view.clone().or_else(left_out)
    }

    fn close(&mut self, now: Moment, mut step: StepBuilder, members: &Members) {
        self.open_operations = self.open_operations.saturating_sub(step.count());
        if self.progress.is_torn(step.number()) {
            (self.ends, self.closed) = (BTreeMap::new(), None);
            self.summary.left_out();
            return;
        }
        if self.closed.is_none_or(|closed| closed.checked_add(1) != Some(step.number())) {
            self.ends.clear();
        }
        let ends = step.ends();
        step.add_gaps(&self.ends, &mut self.kinds);
        (self.ends, self.closed) = (ends, Some(step.number()));
        let host = |rank| members.of_rank(Rank(rank)).unwrap_or(u32::MAX);
        match step.build(host, |node| self.clocks.ahead_ns(node)) {
            Ok(step) => {
                self.summary.timed(&step);
                // Clients may measure computations in some steps only; the others are no steps without work.
                let computes = |kind| self.kinds.nature(kind) == Nature::Compute;
                let is_measured = step.operations().iter().any(|one| computes(one.kind));
                if !is_measured && self.kinds.all().any(computes) {
                    return;
                }
                self.summary.took(&step, &self.kinds);
                self.fresh += 1;
                self.latest.push_back(step);
                self.closed_at.push_back(now);
                self.let_go();
            }
            Err(_) => self.summary.left_out(),
        }
    }

    /// Drops the steps that the later ones are enough without.
    fn let_go(&mut self) {
        let operations = |steps: &VecDeque<Step>| -> usize {
            steps.iter().map(|step| step.operations().len()).sum()
        };
        while self.latest.len() > STEPS_TOGETHER {
            let later_ns: i64 = self.latest.iter().skip(1).map(Step::longest_ns).sum();
            let is_needed = later_ns < LONG_ENOUGH_NS
                && self.latest.len() <= MOST_STEPS_TOGETHER
                && operations(&self.latest) <= MOST_OPERATIONS_TOGETHER;
            if is_needed {
                return;
            }
            self.latest.pop_front();
            self.closed_at.pop_front();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((number, step)) = self.open.pop_first() {
            self.open_operations = self.open_operations.saturating_sub(step.count());
            self.progress.go_on_at(number.saturating_add(1));
            self.summary.left_out();
        }
    }

    fn is_due(&self) -> bool {
        let operations: usize = self.latest.iter().map(|step| step.operations().len()).sum();
        let of_each = operations / self.progress.count().max(1);
        let enough = self.latest.len() >= STEPS_TOGETHER
            || (self.latest.len() >= 2 && of_each >= ENOUGH_OPERATIONS);
        let pause = u32::try_from(operations / OPERATIONS_PER_WINDOW).unwrap_or(u32::MAX);
        enough && self.fresh > 0 && self.evaluations_since > pause
    }

    fn analyse(&mut self, now: Moment, members: &Members) {
        let steps = self.latest.make_contiguous();
        let mut processors = Processors::default();
        for (rank, parts) in &self.withheld {
            processors.add(rank.0, parts.iter().copied().collect());
        }
        let latest = Analysis::of(steps, &self.kinds, &processors, members);
        self.summary.add(&latest, self.fresh);
        (self.fresh, self.evaluations_since) = (0, 0);
        let window_ns: i64 = steps.iter().map(Step::longest_ns).sum();
        let window = Duration::from_nanos(u64::try_from(window_ns).unwrap_or(0));
        let begin = self.closed_at.front().map_or(now, |first| now.before(window).min(*first));
        self.lasting.found(begin, findings::findings(&latest, members));
        let waits = waits::longest(steps, latest.actual_ns, members);
        self.view = Some(Arc::new(self.summary.view(latest, (steps, &self.kinds), waits)));
    }

    /// The operation as steps have it; `None` when there are too many kinds.
    fn operation(&mut self, one: &FinishedOperation) -> Option<telltale_steps::Operation> {
        let (key, partners) = match &one.work {
            Work::StepEnd => return None,
            Work::Compute(name) => (KindKey::Compute(Arc::clone(name)), Partners::None),
            Work::Transfer { direction, peer, group, bucket } => {
                let (rank, group) = (peer.0, group.number());
                let partners = match direction {
                    Direction::Send => Partners::To { rank, group },
                    Direction::Receive => Partners::From { rank, group },
                };
                (KindKey::Transfer(*direction, *bucket), partners)
            }
            Work::Collective { collective, group, members, bucket } => {
                let partners = Partners::All { group: group.number(), members: *members };
                (KindKey::Collective(*collective, *bucket), partners)
            }
        };
        let kind = match self.kind_of.get(&key) {
            Some(kind) => *kind,
            None => {
                let kind = self.kinds.kind(&name(&key), nature(&key))?;
                *self.kind_of.entry(key).or_insert(kind)
            }
        };
        let start_ns = one.start_us.saturating_mul(1000);
        let duration_ns = i64::try_from(one.duration_us).unwrap_or(i64::MAX).saturating_mul(1000);
        let end_ns = start_ns.saturating_add(duration_ns);
        Some(telltale_steps::Operation { kind, start_ns, end_ns, partners })
    }
}

const fn nature(key: &KindKey) -> Nature {
    match key {
        KindKey::Compute(_) => Nature::Compute,
        KindKey::Transfer(..) | KindKey::Collective(..) => Nature::Communication,
    }
}

/// What people read: `forward`, `send 16 MiB`, `all_reduce 1 KiB`.
fn name(key: &KindKey) -> String {
    match key {
        KindKey::Compute(name) => name.to_string(),
        KindKey::Transfer(Direction::Send, bucket) => format!("send {}", size(*bucket)),
        KindKey::Transfer(Direction::Receive, bucket) => format!("recv {}", size(*bucket)),
        KindKey::Collective(collective, bucket) => {
            let name = match collective {
                Collective::AllReduce => "all_reduce",
                Collective::Broadcast => "broadcast",
                Collective::AllGather => "all_gather",
                Collective::Reduce => "reduce",
                Collective::ReduceScatter => "reduce_scatter",
                Collective::Barrier => "barrier",
                Collective::Other => "collective",
            };
            format!("{name} {}", size(*bucket))
        }
    }
}

/// The most that falls into a bucket.
fn size(bucket: SizeBucket) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let exponent = bucket.number();
    format!("{} {}", 1_u32 << (exponent % 10), units[usize::from(exponent / 10)])
}
