//! The shipped detector, over a job as any detector gets it.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

use telltale_cluster::detection::DetectionSettings;
use telltale_cluster::intake::{Intake, Scope};
use telltale_cluster::lookout::{Lookout, Work};
use telltale_cluster::node::NodeName;
use telltale_cluster::rank::{RankMap, Slot, WorkersPerNode};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Suspects, VerdictKind};

use super::second::EPOCH;
use super::stream::{DetectorVerdict, Heard, JobLine, line};

/// Reads a job, and writes who is slow, each once.
///
/// # Errors
/// When a line is none of a job, or it cannot be read or written.
pub fn detect(from: impl BufRead, to: &mut impl Write) -> io::Result<()> {
    let mut lines = from.lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut detector = Detector::new(&serde_json::from_str(&first)?)?;
    let mut now = 0.0;
    for line in lines {
        let heard: Heard = serde_json::from_str(&line?)?;
        if heard.at > now {
            detector.evaluate(now, to)?;
            now = heard.at;
        }
        detector.hear(&heard)?;
    }
    detector.evaluate(now, to)
}

struct Detector {
    lookout: Lookout,
    nodes: Vec<NodeName>,
    intakes: Vec<Intake>,
    workers: u32,
    said: BTreeSet<Vec<Suspect>>,
}

impl Detector {
    fn new(job: &JobLine) -> io::Result<Self> {
        let nodes: Option<Vec<NodeName>> =
            job.nodes.iter().map(|name| NodeName::new(name).ok()).collect();
        let nodes = nodes.ok_or_else(|| refused("a node's name is none"))?;
        let count = u32::try_from(nodes.len()).map_err(|_| refused("too many nodes"))?;
        let workers = WorkersPerNode::new(job.workers_per_node)
            .ok_or_else(|| refused("workers_per_node is 1 to 1024"))?;
        let mut map = RankMap::vacant(count, workers);
        for (slot, node) in (0..count).zip(&nodes) {
            let _ = map.fill(Slot(slot), node);
        }
        let workers = workers.get();
        let world_size = count.saturating_mul(workers);
        let intakes = (0..count).map(|node| {
            let mut intake = Intake::new();
            let ranks = node * workers..(node + 1) * workers;
            intake.begin(Scope { epoch: EPOCH, world_size, ranks });
            intake
        });
        let mut lookout = Lookout::new(DetectionSettings::default());
        lookout.take(&Work::Ranks { now: moment(0.0), epoch: EPOCH, map: Box::new(map) });
        Ok(Self { lookout, intakes: intakes.collect(), nodes, workers, said: BTreeSet::new() })
    }

    fn hear(&mut self, heard: &Heard) -> io::Result<()> {
        let number = |name: &str| {
            let place = self.nodes.iter().position(|node| node.as_str() == name)?;
            u32::try_from(place).ok()
        };
        let node = number(&heard.node).ok_or_else(|| refused("no node has this name"))?;
        let ranks = node * self.workers..(node + 1) * self.workers;
        let observation =
            heard.second(node, number).observe(ranks, &mut self.intakes[node as usize]);
        let (node, observation) = (self.nodes[node as usize].clone(), Box::new(observation));
        self.lookout.take(&Work::Observed { now: moment(heard.at), node, observation });
        Ok(())
    }

    fn evaluate(&mut self, at: f64, to: &mut impl Write) -> io::Result<()> {
        let evaluate = Work::Evaluate { now: moment(at), metrics: false };
        let verdicts = self.lookout.take(&evaluate).map(|seen| seen.verdicts).unwrap_or_default();
        for one in verdicts {
            let is_slow = [VerdictKind::SlowNode, VerdictKind::SlowLink].contains(&one.kind);
            let suspects = match &one.suspects {
                Suspects::One(suspect) => vec![suspect.clone()],
                Suspects::Ambiguous(_) => one.suspects.all().to_vec(),
            };
            if is_slow && self.said.insert(suspects.clone()) {
                line(to, &DetectorVerdict::new(at, &suspects, one.confidence))?;
            }
        }
        to.flush()
    }
}

fn moment(seconds: f64) -> Moment {
    Moment::from_ns((seconds * 1e9) as u64)
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
