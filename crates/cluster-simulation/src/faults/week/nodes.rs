//! The nodes: a shipped agent on each, its clock, and its connection to the coordinator.
//!
//! An agent's time is made to pass when something is due or happens. Workers start and stop as they are
//! ordered to, and ports are free.

use std::collections::BTreeMap;
use std::ops::Range;

use telltale_cluster::agent::{Agent, AgentInput, AgentOutput, Exit, Identity};
use telltale_cluster::message::{FromNode, FromNodeBody, ToNode};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::observation::FailureDetail;
use telltale_cluster::policy::AgentPolicy;
use telltale_cluster::rank::{RankMap, WorkersPerNode};

use super::{Agenda, WeekEvent, Workload};
use crate::clock::{MachineClock, TrueTime};
use crate::faults::machine::name;
use crate::random::Random;

/// Steps from one report of a node to the next.
const REPORT: u64 = 10;
/// How probable it is that a report is made one step later, because the host is busy.
const ONE_LATER: f64 = 0.3;
/// How probable it is that a message is on its way for some steps, in good and in bad minutes.
const SLOW_MESSAGES: [f64; 2] = [0.01, 0.3];
/// In the first steps none is, so that nodes get their slots in their order.
const QUIET_STEPS: u64 = 50;
/// How many steps: up to a second.
const SLOW_BY: Range<u64> = 1..11;
/// One minute of this many is bad.
const MINUTES_PER_BAD: u64 = 60;
/// How probable it is that a node's connection breaks before a report: once a day.
const BREAKS: f64 = 1.0 / 86_400.0;
/// After how many steps there is another.
const BROKEN_FOR: Range<u64> = 2..20;
/// Steps in which a worker starts, and ends on request.
const WORKER: u64 = 5;

/// When nodes report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reports {
    /// All at the same moment of each second.
    InPhase,
    /// Each at its own, which moves: a host that is busy reports a little later.
    Spread,
}

/// What happens to a node.
#[derive(Debug)]
pub(super) enum Happening {
    /// Its report is due, if it has sent no message since so many.
    Due(u64),
    /// The coordinator orders something.
    Ordered(ToNode),
    /// Something has come to pass on the node itself.
    Here(AgentInput),
}

#[derive(Debug)]
struct Node {
    agent: Agent,
    clock: MachineClock,
    rank: Option<u32>,
    /// Messages that it has sent.
    sent: u64,
    /// The step in which the last of them arrives: none overtakes another.
    arrives: u64,
}

/// All nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    names: BTreeMap<NodeName, usize>,
    reports: Reports,
    random: Random,
    outputs: Vec<AgentOutput>,
}

impl Nodes {
    /// So many nodes with names in order.
    pub(super) fn new(count: u32, reports: Reports, seed: u64) -> Self {
        let mut random = Random::new(seed ^ 2);
        let node = |number: u32| {
            let clock = MachineClock::drawn(&mut random);
            let workers = WorkersPerNode::new(1).expect("one is allowed");
            let address = HostAddress::new(name(number).as_str()).expect("a name is an address");
            let (node, incarnation) = (name(number), Incarnation::new(1));
            let identity = Identity { node, incarnation, planned_since: None, address, workers };
            let now = clock.shows(TrueTime::default());
            // What it wants first is done before the first step.
            let (agent, _) = Agent::new(identity, AgentPolicy::default(), now);
            Node { agent, clock, rank: None, sent: 0, arrives: 0 }
        };
        let nodes: Vec<Node> = (0..count).map(node).collect();
        let names = (0..count).map(name).zip(0..).collect();
        Self { nodes, names, reports, random, outputs: Vec::new() }
    }

    /// All agents start, within a second or at once; in their order, so that slots have it too.
    pub(super) fn begin(&mut self, agenda: &mut Agenda) {
        let mut starts: Vec<u64> = self.nodes.iter().map(|_| self.random.below(REPORT)).collect();
        starts.sort_unstable();
        for (node, start) in starts.into_iter().enumerate() {
            let at = if self.reports == Reports::Spread { 1 + start } else { 1 };
            for input in [AgentInput::LeftoversGone, AgentInput::Connected] {
                agenda.add(at, WeekEvent::ToNode(node, Happening::Here(input)));
            }
        }
    }

    /// Who runs what from now on.
    pub(super) fn take_slots(&mut self, map: Option<&RankMap>) {
        for (name, number) in &self.names {
            let slot = map.and_then(|map| Some((map, map.slot_of(name)?)));
            self.nodes[*number].rank = slot.map(|(map, slot)| map.first_rank(slot).0);
        }
    }

