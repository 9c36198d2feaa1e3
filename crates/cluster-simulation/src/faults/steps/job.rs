//! A job of training steps that reports each operation to the shipped intake.
//!
//! Everything that a healthy job has besides its program is drawn: how different its ranks and links are, the noise of each
//! operation, stalls, and hosts' clocks.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use telltale_cluster::intake::{Intake, Scope};
use telltale_cluster::observation::{Observation, Traffic};

use super::program::{Program, StepShape};
use super::record::{self, BYTES, COLLECTIVE_BYTES};
use super::run::{Done, RunSubject, Times, run};
use super::second::{EPOCH, Second, address};
use crate::faults::machine::SimulatedFault;
use crate::faults::week::Workload;
use crate::random::Random;

/// What a step of [`Workload::go_on`] takes.
const STEP_US: f64 = 100_000.0;
/// How different ranks compute that are healthy, and the noise of one computation, at least and at most.
const RANK_SPREAD: [f64; 2] = [0.002, 0.015];
const JITTER: [f64; 2] = [0.003, 0.03];
/// How probable it is that a computation stalls, and for how many times its usual time at most.
const STALL: f64 = 1.0 / 500.0;
const STALL_RATIO: f64 = 2.0;
/// The usual time of a transfer and of a collective, how different links are, and the noise of one transfer.
const LINK_US: f64 = 8_000.0;
const COLLECTIVE_US: f64 = 40_000.0;
const LINK_SPREAD: [f64; 2] = [0.01, 0.1];
const LINK_JITTER: [f64; 2] = [0.03, 0.15];

/// What is drawn of a job, and what is not chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Traits {
    pub(super) shape: StepShape,
    /// A stage has so many times as much to do, in all replicas.
    pub(super) stage: Option<(u32, f64)>,
    /// How much each rank's and step's work differs with its data: the deviation of the logarithm.
    pub(super) data: f64,
    /// Whether nodes know what their TCP connections carry.
    pub(super) has_tcp: bool,
}

/// How long things take without and with chance.
#[derive(Debug)]
pub(super) struct OperationTimes {
    traits: Traits,
    alike: Vec<u32>,
    replicas: Vec<usize>,
    faults: Vec<(SimulatedFault, f64)>,
    speeds: Vec<f64>,
    links: BTreeMap<(u32, u32), f64>,
    jitter: f64,
    link_jitter: f64,
    /// By how much the data of each replica make this step longer.
    data: Vec<f64>,
    random: Option<Random>,
}

// === impl OperationTimes ===

impl OperationTimes {
    /// One without chance: what a fault costs.
    pub(super) fn even(traits: Traits, program: &Program) -> Self {
        Self::new(traits, program, None)
    }

    fn new(traits: Traits, program: &Program, random: Option<Random>) -> Self {
        let ranks = program.actions.len();
        let alike = program.alike.clone();
        // The how many-th of its kind each rank is: in a pipeline its replica, which has one batch.
        let replicas =
            (0..ranks).map(|rank| alike[..rank].iter().filter(|one| **one == alike[rank]).count());
        let mut machine = Self {
            traits,
            replicas: replicas.collect(),
            alike,
            faults: Vec::new(),
            speeds: vec![1.0; ranks],
            links: BTreeMap::new(),
            jitter: 0.0,
            link_jitter: 0.0,
            data: vec![1.0; ranks],
            random: None,
        };
        if let Some(mut random) = random {
            let between = |random: &mut Random, [least, most]: [f64; 2]| {
                least + (most - least) * random.unit()
            };
            let [spread, links] =
                [RANK_SPREAD, LINK_SPREAD].map(|range| between(&mut random, range));
            machine.jitter = between(&mut random, JITTER);
            machine.link_jitter = between(&mut random, LINK_JITTER);
            machine.speeds.iter_mut().for_each(|one| *one = (spread * random.normal()).exp());
            for link in traits.shape.links() {
                machine.links.insert(link, (links * random.normal()).exp());
            }
            machine.random = Some(random);
        }
        machine
    }

    pub(super) fn break_down(&mut self, faults: &[(SimulatedFault, f64)]) {
        self.faults = faults.to_vec();
    }

