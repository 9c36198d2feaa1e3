//! What each rank of a job does in a training step, by how jobs are built.

use std::fmt;

/// What a rank does next.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// Computes, under this name, for so many microseconds if nothing is slow.
    Compute(&'static str, f64),
    /// Begins these transfers together, and waits for all of them.
    Exchange(Vec<Transfer>),
    /// Meets all ranks of this group.
    Collective(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Transfer {
    Send(u32),
    Receive(u32),
}

/// A job's training step.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Of each rank, in its order.
    pub(super) actions: Vec<Vec<Action>>,
    /// The ranks of each group.
    pub(super) groups: Vec<Vec<u32>>,
    /// Ranks with the same number do the same work.
    pub(super) alike: Vec<u32>,
}

/// How the ranks of a job depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepShape {
    /// So many replicas compute, then meet.
    DataParallel(u32),
    /// Each rank exchanges with the next and the one before, several times.
    Ring(u32),
    /// All pairs exchange, one after the other.
    Mesh(u32),
    /// A binary tree: sums go up, results come down.
    Tree(u32),
    /// Each rank exchanges with its four neighbours in a torus with so many rows and columns.
    Torus(u32, u32),
    /// The same with many short rounds, for load.
    BusyTorus(u32, u32),
    /// So many stages and replicas; all micro-batches forward, then backward, then replicas meet.
    Pipeline(u32, u32),
    /// The same with stages that have more and less to do.
    Uneven(u32, u32),
}

/// A microsecond is the unit.
const MS: f64 = 1000.0;
const ROUNDS: usize = 3;
const MICRO_BATCHES: usize = 6;
const BUSY_ROUNDS: usize = 6;
const BUSY_MS: f64 = 40.0;

impl StepShape {
    /// All that are run.
    pub const ALL: [Self; 16] = [
        Self::DataParallel(4),
        Self::DataParallel(16),
        Self::Ring(4),
        Self::Ring(8),
        Self::Ring(32),
        Self::Mesh(4),
        Self::Mesh(8),
        Self::Tree(7),
        Self::Tree(31),
        Self::Torus(3, 3),
        Self::Torus(4, 8),
        Self::Pipeline(4, 2),
        Self::Pipeline(4, 8),
        Self::Pipeline(8, 4),
        Self::Uneven(4, 4),
        Self::Uneven(8, 3),
    ];

    /// How many ranks it has, each on a node of its own.
    #[must_use]
    pub const fn ranks(self) -> u32 {
        match self {
            Self::DataParallel(ranks)
            | Self::Ring(ranks)
            | Self::Mesh(ranks)
            | Self::Tree(ranks) => ranks,
            Self::Torus(rows, columns) | Self::BusyTorus(rows, columns) => rows * columns,
            Self::Pipeline(stages, replicas) | Self::Uneven(stages, replicas) => stages * replicas,
        }
    }

    /// Which rank sends to which.
    #[must_use]
    pub fn links(self) -> Vec<(u32, u32)> {
        let program = self.program();
        let mut links: Vec<(u32, u32)> =
            (0..).zip(&program.actions).flat_map(|(rank, actions)| sends(rank, actions)).collect();
        for group in program.groups.iter().filter(|group| group.len() > 1) {
            let next = group.iter().cycle().skip(1);
            links.extend(group.iter().copied().zip(next.copied()));
        }
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Which rank sends to which in a collective alone, where no rank measures it.
    #[must_use]
    pub fn hidden_links(self) -> Vec<(u32, u32)> {
        let program = self.program();
        let open: Vec<(u32, u32)> =
            (0..).zip(&program.actions).flat_map(|(rank, actions)| sends(rank, actions)).collect();
        self.links().into_iter().filter(|link| !open.contains(link)).collect()
    }

    pub(super) fn program(self) -> Program {
        match self {
            Self::DataParallel(ranks) => Program {
                actions: vec![
                    vec![
                        Action::Compute("forward", 100.0 * MS),
                        Action::Compute("backward", 200.0 * MS),
                        Action::Collective(0),
                    ];
                    ranks as usize
                ],
                groups: vec![(0..ranks).collect()],
                alike: vec![0; ranks as usize],
            },
            Self::Ring(ranks) => exchanges(ranks, |rank| {
                let [next, before] = [(rank + 1) % ranks, (rank + ranks - 1) % ranks];
                vec![vec![Transfer::Send(next), Transfer::Receive(before)]]
            }),
            Self::Mesh(ranks) => {
                exchanges(ranks, |rank| (1..ranks).map(|distance| both(rank ^ distance)).collect())
            }
            Self::Torus(rows, columns) => {
                exchanges(rows * columns, |rank| torus(rank, rows, columns))
            }
            Self::BusyTorus(rows, columns) => {
                rounds((BUSY_ROUNDS, BUSY_MS * MS), rows * columns, |rank| {
                    torus(rank, rows, columns)
                })
            }
            Self::Tree(ranks) => tree(ranks),
            Self::Pipeline(stages, replicas) => pipeline(stages, replicas, |_| 1.0),
            Self::Uneven(stages, replicas) => {
                pipeline(stages, replicas, |stage| [1.0, 1.3, 0.8, 1.1][stage as usize % 4])
            }
        }
    }
}

impl fmt::Display for StepShape {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataParallel(ranks) => write!(to, "data parallel {ranks}"),
            Self::Ring(ranks) => write!(to, "ring {ranks}"),
            Self::Mesh(ranks) => write!(to, "mesh {ranks}"),
            Self::Tree(ranks) => write!(to, "tree {ranks}"),
            Self::Torus(rows, columns) => write!(to, "torus {rows} x {columns}"),
            Self::BusyTorus(rows, columns) => write!(to, "busy torus {rows} x {columns}"),
            Self::Pipeline(stages, replicas) => write!(to, "{replicas} pipelines of {stages}"),
            Self::Uneven(stages, replicas) => write!(to, "{replicas} uneven pipelines of {stages}"),
        }
    }
}

