//! A healthy machine for a long time, watched by what ships: no node may lose its slot.
//!
//! The coordinator and the agents are the shipped machines, and detection stands beside the
//! coordinator as in the server, in a thread of its own. Around them are made up: the job ([`job`]),
//! the network with reports that come late and connections that break, the clocks, and the store.
//! Left out are the wire format, and what lies between a rank's transfers and its per-second values.

mod job;
mod nodes;
pub(super) mod transfers;
mod watch;

use std::time::Duration;

use telltale_cluster::coordinator::{Coordinator, CoordinatorCounts, Input, Output};
use telltale_cluster::detection::{DetectionCounts, DetectionSettings, Rule};
use telltale_cluster::epoch::{Revision, Term};
use telltale_cluster::incident::Standing;
use telltale_cluster::lookout::{Followed, Work, observed};
use telltale_cluster::message::FromNode;
use telltale_cluster::node::{NodeName, NodeState};
use telltale_cluster::observation::Observation;
use telltale_cluster::policy::{Job as JobPlan, Mode, Policy};
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::stored::{Phase, StoreOutcome};
use telltale_cluster::time::Moment;

use crate::faults::machine::{Noise, SimulatedFault};
use crate::faults::week::job::WeekJob;
use crate::faults::week::nodes::Nodes;
pub use crate::faults::week::nodes::Reports;
use crate::faults::week::watch::CoordinatorWatch;
pub use crate::faults::week::watch::{Alarms, LASTING_EVALUATIONS, Lasting};

/// How fine time is: a coordinator's tick, as in the server.
const STEP: Duration = Duration::from_millis(100);
/// Steps from one evaluation of detection to the next, as in the server.
const STEPS_PER_EVALUATION: u64 = 10;

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Nodes with a slot.
    pub nodes: u32,
    /// Nodes without one.
    pub spares: u32,
    /// For how long.
    pub time: Duration,
    /// When nodes report.
    pub reports: Reports,
    /// The noise of transfers.
    pub noise: Noise,
    /// How slow nodes are found.
    pub rule: Rule,
    /// How much the coordinator does by itself.
    pub mode: Mode,
    /// In how many windows in a row a node must be suspected before it is replaced.
    pub continuity_windows: u32,
    /// All chance follows from it.
    pub seed: u64,
    /// What is slow, and nothing else is.
    pub slow: Vec<Slow>,
    /// Verdicts are kept that were reported for so many windows in a row.
    pub kept_evaluations: u32,
}

/// A node or link that is slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slow {
    /// Which.
    pub fault: SimulatedFault,
    /// By which factor.
    pub ratio: f64,
    /// From when on.
    pub from: Duration,
    /// For how long it is slow and then not, in turns; always slow without.
    pub turns: Option<[Duration; 2]>,
}