    /// A new step has new data.
    fn next_step(&mut self) {
        let deviation = self.traits.data;
        if let Some(random) = &mut self.random {
            self.data.iter_mut().for_each(|one| *one = (deviation * random.normal()).exp());
        }
    }

    fn chance(&mut self, deviation: f64) -> f64 {
        self.random.as_mut().map_or(1.0, |random| (deviation * random.normal()).exp())
    }

    /// For how long a link carries its share of a collective.
    fn share(&mut self, from: u32, to: u32) -> f64 {
        COLLECTIVE_US * self.slower(from, to) * self.chance(self.link_jitter)
    }

    fn slower(&self, from: u32, to: u32) -> f64 {
        let is_link = |one: &&(SimulatedFault, f64)| {
            !matches!(one.0, SimulatedFault::Node(_)) && one.0.touches((from, to))
        };
        self.faults.iter().filter(is_link).map(|one| one.1).product()
    }
}

impl Times for OperationTimes {
    fn compute(&mut self, rank: u32, usual_us: f64) -> f64 {
        let place = rank as usize;
        let slower =
            self.faults.iter().filter(|one| one.0 == SimulatedFault::Node(rank)).map(|one| one.1);
        let faulty: f64 = slower.product();
        let stage = self
            .traits
            .stage
            .filter(|(stage, _)| *stage == self.alike[place])
            .map_or(1.0, |one| one.1);
        let data = self.data[self.replicas[place]];
        let is_stalled = self.random.as_mut().is_some_and(|random| random.happens(STALL));
        let stall = if is_stalled {
            1.0 + STALL_RATIO * self.random.as_mut().map_or(0.0, Random::unit)
        } else {
            1.0
        };
        usual_us * self.speeds[place] * stage * data * faulty * self.chance(self.jitter) * stall
    }

    fn link(&mut self, from: u32, to: u32) -> f64 {
        let link = self.links.get(&(from, to)).copied().unwrap_or(1.0);
        LINK_US * link * self.slower(from, to) * self.chance(self.link_jitter)
    }

    fn collective(&mut self, ranks: &[u32]) -> f64 {
        let links = ranks.iter().zip(ranks.iter().cycle().skip(1));
        let slowest = links.map(|(from, to)| self.slower(*from, *to)).fold(1.0, f64::max);
        COLLECTIVE_US * slowest * self.chance(self.link_jitter)
    }
}

/// What a rank has sent to another.
#[derive(Debug, Clone, Copy)]
struct Sent {
    to: u32,
    end_us: f64,
    bytes: u64,
    busy_us: f64,
}

/// The ranks of a job.
#[derive(Debug)]
pub(in crate::faults) struct Steps {
    program: Program,
    machine: OperationTimes,
    /// When each rank has ended what was run.
    clocks: Vec<f64>,
    now_us: f64,
    number: u64,
    /// By how much each host's clock is ahead.
    ahead_us: Vec<f64>,
    intakes: Vec<Intake>,
    /// Of each rank what it has not posted yet: when that ends, and the record.
    ahead: Vec<VecDeque<(f64, String)>>,
    /// Of each rank, in the order in which it ended.
    sent: Vec<VecDeque<Sent>>,
    reported_us: Vec<f64>,
    /// All computations and transfers, for who judges by nothing else.
    pub(super) all: Vec<Done>,
    keeps_all: bool,
}

// === impl Steps ===

impl Steps {
    /// A job with these traits. Everything else is drawn.
    pub(super) fn new(traits: Traits, keeps_all: bool, seed: u64) -> Self {
        let program = traits.shape.program();
        let ranks = program.actions.len();
        let mut random = Random::new(seed ^ 5);
        let ahead_us = (0..ranks).map(|_| (random.unit() * 1e12).round()).collect();
        let machine = OperationTimes::new(traits, &program, Some(random.split()));
        let mut job = Self {
            program,
            machine,
            clocks: vec![0.0; ranks],
            now_us: 0.0,
            number: 0,
            ahead_us,
            intakes: (0..ranks).map(|_| Intake::new()).collect(),
            ahead: vec![VecDeque::new(); ranks],
            sent: vec![VecDeque::new(); ranks],
            reported_us: vec![0.0; ranks],
            all: Vec::new(),
            keeps_all,
        };
        job.restart();
        job
    }

