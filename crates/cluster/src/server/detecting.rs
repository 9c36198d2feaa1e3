//! Detection beside the coordinator: a thread of its own, so that a long look delays no order.
//!
//! It decides nothing. Reports that it is too busy for are counted and left out.

use std::io;

use tokio::sync::mpsc;

use crate::detection::{DetectionCounts, Detector, LatencyMatrix, Settings};
use crate::epoch::Epoch;
use crate::incident::IncidentId;
use crate::node::NodeName;
use crate::observation::Observation;
use crate::rank::RankMap;
use crate::time::Moment;
use crate::verdict::{Suspect, Verdict};

/// Reports and looks that may wait for the thread: some seconds of ten thousand nodes.
const MAX_WORK: usize = 65_536;
/// Answers that may wait for the coordinator's task.
const MAX_SEEN: usize = 16;

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Work {
    /// An epoch runs with these ranks.
    Ranks { now: Moment, epoch: Epoch, map: Box<RankMap> },
    /// A report of that epoch.
    Observed { now: Moment, node: NodeName, observation: Observation },
    /// See what is wrong, and send the figures behind it if they are wanted or something is.
    Look { now: Moment, figures: bool },
    /// See a last time what is wrong, before the epoch is over, for this incident.
    LastLook { now: Moment, incident: IncidentId },
}

/// What the thread has seen.
#[derive(Debug)]
pub(super) struct Seen {
    /// In which epoch.
    pub(super) epoch: Epoch,
    /// When.
    pub(super) at: Moment,
    /// For which incident it was asked to look; none, if it was time to.
    pub(super) incident: Option<IncidentId>,
    /// Everything that is wrong.
    pub(super) verdicts: Vec<Verdict>,
    /// The figures behind it.
    pub(super) matrix: Option<LatencyMatrix>,
    /// What was not taken, since the start.
    pub(super) counts: DetectionCounts,
}

/// The coordinator's ends of the thread's queues.
#[derive(Debug)]
pub(super) struct Detection {
    work: mpsc::Sender<Work>,
    seen: mpsc::Receiver<Seen>,
}

impl Detection {
    /// Starts the thread. It ends when this is dropped.
    pub(super) fn start(settings: Settings) -> io::Result<Self> {
        let (to_thread, work) = mpsc::channel(MAX_WORK);
        let (to_task, seen) = mpsc::channel(MAX_SEEN);
        let thread = std::thread::Builder::new().name("detection".to_owned());
        thread.spawn(move || run(Detector::new(settings), work, &to_task))?;
        Ok(Self { work: to_thread, seen })
    }

    /// Gives the thread something to do; says whether there was room.
    pub(super) fn tell(&self, work: Work) -> bool {
        self.work.try_send(work).is_ok()
    }

    /// What it has seen. Ends only when the thread has.
    pub(super) async fn seen(&mut self) -> Option<Seen> {
        self.seen.recv().await
    }
}

fn run(mut detector: Detector, mut work: mpsc::Receiver<Work>, to_task: &mpsc::Sender<Seen>) {
    let mut current = None;
    while let Some(one) = work.blocking_recv() {
        let (at, incident, figures) = match one {
            Work::Ranks { now, epoch, map } => {
                detector.set_ranks(now, &map);
                current = Some(epoch);
                continue;
            }
            Work::Observed { now, node, observation } => {
                detector.observe(now, &node, &observation);
                continue;
            }
            Work::Look { now, figures } => (now, None, figures),
            Work::LastLook { now, incident } => (now, Some(incident), true),
        };
        let Some(epoch) = current else { continue };
        let verdicts = match incident {
            None => detector.look(at),
            Some(_) => detector.look_a_last_time(at),
        };
        let figures = figures || !verdicts.is_empty();
        let matrix = figures.then(|| detector.matrix(&suspects(&verdicts)));
        let counts = detector.counts();
        if to_task.blocking_send(Seen { epoch, at, incident, verdicts, matrix, counts }).is_err() {
            return;
        }
    }
}

/// Everybody who is suspected, the surest first.
fn suspects(verdicts: &[Verdict]) -> Vec<NodeName> {
    let mut sorted: Vec<&Verdict> = verdicts.iter().collect();
    sorted.sort_by(|left, right| right.confidence.total_cmp(&left.confidence));
    let all = sorted.into_iter().flat_map(|verdict| verdict.suspects.all());
    all.flat_map(Suspect::nodes).cloned().collect()
}
