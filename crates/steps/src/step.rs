//! One step of a job as a graph: who did what, and who waited for whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::clocks;
use crate::kind::{Kind, MAX_KINDS};
use crate::lists::{Lists, at};
use crate::meeting::{self, Units};
use crate::operation::{MAX_DURATION_NS, Operation, Partners};
use crate::order;

/// Operations that one step may have, of all ranks.
pub const MAX_OPERATIONS: usize = 1 << 22;

/// Takes the operations of one step.
#[derive(Debug, Clone)]
pub struct StepBuilder {
    number: u64,
    operations: Vec<(u32, Operation)>,
}

/// One step of a job. A copy shares what it has.
#[derive(Debug, Clone)]
pub struct Step {
    number: u64,
    graph: Arc<Graph>,
}

/// What a step has.
#[derive(Debug)]
struct Graph {
    operations: Vec<Placed>,
    /// Operations that end together, by unit, in an order in which they can be done.
    units: Lists,
    /// For each operation, the ones of its rank that it waits for.
    waits: Lists,
    unmatched: usize,
}

/// An operation in its step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placed {
    /// Whose it is.
    pub rank: u32,
    /// What it is compared with.
    pub kind: Kind,
    /// Who takes part besides.
    pub partners: Partners,
    /// When it began, on the clock of the step's lowest rank.
    pub start_ns: i64,
    /// When it ended, on that clock.
    pub end_ns: i64,
    /// What it took by itself: from when all that take part were ready.
    pub work_ns: i64,
    /// Which of the rank's operations of this kind in the step it is, from 0.
    pub index: u32,
}

/// Why operations make no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StepError {
    /// There are none.
    #[error("the step has no operation")]
    Empty,
    /// There are too many.
    #[error("the step has more than {MAX_OPERATIONS} operations")]
    TooMany,
    /// One ended before it began, or lasted longer than is believed.
    #[error("an operation of rank {rank} has no duration from 0 to a day")]
    Duration {
        /// Whose.
        rank: u32,
    },
    /// Each of some operations would have to wait for another one of them.
    #[error("{operations} operations wait for one another in a circle")]
    Circle {
        /// How many cannot be done.
        operations: usize,
    },
}

// === impl StepBuilder ===

impl StepBuilder {
    /// A step with this number and no operation.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self { number, operations: Vec::new() }
    }

    /// Adds an operation of a rank.
    pub fn add(&mut self, rank: u32, operation: Operation) {
        self.operations.push((rank, operation));
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Its operations, each with its rank.
    pub(crate) fn operations(&self) -> &[(u32, Operation)] {
        &self.operations
    }

    /// Puts them in the order of their ranks, and then of their beginnings.
    pub(crate) fn sort(&mut self) {
        self.operations.sort_by_key(|(rank, one)| (*rank, one.start_ns, one.end_ns));
    }

    /// When each rank ended its last operation, by its own clock.
    #[must_use]
    pub fn ends(&self) -> BTreeMap<u32, i64> {
        let mut ends = BTreeMap::new();
        for (rank, one) in &self.operations {
            let end = ends.entry(*rank).or_insert(one.end_ns);
            *end = one.end_ns.max(*end);
        }
        ends
    }

    /// How many operations it has.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.operations.len()
    }

    /// Makes the step. `host` says for each rank whose clock it reads; where hosts differ, their clocks are
    /// aligned by what passed between them. `clock` says how many nanoseconds a host's clock is ahead of some other
    /// one, where that is known from elsewhere to some milliseconds.
    ///
    /// # Errors
    /// When there is no operation or too many, one has no duration, or they cannot be put in an order.
    pub fn build(
        mut self,
        host: impl Fn(u32) -> u32,
        clock: impl Fn(u32) -> Option<i64>,
    ) -> Result<Step, StepError> {
        match self.operations.len() {
            0 => return Err(StepError::Empty),
            1..=MAX_OPERATIONS => {}
            _ => return Err(StepError::TooMany),
        }
        self.sort();
        let mut operations = Vec::with_capacity(self.operations.len());
        // Of the rank whose operations are placed.
        let mut next_index = [0_u32; MAX_KINDS];
        let mut last_rank = None;
        for (rank, Operation { kind, start_ns, end_ns, partners }) in self.operations {
            let duration = end_ns.checked_sub(start_ns);
            let work_ns = duration
                .filter(|duration| (0..=MAX_DURATION_NS).contains(duration))
                .ok_or(StepError::Duration { rank })?;
            if last_rank.replace(rank) != Some(rank) {
                next_index.fill(0);
            }
            let index = next_index[kind.index()];
            next_index[kind.index()] += 1;
            operations.push(Placed { rank, kind, partners, start_ns, end_ns, work_ns, index });
        }
        let units = meeting::units(&operations);
        clocks::align(&mut operations, &units.places, host, clock);
        for unit in units.places.all() {
            set_work(&mut operations, unit);
        }
        Step::ordered(self.number, operations, units)
    }
}

/// What the operations of a communication took from when the last of its ranks was ready. A send is over when its
/// receiver has it: who waits for it later, behind other work, sees a later end.
fn set_work(operations: &mut [Placed], unit: &[u32]) {
    let starts = unit.iter().map(|place| operations[at(*place)].start_ns);
    let Some(ready) = starts.max() else { return };
    let received = unit.iter().map(|place| operations[at(*place)]);
    let received_ns = received
        .filter(|one| matches!(one.partners, Partners::From { .. }))
        .map(|one| one.end_ns)
        .max();
    for place in unit {
        let one = &mut operations[at(*place)];
        let end_ns = match (one.partners, received_ns) {
            (Partners::To { .. }, Some(received_ns)) => one.end_ns.min(received_ns),
            _ => one.end_ns,
        };
        one.work_ns = end_ns.saturating_sub(ready).max(0);
    }
}

