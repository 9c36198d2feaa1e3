//! Takes the stacks of workers that seem to hang, in a process of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_autopsy::evidence::ProcessEvidence;
use telltale_autopsy::request::{TakeRequest, Taken};
use telltale_autopsy::standing::{BegunCollective, ProcessStanding};
use telltale_cluster::epoch::Epoch;
use telltale_schema::text::with_causes;
use telltale_wire::cluster::message;
use tokio::sync::mpsc;

use super::Driver;
use crate::examination::NodeStandings;
use crate::intake::WorkerProcess;
use crate::protocol::encode;
use crate::readers::Format;
use crate::readers::trigger::ask_for_dumps;
use telltale_cluster::agent::AgentInput;
use telltale_cluster::rank::Rank;
use telltale_cluster::tracking::progress::LatestCollective;

/// The time between two samples where there was none at half the timeout.
const PAUSE: Duration = Duration::from_secs(1);

/// One examination that is asked for.
#[derive(Debug)]
struct Wanted {
    epoch: Epoch,
    /// Whether it is for the last time, so that it is reported where workers stand.
    reports: bool,
    workers: Vec<WorkerProcess>,
    collectives: Vec<LatestCollective>,
}

/// Takes samples, one examination after the other.
#[derive(Debug)]
pub(super) struct Examiner {
    wanted: mpsc::Sender<Wanted>,
    /// Directories of the Flight Recorder's dumps.
    dumps: Vec<PathBuf>,
    done: mpsc::Receiver<NodeStandings>,
    /// Where workers stand, until that is sent.
    unsent: Option<NodeStandings>,
}

impl Driver {
    /// Has the workers of an epoch examined.
    pub(super) fn examine(&self, epoch: Epoch, reports: bool) {
        let workers = self.worker_processes();
        for directory in &self.examiner.dumps {
            ask_for_dumps(directory, workers.iter().map(|worker| worker.rank));
        }
        let collectives = self.intake.latest_collectives();
        self.examiner.examine(Wanted { epoch, reports, workers, collectives });
    }

    /// The workers of the epoch that runs, by their processes.
    pub(super) fn worker_processes(&self) -> Vec<WorkerProcess> {
        let Some(scope) = &self.scope else { return Vec::new() };
        let first = scope.ranks.start;
        let processes = self.supervisor.processes().filter_map(|(local, pid)| {
            let pid = u32::try_from(pid.as_raw_nonzero().get()).ok()?;
            Some(WorkerProcess { rank: Rank(first + local.0), pid })
        });
        processes.collect()
    }

    /// Takes in where workers stand that seem to hang; the machine says when that is sent.
    pub(super) fn take_standings(&mut self, found: NodeStandings) {
        let epoch = found.epoch;
        self.examiner.unsent = Some(found);
        self.step(AgentInput::Examined { epoch });
    }
}

impl Examiner {
    /// Starts the thread that waits for the processes, and ends with this; `program` has the command that takes evidence.
    pub(super) fn start(program: PathBuf, readers: &[(Format, PathBuf)]) -> Self {
        // The first sample, and the second one that is asked for while it is taken.
        let (wanted, mut to_do) = mpsc::channel::<Wanted>(2);
        let (to_driver, done) = mpsc::channel(2);
        let thread = std::thread::Builder::new().name("examiner".to_owned());
        // Without it nothing is found, and workers go on.
        let _ = thread.spawn(move || {
            let mut earlier = None;
            while let Some(wanted) = to_do.blocking_recv() {
                if let Some(standings) = examine(&program, wanted, &mut earlier)
                    && to_driver.blocking_send(standings).is_err()
                {
                    return;
                }
            }
        });
        let dumps = readers.iter().filter(|(format, _)| *format == Format::FlightRecorder);
        let dumps = dumps.map(|(_, path)| path.clone()).collect();
        Self { wanted, dumps, done, unsent: None }
    }

    /// Where workers stand, once.
    pub(super) fn take_unsent(&mut self) -> message::Standings {
        self.unsent.take().map(|found| encode::standings(&found)).unwrap_or_default()
    }

    /// Asks for an examination; more than two at once are not taken.
    fn examine(&self, wanted: Wanted) {
        let _ = self.wanted.try_send(wanted);
    }

    /// What the last one has found.
    pub(super) async fn found(&mut self) -> NodeStandings {
        match self.done.recv().await {
            Some(standings) => standings,
            // It has ended, so nothing is found any more.
            None => std::future::pending().await,
        }
    }
}

/// The samples that were taken earlier, of which epoch.
type Earlier = Option<(Epoch, Vec<ProcessEvidence>)>;

fn examine(program: &Path, wanted: Wanted, earlier: &mut Earlier) -> Option<NodeStandings> {
    let Wanted { epoch, reports, workers, collectives } = wanted;
    let before = earlier.take().filter(|(sampled, _)| *sampled == epoch && reports);
    let samples = if reports && before.is_none() { 2 } else { 1 };
    let pids = workers.iter().map(|worker| worker.pid).collect();
    let taken = TakeRequest { pids, samples, pause: PAUSE }.send(program.to_owned());
    let Taken { mut processes, refused } = match taken {
        Ok(taken) => taken,
        Err(error) => {
            let missing = vec![with_causes(&error)];
            return reports.then(|| NodeStandings { epoch, ranks: Vec::new(), missing });
        }
    };
    for process in &mut processes {
        let rank = workers.iter().find(|worker| worker.pid == process.pid);
        process.rank = rank.map(|worker| worker.rank.0);
    }
    if !reports {
        *earlier = Some((epoch, processes));
        return None;
    }
    let before = before.map(|(_, processes)| processes).unwrap_or_default();
    let mut standings = NodeStandings { epoch, ranks: Vec::new(), missing: Vec::new() };
    for process in processes {
        standings.missing.extend(process.missing.iter().map(ToString::to_string));
        let whole = process.after(&before);
        let standing = ProcessStanding::of(&whole);
        standings.ranks.extend(standing.map(|standing| ProcessStanding {
            collectives: of_rank(&collectives, standing.rank),
            ..standing
        }));
    }
    standings.missing.extend(refused.into_iter().map(|(_, why)| why));
    standings.missing.dedup();
    Some(standings)
}

/// The latest collectives of a rank.
fn of_rank(collectives: &[LatestCollective], rank: Option<u32>) -> Vec<BegunCollective> {
    let mut own: Vec<&LatestCollective> =
        collectives.iter().filter(|one| Some(one.rank.0) == rank).collect();
    // Those that hold the rank come first, where not all are sent.
    own.sort_by_key(|one| one.has_ended);
    own.into_iter()
        .map(|one| BegunCollective {
            group: one.group.number(),
            number: one.number,
            name: one.collective.name().to_owned(),
            size: one.size,
            has_ended: one.has_ended,
        })
        .collect()
}
