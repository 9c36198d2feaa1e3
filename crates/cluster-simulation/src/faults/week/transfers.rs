//! What the ranks of a job report about their transfers, one by one, through the shipped intake.
//!
//! Every transfer is drawn: when it ends and how long it took, by a model of the links and of the noise that
//! is drawn for each run. In some jobs ranks hold each other up: then they tell so, and meet in collectives too.

use std::f64::consts::TAU;
use std::time::Instant;

use telltale_cluster::epoch::Epoch;
use telltale_cluster::group::GroupId;
use telltale_cluster::intake::entry::{EntryContent, PostEntry};
use telltale_cluster::intake::{Intake, Observed, Scope};
use telltale_cluster::latency::record::{CollectiveRecord, OperationType, Stage, Waited};
use telltale_cluster::latency::{Collective, Direction};
use telltale_cluster::observation::Observation;
use telltale_cluster::rank::Rank;

use super::{Reports, STEPS_PER_EVALUATION, Workload};
use crate::faults::machine::SimulatedFault;
use crate::faults::shape::{JobShape, Keys};
use crate::random::Random;

/// The usual time of a transfer, in microseconds.
const BASE_US: f64 = 2_000.0;
/// How different healthy links are, at least and at most: the deviation of the logarithm.
const LINK_SPREAD: [f64; 2] = [0.05, 0.6];
/// In one run of so many, one link of so many is of another kind, slower by this factor.
const RUNS_PER_MIXED: u64 = 3;
const LINKS_PER_OTHER: u64 = 5;
const OTHER_KIND: f64 = 3.0;
/// How different the two directions of a link are.
const DIRECTION_SPREAD: f64 = 0.05;
/// How different two measurements of one transfer are.
const MEASURING: f64 = 0.02;
/// The jitter of one transfer, at least and at most.
const JITTER: [f64; 2] = [0.03, 0.2];
/// How probable a spike of one transfer is, and by which factor.
const SPIKE: f64 = 0.01;
const SPIKE_RATIO: f64 = 4.0;
/// How probable it is that all transfers of a second are slower, and by which factor.
const COMMON_SPIKE: f64 = 0.01;
const COMMON_SPIKE_RATIO: f64 = 3.0;
/// What all links share: a load that comes and goes, by this share, and how long it takes, in seconds.
const LOAD: f64 = 0.15;
const LOAD_PERIOD: f64 = 900.0;
/// What a link has alone: it wanders by this share, and forgets in about so many seconds.
const WANDER: f64 = 0.03;
const WANDER_SECONDS: f64 = 30.0;
/// Steps of 100 ms from one transfer of an edge to the next; one is drawn for a run.
const EVERY: [u64; 6] = [1, 2, 3, 5, 10, 30];
/// Of the sizes that are measured, in bytes, and how much longer the larger takes.
const SIZES: [(u64, f64); 2] = [(1 << 20, 1.0), (1 << 24, 12.0)];
/// What a rank computes in a second before it meets the others, in microseconds, and how much that differs.
const COMPUTE_US: f64 = 400_000.0;
const COMPUTE_JITTER: f64 = 0.01;
/// How probable it is that a rank stands still in a second, and how long: it reads, or collects garbage.
const STALL: f64 = 1.0 / 600.0;
const STALL_US: f64 = 150_000.0;
/// What the collective takes when all are there, and how large it is.
const COLLECTIVE_US: f64 = 40_000.0;
const COLLECTIVE_BYTES: u64 = 1 << 24;
/// The only epoch that an intake knows here; it is begun again with each of the job.
const EPOCH: Epoch = Epoch::new(1);

/// What the times of transfers hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measured {
    /// Transfers alone.
    Alone,
    /// Waits for a sender who waited for its own receives, as in a ring: a client says that it was late.
    Late,
    /// Waits for what a rank does at the same time, as in exchanges: a client says that they overlapped.
    Overlapped,
}

/// One transfer of a step.
#[derive(Debug, Clone, Copy)]
struct StepTransfer {
    line: usize,
    us: f64,
    /// What it usually takes without faults and chance.
    usual_us: f64,
}

/// Transfers of one size from one rank to another in one group.
#[derive(Debug)]
struct TransferLine {
    group: GroupId,
    ends: (u32, u32),
    bytes: u64,
    usual_us: f64,
    every: u64,
    offset: u64,
    link: usize,
}

/// The ranks of a job of some shape.
#[derive(Debug)]
pub(in crate::faults) struct Transfers {
    ranks: u32,
    lines: Vec<TransferLine>,
    /// How much slower each directed edge is by its faults, and by its wandering, which is a logarithm.
    edges: Vec<((u32, u32), f64, f64)>,
    both_ends: bool,
    measured: Measured,
    jitter: f64,
    common: f64,
    /// By how long each rank was held up since it met the others last, and how often it did, in microseconds.
    behind_us: Vec<f64>,
    met: u64,
    intakes: Vec<Intake>,
    /// What each rank has reported since its last report.
    reported: Vec<Vec<PostEntry>>,
    random: Random,
}

