//! The published traces as steps.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use telltale_steps::{Kinds, Nature, Operation, Partners, Step, StepBuilder};

/// A job: its steps, and where each rank is in it.
pub(crate) struct Job {
    pub(crate) kinds: Kinds,
    pub(crate) steps: Vec<Step>,
    pub(crate) stages: u32,
}

/// One line of a trace.
struct Line<'text> {
    step: u64,
    stage: u32,
    replica: u32,
    kind: &'text str,
    start_ns: i64,
    end_ns: i64,
}

pub(crate) fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/stragglers").join(name)
}

impl Job {
    /// Reads a trace. `host` says whose clock a rank reads and by how much that is ahead.
    pub(crate) fn read(name: &str, ahead: impl Fn(u32) -> (u32, i64)) -> Self {
        let file = File::open(data(&format!("{name}.csv.gz"))).unwrap();
        let text: Vec<String> =
            BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap).collect();
        let lines: Vec<Line<'_>> = text[1..].iter().map(|line| Line::parse(line)).collect();
        let stages = lines.iter().map(|line| line.stage).max().unwrap() + 1;
        let replicas = lines.iter().map(|line| line.replica).max().unwrap() + 1;
        let mut kinds = Kinds::default();
        let mut steps = Vec::new();
        for of_step in lines.chunk_by(|one, next| one.step == next.step) {
            let mut builder = StepBuilder::new(of_step[0].step);
            for line in of_step {
                let rank = line.replica * stages + line.stage;
                let mut operation = line.operation(&mut kinds, stages, replicas);
                operation.start_ns += ahead(rank).1;
                operation.end_ns += ahead(rank).1;
                builder.add(rank, operation);
            }
            steps.push(builder.build(|rank| ahead(rank).0, |_| None).unwrap());
        }
        Self { kinds, steps, stages }
    }

    pub(crate) fn stage(&self, rank: u32) -> u32 {
        rank % self.stages
    }

    pub(crate) fn replica(&self, rank: u32) -> u32 {
        rank / self.stages
    }
}

impl<'text> Line<'text> {
    fn parse(line: &'text str) -> Self {
        let fields: Vec<&str> = line.split(',').collect();
        let [step, _rank, stage, replica, kind, _seq, _micro_batch, start, duration] = fields[..]
        else {
            panic!("{line}");
        };
        let start_ns = start.parse::<i64>().unwrap() * 1000;
        Self {
            step: step.parse().unwrap(),
            stage: stage.parse().unwrap(),
            replica: replica.parse().unwrap(),
            kind,
            start_ns,
            end_ns: start_ns + duration.parse::<i64>().unwrap() * 1000,
        }
    }

    /// The operation, with the partners that a job of stages and data-parallel replicas has.
    fn operation(&self, kinds: &mut Kinds, stages: u32, replicas: u32) -> Operation {
        let rank = |stage: u32| self.replica * stages + stage;
        let (first, last) = (self.stage == 0, self.stage + 1 == stages);
        let partners = match self.kind {
            "forward-send" if !last => Partners::To { rank: rank(self.stage + 1), group: 1 },
            "forward-recv" if !first => Partners::From { rank: rank(self.stage - 1), group: 1 },
            "backward-send" if !first => Partners::To { rank: rank(self.stage - 1), group: 2 },
            "backward-recv" if !last => Partners::From { rank: rank(self.stage + 1), group: 2 },
            "params-all-gather" => {
                Partners::All { group: 1000 + u64::from(self.stage), members: replicas }
            }
            "grads-reduce-scatter" => {
                Partners::All { group: 2000 + u64::from(self.stage), members: replicas }
            }
            "embedding-grads-all-reduce" => {
                Partners::All { group: 3000 + u64::from(self.replica), members: 2 }
            }
            "optimizer-clip-main-grad" => Partners::All { group: 3, members: stages * replicas },
            _ => Partners::None,
        };
        let communicates =
            !["forward-compute", "backward-compute", "gc", "optimizer"].contains(&self.kind);
        let nature = if communicates { Nature::Communication } else { Nature::Compute };
        let kind = kinds.kind(self.kind, nature).unwrap();
        Operation { kind, start_ns: self.start_ns, end_ns: self.end_ns, partners }
    }
}