    /// The rank of a node, if it has one.
    pub(super) fn rank_of(&self, node: u32) -> Option<u32> {
        self.nodes.get(usize::try_from(node).ok()?)?.rank
    }

    /// An order is on its way to a node.
    pub(super) fn send(&self, node: &NodeName, order: ToNode, agenda: &mut Agenda) {
        if let Some(number) = self.names.get(node) {
            agenda.add(1, WeekEvent::ToNode(*number, Happening::Ordered(order)));
        }
    }

    /// Something happens to a node.
    pub(super) fn happens(
        &mut self,
        number: usize,
        happening: Happening,
        job: &mut impl Workload,
        agenda: &mut Agenda,
    ) {
        match happening {
            Happening::Due(sent) => self.report(number, sent, job, agenda),
            Happening::Ordered(order) => self.input(number, AgentInput::Order(order), agenda),
            Happening::Here(input) => self.input(number, input, agenda),
        }
    }

    fn report(&mut self, number: usize, sent: u64, job: &mut impl Workload, agenda: &mut Agenda) {
        if self.nodes[number].sent != sent {
            return;
        }
        if self.random.happens(BREAKS) {
            self.input(number, AgentInput::Disconnected, agenda);
            let later = draw(&mut self.random, BROKEN_FOR);
            let connected = Happening::Here(AgentInput::Connected);
            agenda.add(later, WeekEvent::ToNode(number, connected));
            return;
        }
        let node = &self.nodes[number];
        if let (Some(epoch), Some(rank)) = (node.agent.running(), node.rank) {
            let observation = job.report(rank);
            self.input(number, AgentInput::Observed { epoch, observation }, agenda);
        } else {
            self.input(number, AgentInput::Tick, agenda);
        }
        if self.nodes[number].sent == sent {
            // By its own clock it was a moment too early.
            agenda.add(1, WeekEvent::ToNode(number, Happening::Due(sent)));
        }
    }

    fn input(&mut self, number: usize, input: AgentInput, agenda: &mut Agenda) {
        let mut outputs = std::mem::take(&mut self.outputs);
        let node = &mut self.nodes[number];
        let now = node.clock.shows(TrueTime(agenda.time()));
        node.agent.step(now, input, &mut outputs);
        outputs.drain(..).for_each(|output| self.carry_out(number, output, agenda));
        self.outputs = outputs;
    }

    fn carry_out(&mut self, number: usize, output: AgentOutput, agenda: &mut Agenda) {
        let (later, input) = match output {
            AgentOutput::Send(message) => {
                self.travel(number, message, agenda);
                return;
            }
            AgentOutput::Start { epoch, local, .. } => {
                (WORKER, AgentInput::WorkerStarted { epoch, local })
            }
            AgentOutput::Terminate { epoch, local } | AgentOutput::Kill { epoch, local } => {
                let exit = Exit::Signal(15);
                (
                    WORKER,
                    AgentInput::WorkerExited {
                        epoch,
                        local,
                        exit,
                        detail: FailureDetail::default(),
                    },
                )
            }
            AgentOutput::HoldPort(ports) => {
                (1, AgentInput::PortHeld { ports, port: Some(ports.first) })
            }
            AgentOutput::ClearLeftovers | AgentOutput::Over(_) | AgentOutput::Examine { .. } => {
                return;
            }
        };
        agenda.add(later, WeekEvent::ToNode(number, Happening::Here(input)));
    }

    /// A message is on its way to the coordinator, and the next report is due a second later.
    fn travel(&mut self, number: usize, message: Box<FromNode>, agenda: &mut Agenda) {
        let minute = agenda.time().as_secs() / 60;
        let bad = usize::from(minute % MINUTES_PER_BAD == MINUTES_PER_BAD - 1);
        let random = &mut self.random;
        let is_slow = random.happens(SLOW_MESSAGES[bad]) && agenda.step > QUIET_STEPS;
        let later = if is_slow { draw(random, SLOW_BY) } else { 1 };
        let node = &mut self.nodes[number];
        node.arrives = node.arrives.max(agenda.step + later);
        let later = node.arrives - agenda.step;
        let is_regular = !matches!(message.body, FromNodeBody::Acknowledge(_));
        agenda.add(later, WeekEvent::Heard(message));
        if is_regular {
            node.sent += 1;
            let is_later = self.reports == Reports::Spread && random.happens(ONE_LATER);
            let next = REPORT + u64::from(is_later);
            agenda.add(next, WeekEvent::ToNode(number, Happening::Due(node.sent)));
        }
    }
}

fn draw(random: &mut Random, range: Range<u64>) -> u64 {
    range.start + random.below(range.end - range.start)
}