impl Transfers {
    /// A job of this shape, in which so much is measured. Everything else is drawn.
    pub(in crate::faults) fn new(
        shape: JobShape,
        (keys, measured): (Keys, Measured),
        reports: Reports,
        seed: u64,
    ) -> Self {
        let mut random = Random::new(seed ^ 3);
        let between =
            |random: &mut Random, [least, most]: [f64; 2]| least + (most - least) * random.unit();
        let spread = between(&mut random, LINK_SPREAD);
        let jitter = between(&mut random, JITTER);
        let is_mixed = random.below(RUNS_PER_MIXED) == 0;
        let every = EVERY[random.index(EVERY.len()).unwrap_or(0)];
        let pairs = shape.pairs(keys);
        let mut link_ns = std::collections::BTreeMap::new();
        for (from, to) in &pairs {
            let ends = (*from.min(to), *from.max(to));
            let is_other = is_mixed && random.below(LINKS_PER_OTHER) == 0;
            let kind = if is_other { OTHER_KIND } else { 1.0 };
            link_ns.entry(ends).or_insert(kind * (spread * random.normal()).exp());
        }
        let sizes = if keys == Keys::Many { &SIZES[..] } else { &SIZES[..1] };
        let mut lines = Vec::new();
        let edges: Vec<(u32, u32)> = pairs.iter().copied().collect();
        for (group, ends) in (1..).zip(shape.groups(keys)) {
            for (from, to) in ends {
                let of_link = link_ns[&(from.min(to), from.max(to))];
                let direction = (DIRECTION_SPREAD * random.normal()).exp();
                let offset = match reports {
                    Reports::InPhase => 0,
                    Reports::Spread => random.below(every),
                };
                for (bytes, longer) in sizes {
                    lines.push(TransferLine {
                        group: GroupId::new(group),
                        ends: (from, to),
                        bytes: *bytes,
                        usual_us: BASE_US * longer * of_link * direction,
                        every,
                        offset,
                        link: edges.binary_search(&(from, to)).unwrap_or(0),
                    });
                }
            }
        }
        let ranks = shape.nodes();
        let mut job = Self {
            ranks,
            lines,
            edges: edges.into_iter().map(|ends| (ends, 1.0, 0.0)).collect(),
            // The sender reports that it was late.
            both_ends: keys == Keys::Many || measured != Measured::Alone,
            measured,
            jitter,
            common: 1.0,
            behind_us: vec![0.0; place(ranks)],
            met: 0,
            intakes: (0..ranks).map(|_| Intake::new()).collect(),
            reported: (0..ranks).map(|_| Vec::new()).collect(),
            random,
        };
        job.restart();
        job
    }

    /// How often an edge has a transfer, and how much they differ.
    pub(in crate::faults) fn pace(&self) -> String {
        let every = self.lines.first().map_or(0, |line| line.every);
        format!("a transfer in {every}00 ms, jitter {:.2}", self.jitter)
    }

    /// What all share in this second, and where each edge's wandering goes.
    fn second(&mut self, second: u64) {
        let is_spike = self.random.happens(COMMON_SPIKE);
        let load = 1.0 + LOAD * (TAU * second as f64 / LOAD_PERIOD).sin();
        self.common = if is_spike { load * COMMON_SPIKE_RATIO } else { load };
        let kept = (-1.0 / WANDER_SECONDS).exp();
        let new = WANDER * (1.0 - kept * kept).sqrt();
        for (_, _, wander) in &mut self.edges {
            *wander = *wander * kept + new * self.random.normal();
        }
    }

    /// What each transfer of one step takes, if no rank waits for another.
    fn transfers(&mut self, step: u64) -> Vec<StepTransfer> {
        let mut all = Vec::new();
        for number in 0..self.lines.len() {
            let line = &self.lines[number];
            if step % line.every != line.offset {
                continue;
            }
            let (_, slower, wander) = self.edges[line.link];
            let usual_us = line.usual_us * self.common;
            let by_chance = (wander + self.jitter * self.random.normal()).exp();
            let spike = if self.random.happens(SPIKE) { SPIKE_RATIO } else { 1.0 };
            let us = usual_us * slower * by_chance * spike;
            all.push(StepTransfer { line: number, us, usual_us: self.lines[number].usual_us });
        }
        all
    }

    /// By how long each rank's own receives hold up what it sends next.
    fn holds(&mut self, transfers: &[StepTransfer]) -> Vec<f64> {
        let mut holds = vec![0.0_f64; place(self.ranks)];
        for one in transfers {
            let hold = &mut holds[place(self.lines[one.line].ends.1)];
            *hold = hold.max(one.us - one.usual_us);
        }
        for (behind, hold) in self.behind_us.iter_mut().zip(&holds) {
            *behind += hold.max(0.0);
        }
        holds
    }