fn sends(rank: u32, actions: &[Action]) -> Vec<(u32, u32)> {
    let transfers = actions.iter().filter_map(|action| match action {
        Action::Exchange(transfers) => Some(transfers),
        _ => None,
    });
    let sends = transfers.flatten().filter_map(|one| match one {
        Transfer::Send(to) => Some((rank, *to)),
        Transfer::Receive(_) => None,
    });
    sends.collect()
}

fn both(other: u32) -> Vec<Transfer> {
    vec![Transfer::Send(other), Transfer::Receive(other)]
}

/// In each round every rank computes and has these exchanges.
fn exchanges(ranks: u32, of: impl Fn(u32) -> Vec<Vec<Transfer>>) -> Program {
    rounds((ROUNDS, 80.0 * MS), ranks, of)
}

/// So many rounds, in each of which a rank computes for so long.
fn rounds(
    (rounds, compute_us): (usize, f64),
    ranks: u32,
    of: impl Fn(u32) -> Vec<Vec<Transfer>>,
) -> Program {
    let round = |rank| {
        let compute = std::iter::once(Action::Compute("work", compute_us));
        compute.chain(of(rank).into_iter().map(Action::Exchange))
    };
    let actions = |rank| (0..rounds).flat_map(|_| round(rank)).collect();
    Program {
        actions: (0..ranks).map(actions).collect(),
        groups: Vec::new(),
        alike: vec![0; ranks as usize],
    }
}

fn torus(rank: u32, rows: u32, columns: u32) -> Vec<Vec<Transfer>> {
    let (row, column) = (rank / columns, rank % columns);
    let at = |row: u32, column: u32| (row % rows) * columns + column % columns;
    // To one side while it comes from the other.
    let ways = [
        (at(row, column + 1), at(row, column + columns - 1)),
        (at(row, column + columns - 1), at(row, column + 1)),
        (at(row + 1, column), at(row + rows - 1, column)),
        (at(row + rows - 1, column), at(row + 1, column)),
    ];
    ways.into_iter().map(|(to, from)| vec![Transfer::Send(to), Transfer::Receive(from)]).collect()
}

fn tree(ranks: u32) -> Program {
    let children = |rank: u32| {
        [2 * rank + 1, 2 * rank + 2].into_iter().filter(|child| *child < ranks).collect::<Vec<_>>()
    };
    let of_rank = |rank: u32| {
        let above = (rank > 0).then(|| (rank - 1) / 2);
        let mut actions = Vec::new();
        for _ in 0..ROUNDS {
            actions.push(Action::Compute("work", 80.0 * MS));
            let below = children(rank);
            if !below.is_empty() {
                actions
                    .push(Action::Exchange(below.iter().copied().map(Transfer::Receive).collect()));
            }
            if let Some(above) = above {
                actions.push(Action::Exchange(vec![Transfer::Send(above)]));
                actions.push(Action::Exchange(vec![Transfer::Receive(above)]));
            }
            if !below.is_empty() {
                actions.push(Action::Exchange(below.into_iter().map(Transfer::Send).collect()));
            }
        }
        actions
    };
    Program {
        actions: (0..ranks).map(of_rank).collect(),
        groups: Vec::new(),
        alike: (0..ranks).map(|rank| (rank + 1).ilog2()).collect(),
    }
}

fn pipeline(stages: u32, replicas: u32, work: impl Fn(u32) -> f64) -> Program {
    let of_rank = |rank: u32| {
        let stage = rank % stages;
        let (first, last) = (stage == 0, stage + 1 == stages);
        let one = |transfer| Action::Exchange(vec![transfer]);
        let mut actions = Vec::new();
        for _ in 0..MICRO_BATCHES {
            (!first).then(|| actions.push(one(Transfer::Receive(rank - 1))));
            actions.push(Action::Compute("forward", 15.0 * MS * work(stage)));
            (!last).then(|| actions.push(one(Transfer::Send(rank + 1))));
        }
        for _ in 0..MICRO_BATCHES {
            (!last).then(|| actions.push(one(Transfer::Receive(rank + 1))));
            actions.push(Action::Compute("backward", 30.0 * MS * work(stage)));
            (!first).then(|| actions.push(one(Transfer::Send(rank - 1))));
        }
        actions.push(Action::Collective(stage as usize));
        actions
    };
    let ranks = stages * replicas;
    let group = |stage| (0..replicas).map(|replica| replica * stages + stage).collect();
    Program {
        actions: (0..ranks).map(of_rank).collect(),
        groups: (0..stages).map(group).collect(),
        alike: (0..ranks).map(|rank| rank % stages).collect(),
    }
}