// === impl Step ===

impl Step {
    /// Puts the units in an order in which each can be done.
    fn ordered(number: u64, operations: Vec<Placed>, units: Units) -> Result<Self, StepError> {
        let waits = waits(&operations);
        let Units { places, unmatched } = units;
        let mut unit_of = vec![0_u32; operations.len()];
        for (unit, members) in (0_u32..).zip(places.all()) {
            members.iter().for_each(|place| unit_of[at(*place)] = unit);
        }
        // Which units wait for each one, and for how many each waits.
        let waiting = |place: usize| waits.of(place).iter().map(move |before| (*before, place));
        let pairs = (0..operations.len()).flat_map(waiting);
        let next = Lists::of_pairs(
            places.count(),
            pairs.clone().map(|(before, place)| (unit_of[at(before)], unit_of[place])),
        );
        let mut due = vec![0_u32; places.count()];
        pairs.for_each(|(_, place)| due[at(unit_of[place])] += 1);
        let mut ready: Vec<u32> =
            (0_u32..).zip(&due).filter(|(_, due)| **due == 0).map(|one| one.0).collect();
        let mut ordered = Lists::default();
        let mut done = 0;
        while let Some(unit) = ready.get(done).copied() {
            done += 1;
            places.of(at(unit)).iter().for_each(|place| ordered.push(*place));
            ordered.end();
            for later in next.of(at(unit)) {
                due[at(*later)] -= 1;
                if due[at(*later)] == 0 {
                    ready.push(*later);
                }
            }
        }
        let left = operations.len() - ordered.places();
        if left > 0 {
            return Err(StepError::Circle { operations: left });
        }
        let graph = Graph { operations, units: ordered, waits, unmatched };
        Ok(Self { number, graph: Arc::new(graph) })
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Its operations, by rank and then in the order in which they began.
    #[must_use]
    pub fn operations(&self) -> &[Placed] {
        &self.graph.operations
    }

    /// Communications whose other ends are missing. Their durations hold waits that cannot be distinguished from work.
    #[must_use]
    pub fn unmatched(&self) -> usize {
        self.graph.unmatched
    }

    /// The operations that end together, a list each: one computation, or all of a communication.
    pub fn units(&self) -> impl Iterator<Item = &[u32]> {
        self.graph.units.all()
    }

    /// The operations of its rank that the one at `place` waits for.
    #[must_use]
    pub fn waits_of(&self, place: usize) -> &[u32] {
        self.graph.waits.of(place)
    }

    /// How long the step took: from the first beginning to the last end.
    #[must_use]
    pub fn time_ns(&self) -> i64 {
        let first = self.graph.operations.iter().map(|one| one.start_ns).min().unwrap_or(0);
        let last = self.graph.operations.iter().map(|one| one.end_ns).max().unwrap_or(0);
        last.saturating_sub(first)
    }

    /// How long the step took by the clock of the rank that needed the most time.
    #[must_use]
    pub fn longest_ns(&self) -> i64 {
        let of_ranks = self.graph.operations.chunk_by(|one, next| one.rank == next.rank);
        let times = of_ranks.map(|of_rank| {
            let last = of_rank.iter().map(|one| one.end_ns).max().unwrap_or(0);
            last.saturating_sub(of_rank[0].start_ns)
        });
        times.max().unwrap_or(0)
    }

    /// How long the step would take, in nanoseconds, if each operation took what `work` says from when it can begin
    /// and everything began as soon as it can. All ranks begin the step together.
    pub fn replay(&self, work: impl Fn(&Placed) -> f64) -> f64 {
        let [time] = self.replays(|one| [work(one)]);
        time
    }

    /// The same of several replays at once: to walk through the step costs more than to add.
    pub(crate) fn replays<const N: usize>(&self, work: impl Fn(&Placed) -> [f64; N]) -> [f64; N] {
        let operations = &self.graph.operations;
        let mut ends = vec![[0.0_f64; N]; operations.len()];
        let mut last = [0.0_f64; N];
        for unit in self.units() {
            let mut ready = [0.0_f64; N];
            for place in unit {
                for before in self.graph.waits.of(at(*place)) {
                    later(&mut ready, &ends[at(*before)]);
                }
            }
            for place in unit {
                let mut end = work(&operations[at(*place)]);
                end.iter_mut().zip(&ready).for_each(|(end, ready)| *end += ready);
                ends[at(*place)] = end;
                later(&mut last, &end);
            }
        }
        last
    }
}

/// Moves each time to another one that is later.
fn later<const N: usize>(times: &mut [f64; N], others: &[f64; N]) {
    times.iter_mut().zip(others).for_each(|(time, other)| *time = time.max(*other));
}

/// What each operation waits for within its rank.
fn waits(operations: &[Placed]) -> Lists {
    let mut waits = Lists::default();
    let mut first = 0;
    let mut times: Vec<(i64, i64)> = Vec::new();
    for of_rank in operations.chunk_by(|one, next| one.rank == next.rank) {
        times.clear();
        times.extend(of_rank.iter().map(|one| (one.start_ns, one.end_ns)));
        let mut begun = 0;
        order::waits(&times, |one, before| {
            (begun..one).for_each(|_| waits.end());
            begun = one;
            waits.push(u32::try_from(first + before).expect("at most MAX_OPERATIONS"));
        });
        (begun..times.len()).for_each(|_| waits.end());
        first += of_rank.len();
    }
    waits
}