    fn step(&mut self) {
        self.machine.next_step();
        let mut done = run(&self.program, &mut self.clocks, &mut self.machine);
        done.sort_by(|one, other| one.end_us.total_cmp(&other.end_us));
        for one in &done {
            let rank = one.rank as usize;
            let (to, bytes, busy_us) = match one.what {
                RunSubject::Sent { to, link_us } => (to, BYTES, link_us),
                RunSubject::Collective(group) => {
                    let ranks = &self.program.groups[group];
                    let place = ranks.iter().position(|rank| *rank == one.rank).unwrap_or(0);
                    let to = ranks[(place + 1) % ranks.len()];
                    (to, COLLECTIVE_BYTES, self.machine.share(one.rank, to))
                }
                RunSubject::Compute(_) | RunSubject::Received { .. } => (one.rank, 0, 0.0),
            };
            if to != one.rank {
                self.sent[rank].push_back(Sent { to, end_us: one.end_us, bytes, busy_us });
            }
            let record = record::of_done(one, &self.program, self.number, self.ahead_us[rank]);
            self.ahead[rank].push_back((one.end_us, record));
        }
        for (rank, end_us) in (0..).zip(&self.clocks) {
            self.ahead[rank as usize].push_back((*end_us, record::of_end(rank, self.number)));
        }
        if self.keeps_all {
            self.all.extend(done);
        }
        self.number += 1;
    }

    /// What a rank's node has heard and seen since it was last asked.
    pub(super) fn second(&mut self, rank: u32) -> Second {
        let place = rank as usize;
        let mut records = Vec::new();
        while self.ahead[place].front().is_some_and(|(end_us, _)| *end_us <= self.now_us) {
            records.extend(self.ahead[place].pop_front().map(|(_, record)| record));
        }
        let sent_us = Some((self.now_us + self.ahead_us[place]) as i64);
        Second { records, sent_us, withheld: Some(0.0), traffic: self.traffic(place) }
    }

    /// The intake of a rank's node.
    pub(super) fn intake(&mut self, rank: u32) -> &mut Intake {
        &mut self.intakes[rank as usize]
    }

    fn traffic(&mut self, rank: usize) -> Vec<Traffic> {
        let elapsed_us = self.now_us - std::mem::replace(&mut self.reported_us[rank], self.now_us);
        let mut sums: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
        while let Some(sent) = self.sent[rank].front().filter(|one| one.end_us <= self.now_us) {
            let (bytes, busy_us) = sums.entry(sent.to).or_default();
            *bytes += sent.bytes;
            *busy_us += sent.busy_us;
            self.sent[rank].pop_front();
        }
        let all = sums.into_iter().map(|(to, (bytes, busy_us))| Traffic {
            local: address(rank as u32),
            remote: address(to),
            bytes,
            busy: Duration::from_micros(busy_us.min(elapsed_us) as u64),
            delivery_rate: (bytes as f64 / (busy_us / 1e6).max(1e-6)) as u64,
            elapsed: Duration::from_micros(elapsed_us as u64),
        });
        if self.machine.traits.has_tcp { all.collect() } else { Vec::new() }
    }
}

impl Workload for Steps {
    fn restart(&mut self) {
        let world_size = self.program.actions.len() as u32;
        for (rank, intake) in (0..).zip(&mut self.intakes) {
            intake.begin(Scope { epoch: EPOCH, world_size, ranks: rank..rank + 1 });
        }
        let now_us = self.now_us;
        let groups = record::of_groups(&self.program);
        self.clocks.fill(self.now_us);
        for ahead in &mut self.ahead {
            *ahead = groups.iter().map(|record| (now_us, record.clone())).collect();
        }
        self.sent.iter_mut().for_each(VecDeque::clear);
        self.number = 0;
    }

    fn break_down(&mut self, faults: &[(SimulatedFault, f64)]) {
        self.machine.break_down(faults);
    }

    fn go_on(&mut self, step: u64) {
        self.now_us = step as f64 * STEP_US;
        while self.clocks.iter().any(|clock| *clock < self.now_us) {
            self.step();
        }
    }

    fn report(&mut self, rank: u32) -> Observation {
        let second = self.second(rank);
        second.observe(rank..rank + 1, &mut self.intakes[rank as usize])
    }
}