impl Slow {
    /// Whether it is slow at this moment.
    pub(super) fn is_now(&self, now: Duration) -> bool {
        let Some(since) = now.checked_sub(self.from) else { return false };
        self.turns.is_none_or(|[slow, not]| {
            let turn = (slow + not).as_nanos().max(1);
            since.as_nanos() % turn < slow.as_nanos()
        })
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct WeekOutcome {
    /// What detection has said.
    pub alarms: Alarms,
    /// Verdicts that were reported for as many windows in a row as the plan asks for, or more.
    pub lasting: Vec<Lasting>,
    /// What detection has not taken.
    pub not_taken: DetectionCounts,
    /// Reports that the coordinator has passed on to detection.
    pub observed: u64,
    /// What the coordinator has counted.
    pub metrics: CoordinatorCounts,
    /// Messages that the coordinator has refused.
    pub refused: u64,
    /// Incidents that it has answered with another epoch, or given up the job for.
    pub answered: u64,
    /// The last epoch, and whether all run it.
    pub epoch: u64,
    /// Whether every node with a slot runs that epoch.
    pub runs: bool,
    /// Nodes that are kept out of the job.
    pub barred: Vec<NodeName>,
}

/// What the ranks of a job do, and what their nodes report of it.
pub(super) trait Workload {
    /// The ranks are started, all at once.
    fn restart(&mut self);

    /// From now on these faults, in numbers of ranks, slow it by these factors, and no others.
    fn break_down(&mut self, faults: &[(SimulatedFault, f64)]);

    /// Goes on to this step of [`STEP`].
    fn go_on(&mut self, step: u64);

    /// What a node reports of its rank, of the time since its last report.
    fn report(&mut self, rank: u32) -> Observation;
}

/// Runs a plan with the job of ring and meshes.
///
/// # Panics
/// When the coordinator gives up its leadership, which it has no reason to.
#[must_use]
pub fn check_plan(plan: &Plan) -> WeekOutcome {
    check_job(plan, WeekJob::new(plan.nodes, plan.noise, plan.seed))
}

/// Runs a plan with this job.
pub(super) fn check_job(plan: &Plan, job: impl Workload) -> WeekOutcome {
    let settings = DetectionSettings { rule: plan.rule, ..DetectionSettings::default() };
    let continuity_windows = plan.continuity_windows;
    let policy = Policy { mode: plan.mode, continuity_windows, ..Policy::default() };
    let watch = CoordinatorWatch::start(settings, continuity_windows, plan.kept_evaluations);
    let mut week = Week::new(plan, job, policy, watch);
    for _ in 0..plan.time.as_millis() / STEP.as_millis() {
        week.step();
    }
    week.outcome()
}

/// What happens in a later step.
#[derive(Debug)]
enum WeekEvent {
    /// A node's message arrives.
    Heard(Box<FromNode>),
    /// Something happens to a node.
    ToNode(usize, nodes::Happening),
    /// The store has taken a decision.
    Stored(Input),
}

/// Steps that lie ahead and have events.
const AHEAD: usize = 256;

/// Events by the step in which they happen, and in the order in which they were reported.
#[derive(Debug)]
struct Agenda {
    step: u64,
    events: Vec<Vec<WeekEvent>>,
}

impl Agenda {
    fn place(&self, later: u64) -> usize {
        let steps = u64::try_from(AHEAD).expect("a usize fits in a u64");
        assert!(later < steps, "nothing is told so long before");
        usize::try_from((self.step + later) % steps).expect("it is less than AHEAD")
    }

    /// How long it has been since the beginning.
    fn time(&self) -> Duration {
        STEP * u32::try_from(self.step).expect("2^32 steps are thirteen years")
    }

    /// Notes what happens so many steps later, at least one.
    fn add(&mut self, later: u64, event: WeekEvent) {
        let place = self.place(later.max(1));
        self.events[place].push(event);
    }
}

#[derive(Debug)]
struct Week<'a, Ranks> {
    plan: &'a Plan,
    agenda: Agenda,
    nodes: Nodes,
    job: Ranks,
    coordinator: Coordinator,
    followed: Followed,
    watch: CoordinatorWatch,
    revision: u64,
    outputs: Vec<Output>,
    observed: u64,
    refused: u64,
    answered: u64,
}

impl<'a, Ranks: Workload> Week<'a, Ranks> {
    fn new(plan: &'a Plan, job: Ranks, policy: Policy, watch: CoordinatorWatch) -> Self {
        let workers = WorkersPerNode::new(1).expect("one is allowed");
        let planned = JobPlan { name: "week".to_owned(), slots: plan.nodes, workers };
        let coordinator =
            Coordinator::new(planned, policy).expect("the default policy can be kept");
        let agenda = Agenda { step: 0, events: (0..AHEAD).map(|_| Vec::new()).collect() };
        let mut week = Self {
            plan,
            agenda,
            nodes: Nodes::new(plan.nodes + plan.spares, plan.reports, plan.seed),
            job,
            coordinator,
            followed: Followed::default(),
            watch,
            revision: 0,
            outputs: Vec::new(),
            observed: 0,
            refused: 0,
            answered: 0,
        };
        week.nodes.begin(&mut week.agenda);
        week.apply(Input::LeadershipGained { term: Term::new(1), stored: None });
        week
    }

    fn now(&self) -> Moment {
        Moment::from_ns(self.agenda.step.saturating_mul(NANOSECONDS_OF_STEP))
    }

