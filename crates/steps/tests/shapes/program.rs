//! Jobs that are made up: what each rank does in a step, run by a model of ranks that wait for each other.

use std::collections::BTreeMap;

use telltale_steps::{Kinds, Nature, Operation, Partners, Step, StepBuilder};

/// What a rank does next.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Computes for so long.
    Compute(&'static str, i64),
    /// The same, unmeasured.
    Unmeasured(i64),
    /// Begins these transfers together, and waits for all of them.
    Exchange(Vec<Transfer>),
    /// Meets all ranks of the group, which are so many.
    Collective(u64, u32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Transfer {
    Send(u32),
    Receive(u32),
}

/// How long things take: a computation by rank, kind, usual time and step; a transfer by its ends.
pub(crate) struct Machine<'a> {
    pub(crate) compute: &'a dyn Fn(u32, i64, u64) -> i64,
    pub(crate) link: &'a dyn Fn(u32, u32) -> i64,
}

/// How long a collective takes once all are there.
const COLLECTIVE_NS: i64 = 1_000_000;
/// By how much each host's clock is ahead of the one before.
const AHEAD_NS: i64 = 3_600_000_000_000;

/// Runs `count` steps in which each rank does what `actions` says, one step after the other. Each rank is on a host of
/// its own.
pub(crate) fn run(
    actions: &[Vec<Action>],
    count: u64,
    machine: &Machine<'_>,
) -> (Vec<Step>, Kinds) {
    let mut kinds = Kinds::default();
    let mut clocks = vec![0_i64; actions.len()];
    let (mut steps, mut ends) = (Vec::new(), BTreeMap::new());
    for number in 0..count {
        let mut run = Run {
            number,
            machine,
            kinds: &mut kinds,
            builder: StepBuilder::new(number),
            next: vec![0; actions.len()],
            begun: vec![None; actions.len()],
            ready: BTreeMap::new(),
            counts: BTreeMap::new(),
            meets: BTreeMap::new(),
        };
        while run.round(actions, &mut clocks) {}
        let is_done = run.next.iter().zip(actions).all(|(next, all)| *next == all.len());
        assert!(is_done, "a deadlock: {:?}", run.next);
        let mut builder = run.builder;
        let ended = builder.ends();
        builder.add_gaps(&std::mem::replace(&mut ends, ended), &mut kinds);
        steps.push(builder.build(|rank| rank, |_| None).unwrap());
    }
    (steps, kinds)
}

/// One end of a transfer: (from, to, whether it is the sender's, how many-th).
type End = (u32, u32, bool, usize);

struct Run<'a> {
    number: u64,
    machine: &'a Machine<'a>,
    kinds: &'a mut Kinds,
    builder: StepBuilder,
    next: Vec<usize>,
    /// What each rank has begun and waits for.
    begun: Vec<Option<Vec<End>>>,
    /// Since when each end is ready.
    ready: BTreeMap<End, i64>,
    counts: BTreeMap<(u32, u32, bool), usize>,
    /// Of each collective, since when each rank is there.
    meets: BTreeMap<(u64, usize), BTreeMap<u32, i64>>,
}

impl Run<'_> {
    /// Has each rank do the next thing if it can; says whether any could.
    fn round(&mut self, actions: &[Vec<Action>], clocks: &mut [i64]) -> bool {
        let mut moved = false;
        for (rank, (actions, now)) in (0_u32..).zip(actions.iter().zip(clocks)) {
            let next = self.next[rank as usize];
            let end = match actions.get(next) {
                None => None,
                Some(Action::Compute(name, ns)) => {
                    let end = *now + (self.machine.compute)(rank, *ns, self.number);
                    self.record(rank, name, Nature::Compute, (*now, end), Partners::None);
                    Some(end)
                }
                Some(Action::Unmeasured(ns)) => {
                    Some(*now + (self.machine.compute)(rank, *ns, self.number))
                }
                Some(Action::Exchange(transfers)) => self.exchange(rank, *now, transfers),
                Some(Action::Collective(group, members)) => {
                    let before =
                        |one: &&Action| matches!(one, Action::Collective(of, _) if of == group);
                    let number = actions[..next].iter().filter(before).count();
                    self.meet(rank, *now, (*group, number), *members)
                }
            };
            if let Some(end) = end {
                *now = end;
                self.next[rank as usize] += 1;
                moved = true;
            }
        }
        moved
    }

    fn exchange(&mut self, rank: u32, now: i64, transfers: &[Transfer]) -> Option<i64> {
        let ends = match self.begun[rank as usize].take() {
            Some(ends) => ends,
            None => transfers.iter().map(|one| self.begin(rank, now, *one)).collect(),
        };
        let other = |(from, to, sends, count): End| (from, to, !sends, count);
        let done = |end: &End| {
            let ready = (*self.ready.get(end)?).max(*self.ready.get(&other(*end))?);
            Some(ready + (self.machine.link)(end.0, end.1))
        };
        let Some(times) = ends.iter().map(done).collect::<Option<Vec<i64>>>() else {
            self.begun[rank as usize] = Some(ends);
            return None;
        };
        for ((from, to, sends, count), time) in ends.iter().zip(&times) {
            let (name, partners) = match sends {
                true => ("send", Partners::To { rank: *to, group: 0 }),
                false => ("recv", Partners::From { rank: *from, group: 0 }),
            };
            let since = self.ready[&(*from, *to, *sends, *count)];
            self.record(rank, name, Nature::Communication, (since, *time), partners);
        }
        times.into_iter().max()
    }

    fn begin(&mut self, rank: u32, now: i64, transfer: Transfer) -> End {
        let (from, to, sends) = match transfer {
            Transfer::Send(to) => (rank, to, true),
            Transfer::Receive(from) => (from, rank, false),
        };
        let count = self.counts.entry((from, to, sends)).or_default();
        *count += 1;
        let end = (from, to, sends, *count);
        self.ready.insert(end, now);
        end
    }

    fn meet(&mut self, rank: u32, now: i64, which: (u64, usize), members: u32) -> Option<i64> {
        let ready = self.meets.entry(which).or_default();
        let since = *ready.entry(rank).or_insert(now);
        if ready.len() < members as usize {
            return None;
        }
        let end = *ready.values().max()? + COLLECTIVE_NS;
        let partners = Partners::All { group: which.0, members };
        self.record(rank, "all_reduce", Nature::Communication, (since, end), partners);
        Some(end)
    }

    fn record(
        &mut self,
        rank: u32,
        name: &str,
        nature: Nature,
        times: (i64, i64),
        partners: Partners,
    ) {
        let kind = self.kinds.kind(name, nature).unwrap();
        let ahead = i64::from(rank) * AHEAD_NS;
        let (start_ns, end_ns) = (times.0 + ahead, times.1 + ahead);
        self.builder.add(rank, Operation { kind, start_ns, end_ns, partners });
    }
}
