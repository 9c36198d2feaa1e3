//! Detection beside the coordinator: a thread of its own, so that a long evaluation delays no order.
//!
//! It decides nothing. Reports that it is too busy for are counted and left out.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc;

use telltale_cluster::detection::DetectionSettings;
use telltale_cluster::lookout::{Lookout, LookoutState, Work};

/// Reports and looks that may wait for the thread: some seconds of ten thousand nodes.
const MAX_WORK: usize = 65_536;
/// How long reports are left to gather when all were taken: looks come once a second, and to be woken for each
/// of ten thousand reports costs as much as to take it.
const REST: Duration = Duration::from_millis(5);
/// Answers that may wait for the coordinator's task.
const MAX_SEEN: usize = 16;

/// The coordinator's ends of the thread's queues.
#[derive(Debug)]
pub(super) struct Detection {
    work: mpsc::Sender<Work>,
    seen: mpsc::Receiver<LookoutState>,
}

impl Detection {
    /// Starts the thread. It ends when this is dropped.
    pub(super) fn start(settings: DetectionSettings) -> io::Result<Self> {
        let (to_thread, work) = mpsc::channel(MAX_WORK);
        let (to_task, seen) = mpsc::channel(MAX_SEEN);
        let thread = std::thread::Builder::new().name("detection".to_owned());
        thread.spawn(move || run(Lookout::new(settings), work, &to_task))?;
        Ok(Self { work: to_thread, seen })
    }

    /// Gives the thread something to do; says whether there was room.
    pub(super) fn submit(&self, work: Work) -> bool {
        self.work.try_send(work).is_ok()
    }

    /// What it has seen. Ends only when the thread has.
    pub(super) async fn seen(&mut self) -> Option<LookoutState> {
        self.seen.recv().await
    }
}

fn run(mut lookout: Lookout, mut work: mpsc::Receiver<Work>, to_task: &mpsc::Sender<LookoutState>) {
    while let Some(one) = work.blocking_recv() {
        let is_report = matches!(one, Work::Observed { .. });
        if let Some(seen) = lookout.take(&one)
            && to_task.blocking_send(seen).is_err()
        {
            return;
        }
        if is_report && work.is_empty() {
            std::thread::sleep(REST);
        }
    }
}