    /// One step of time: what happens in it, then the coordinator's tick, and each second an evaluation.
    fn step(&mut self) {
        self.agenda.step += 1;
        let place = self.agenda.place(0);
        let mut events = std::mem::take(&mut self.agenda.events[place]);
        for event in events.drain(..) {
            match event {
                WeekEvent::Heard(message) => self.hear(*message),
                WeekEvent::Stored(input) => self.apply(input),
                WeekEvent::ToNode(node, happening) => {
                    self.nodes.happens(node, happening, &mut self.job, &mut self.agenda);
                }
            }
        }
        self.agenda.events[place] = events;
        self.apply(Input::Tick);
        self.job.go_on(self.agenda.step);
        if self.agenda.step.is_multiple_of(STEPS_PER_EVALUATION) {
            self.slow_down();
            self.evaluate();
        }
    }

    /// Takes a message as the server does.
    fn hear(&mut self, mut message: FromNode) {
        let now = self.now();
        if self.coordinator.accepts(&message).is_ok()
            && let Some(work) = observed(now, &mut message)
        {
            self.observed += 1;
            self.watch.apply(work);
        }
        self.apply(Input::Node(message));
    }

    /// Has detection look; what it says comes back before the next evaluation, as from a thread that is busy.
    fn evaluate(&mut self) {
        if let Some(seen) = self.watch.seen() {
            self.apply(Input::Verdicts { epoch: seen.epoch, verdicts: seen.verdicts });
        }
        if self.followed.any() {
            let metrics = self.coordinator.incident().is_some();
            self.watch.evaluate(Work::Evaluate { now: self.now(), metrics });
        }
    }

    fn apply(&mut self, input: Input) {
        let now = self.now();
        let mut outputs = std::mem::take(&mut self.outputs);
        self.coordinator.step(now, input, &mut outputs);
        outputs.drain(..).for_each(|output| self.carry_out(output));
        self.outputs = outputs;
        let mut is_new = false;
        let watch = &mut self.watch;
        self.followed.follow(now, &self.coordinator, |work| {
            watch.apply(work);
            is_new = true;
            true
        });
        if is_new {
            let map = self.coordinator.state().map(|state| &state.map);
            self.nodes.take_slots(map);
            self.job.restart();
            self.slow_down();
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Send { node, message } => self.nodes.send(&node, message, &mut self.agenda),
            Output::Store(decision) => {
                self.revision += 1;
                let outcome = StoreOutcome::Stored(Revision::new(self.revision));
                let input = Input::Stored { decision: decision.number, outcome };
                self.agenda.add(1, WeekEvent::Stored(input));
            }
            Output::Incident(incident) => {
                let acted = matches!(incident.standing, Standing::Answered(_) | Standing::GivenUp);
                self.answered += u64::from(acted);
            }
            Output::Refuse { .. } => self.refused += 1,
            Output::Answer { .. }
            | Output::NotPrepared { .. }
            | Output::BeforeDrain { .. }
            | Output::Stray { .. } => {}
            Output::StepDown(why) => panic!("nobody else decides here: {why:?}"),
        }
    }

    /// Slows the ranks of the nodes and links configured to be slow, from their time on and while they have a slot.
    fn slow_down(&mut self) {
        let now = self.now().since(Moment::default());
        let slow = self.plan.slow.iter().filter(|one| one.is_now(now));
        let of_ranks = slow.filter_map(|one| {
            Some((one.fault.renumbered(|node| self.nodes.rank_of(node))?, one.ratio))
        });
        let faults: Vec<(SimulatedFault, f64)> = of_ranks.collect();
        self.job.break_down(&faults);
    }

    fn outcome(mut self) -> WeekOutcome {
        // What was seen last is counted, and comes too late to be acted on.
        drop(self.watch.seen());
        let state = self.coordinator.state().expect("it leads to the end");
        let committed = matches!(state.phase, Phase::Committed(_));
        let barred =
            self.coordinator.nodes().filter(|(_, state)| matches!(state, NodeState::Barred(_)));
        WeekOutcome {
            alarms: self.watch.alarms(),
            lasting: self.watch.take_lasting(),
            not_taken: self.watch.not_taken(),
            observed: self.observed,
            metrics: self.coordinator.metrics(),
            refused: self.refused,
            answered: self.answered,
            epoch: state.epoch.number(),
            runs: committed && self.coordinator.runs(),
            barred: barred.map(|(node, _)| node.clone()).collect(),
        }
    }
}

/// [`STEP`] in nanoseconds.
const NANOSECONDS_OF_STEP: u64 = 100_000_000;
const _: () = assert!(STEP.as_nanos() == NANOSECONDS_OF_STEP as u128);
