//! Runs one training step: ranks that compute, and wait for each other.

use std::collections::BTreeMap;

use super::program::{Action, Program, Transfer};

/// How long things take, in microseconds.
pub(super) trait Times {
    fn compute(&mut self, rank: u32, usual_us: f64) -> f64;
    fn link(&mut self, from: u32, to: u32) -> f64;
    /// A collective of these ranks, once all are there.
    fn collective(&mut self, ranks: &[u32]) -> f64;
}

/// What a rank has done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) rank: u32,
    pub(super) what: RunSubject,
    pub(super) start_us: f64,
    pub(super) end_us: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum RunSubject {
    Compute(&'static str),
    /// With how long the link itself took.
    Sent {
        to: u32,
        link_us: f64,
    },
    Received {
        from: u32,
    },
    Collective(usize),
}

/// One end of a transfer: (from, to, whether it is the sender's, how many-th).
type End = (u32, u32, bool, usize);

struct Run<'a, T> {
    program: &'a Program,
    times: &'a mut T,
    done: Vec<Done>,
    next: Vec<usize>,
    /// What each rank has begun and waits for.
    begun: Vec<Option<Vec<End>>>,
    /// Since when each end is ready.
    ready: BTreeMap<End, f64>,
    counts: BTreeMap<(u32, u32, bool), usize>,
    /// How long each transfer takes, once it is known.
    took: BTreeMap<(u32, u32, usize), f64>,
    /// Since when each rank of a group is there, and how long it takes.
    meets: BTreeMap<usize, (BTreeMap<u32, f64>, Option<f64>)>,
}

/// Runs a step from these times of the ranks on, which then are those of its end.
pub(super) fn run(program: &Program, now: &mut [f64], times: &mut impl Times) -> Vec<Done> {
    let ranks = program.actions.len();
    let mut run = Run {
        program,
        times,
        done: Vec::new(),
        next: vec![0; ranks],
        begun: vec![None; ranks],
        ready: BTreeMap::new(),
        counts: BTreeMap::new(),
        took: BTreeMap::new(),
        meets: BTreeMap::new(),
    };
    while run.round(now) {}
    let is_done = run.next.iter().zip(&program.actions).all(|(next, all)| *next == all.len());
    assert!(is_done, "a deadlock: {:?}", run.next);
    run.done
}

impl<T: Times> Run<'_, T> {
    /// Has each rank do the next thing if it can; says whether any could.
    fn round(&mut self, now: &mut [f64]) -> bool {
        let mut moved = false;
        let program = self.program;
        for (rank, now) in (0_u32..).zip(now) {
            let actions = &program.actions[rank as usize];
            while let Some(action) = actions.get(self.next[rank as usize]) {
                let end = match action {
                    Action::Compute(name, usual_us) => {
                        let end = *now + self.times.compute(rank, *usual_us);
                        self.record(rank, RunSubject::Compute(name), *now, end);
                        Some(end)
                    }
                    Action::Exchange(transfers) => self.exchange(rank, *now, transfers),
                    Action::Collective(group) => self.meet(rank, *now, *group),
                };
                let Some(end) = end else { break };
                *now = end;
                self.next[rank as usize] += 1;
                moved = true;
            }
        }
        moved
    }

    fn exchange(&mut self, rank: u32, now: f64, transfers: &[Transfer]) -> Option<f64> {
        let ends = match self.begun[rank as usize].take() {
            Some(ends) => ends,
            None => transfers.iter().map(|one| self.begin(rank, now, *one)).collect(),
        };
        let Some(times) = ends.iter().map(|end| self.over(*end)).collect::<Option<Vec<f64>>>()
        else {
            self.begun[rank as usize] = Some(ends);
            return None;
        };
        for (end, time) in ends.iter().zip(&times) {
            let (from, to, sends, count) = *end;
            let what = match sends {
                true => RunSubject::Sent { to, link_us: self.took[&(from, to, count)] },
                false => RunSubject::Received { from },
            };
            self.record(rank, what, self.ready[end], *time);
        }
        times.into_iter().reduce(f64::max)
    }

    /// When a transfer is over, if both its ends are ready.
    fn over(&mut self, (from, to, _, count): End) -> Option<f64> {
        let [sender, receiver] =
            [true, false].map(|sends| self.ready.get(&(from, to, sends, count)).copied());
        let ready = sender?.max(receiver?);
        let took = match self.took.get(&(from, to, count)) {
            Some(took) => *took,
            None => {
                let took = self.times.link(from, to);
                self.took.insert((from, to, count), took);
                took
            }
        };
        Some(ready + took)
    }

    fn begin(&mut self, rank: u32, now: f64, transfer: Transfer) -> End {
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

    fn meet(&mut self, rank: u32, now: f64, group: usize) -> Option<f64> {
        let ranks = &self.program.groups[group];
        let (ready, took) = self.meets.entry(group).or_default();
        let since = *ready.entry(rank).or_insert(now);
        if ready.len() < ranks.len() {
            return None;
        }
        let took = *took.get_or_insert_with(|| self.times.collective(ranks));
        let end = ready.values().copied().fold(0.0, f64::max) + took;
        self.record(rank, RunSubject::Collective(group), since, end);
        Some(end)
    }

    fn record(&mut self, rank: u32, what: RunSubject, start_us: f64, end_us: f64) {
        self.done.push(Done { rank, what, start_us, end_us });
    }
}