    /// Tells of a transfer at both its ends, or at the receiver's.
    fn report_both(&mut self, line: usize, [sent_us, received_us]: [f64; 2]) {
        let (from, to) = self.lines[line].ends;
        let overlapped = self.measured == Measured::Overlapped;
        let waited = Waited { late: false, overlapped };
        self.apply(to, (from, Direction::Receive), line, (received_us, waited));
        if self.both_ends {
            let waited = Waited { late: self.measured == Measured::Late, overlapped };
            self.apply(from, (to, Direction::Send), line, (sent_us, waited));
        }
    }

    /// All ranks meet, once a second, each when it has computed and what held it up is over.
    fn meet(&mut self) {
        self.met += 1;
        let mut arrivals = Vec::with_capacity(self.behind_us.len());
        for behind in std::mem::replace(&mut self.behind_us, vec![0.0; place(self.ranks)]) {
            let stall = if self.random.happens(STALL) { STALL_US } else { 0.0 };
            let compute = COMPUTE_US * (1.0 + COMPUTE_JITTER * self.random.normal());
            arrivals.push(compute + behind + stall);
        }
        let last = arrivals.iter().copied().fold(0.0, f64::max);
        for (rank, arrival) in (0_u32..).zip(arrivals) {
            let us = COLLECTIVE_US * (1.0 + MEASURING * self.random.normal()) + last - arrival;
            let operation = OperationType::Collective {
                collective: Collective::AllReduce,
                size: COLLECTIVE_BYTES,
            };
            self.reported[place(rank)].push(PostEntry {
                epoch: None,
                reported: EntryContent::Operation(CollectiveRecord {
                    operation,
                    group: None,
                    context_rank: rank,
                    global_rank: Some(Rank(rank)),
                    context_size: self.ranks,
                    stage: Stage::Ended { start_us: 0, end_us: us as i64 },
                    sequence: Some(self.met),
                    step: None,
                    waited: Waited::default(),
                }),
            });
        }
    }

    fn apply(
        &mut self,
        rank: u32,
        (peer, direction): (u32, Direction),
        line: usize,
        (taken_us, waited): (f64, Waited),
    ) {
        let TransferLine { group, bytes, .. } = self.lines[line];
        let measured_us = taken_us * (1.0 + MEASURING * self.random.normal());
        let operation = OperationType::Transfer { direction, remote_rank: peer, bytes };
        let record = CollectiveRecord {
            operation,
            group: Some(group),
            context_rank: rank,
            global_rank: None,
            context_size: self.ranks,
            stage: Stage::Ended { start_us: 0, end_us: measured_us.max(1.0) as i64 },
            sequence: None,
            step: None,
            waited,
        };
        let entry = PostEntry { epoch: None, reported: EntryContent::Operation(record) };
        self.reported[place(rank)].push(entry);
    }
}

impl Workload for Transfers {
    fn restart(&mut self) {
        for (rank, intake) in (0..).zip(&mut self.intakes) {
            intake.begin(Scope { epoch: EPOCH, world_size: self.ranks, ranks: rank..rank + 1 });
        }
        self.reported.iter_mut().for_each(Vec::clear);
        self.behind_us.fill(0.0);
        self.met = 0;
    }

    fn break_down(&mut self, faults: &[(SimulatedFault, f64)]) {
        for (ends, slower, _) in &mut self.edges {
            let touching = faults.iter().filter(|(fault, _)| fault.touches(*ends));
            *slower = touching.map(|(_, ratio)| ratio).product();
        }
    }

    fn go_on(&mut self, step: u64) {
        if step.is_multiple_of(STEPS_PER_EVALUATION) {
            self.second(step / STEPS_PER_EVALUATION);
            if self.measured != Measured::Alone {
                self.meet();
            }
        }
        let transfers = self.transfers(step);
        let holds = match self.measured {
            Measured::Alone => Vec::new(),
            Measured::Late | Measured::Overlapped => self.holds(&transfers),
        };
        for StepTransfer { line, us, .. } in transfers {
            let (from, to) = self.lines[line].ends;
            let hold = |rank: u32| holds.get(place(rank)).copied().unwrap_or(0.0).max(0.0);
            let times = match self.measured {
                Measured::Alone => [us, us],
                // Who receives is there and waits.
                Measured::Late => [us, us + hold(from)],
                Measured::Overlapped => [us + hold(from), us + hold(to)],
            };
            self.report_both(line, times);
        }
    }

    fn report(&mut self, rank: u32) -> Observation {
        let intake = &mut self.intakes[place(rank)];
        intake.take(std::mem::take(&mut self.reported[place(rank)]));
        intake.observe(EPOCH, &Observed::default(), Instant::now()).unwrap_or_default()
    }
}

fn place(rank: u32) -> usize {
    usize::try_from(rank).expect("a u32 fits in a usize")
}
