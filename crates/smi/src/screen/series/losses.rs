//! The losses that trainings reported since the view was opened.

use std::collections::HashMap;

use telltale_schema::snapshot::Snapshot;

use super::{GraphSeries, MAX_PROCESSES};
use crate::screen::machines::Machines;
use crate::screen::row::Who;
use crate::training::TrainingReport;

/// A series for each training, of so many processes at most.
#[derive(Debug, Default)]
pub(super) struct Losses(HashMap<Who, GraphSeries>);

impl Losses {
    /// Takes note of a snapshot. A process that has gone has no series any more.
    pub(super) fn push(&mut self, snapshot: &Snapshot, machines: &Machines) {
        let mut now: HashMap<Who, Option<f64>> = HashMap::new();
        for (place, process) in snapshot.processes.iter().enumerate() {
            let who = Who::of(process, place, machines);
            let report = TrainingReport::of(process).filter(|_| !matches!(who, Who::Place(_)));
            if let Some(report) = report {
                let is_old = machines.is_old_process(place);
                now.insert(who, report.loss.filter(|_| !is_old));
            }
        }
        self.0.retain(|who, _| now.contains_key(who));
        for (who, loss) in now {
            if self.0.len() < MAX_PROCESSES || self.0.contains_key(&who) {
                self.0.entry(who).or_default().push(loss);
            }
        }
    }

    /// Forgets the newest sample of each.
    pub(super) fn pop(&mut self) {
        self.0.values_mut().for_each(GraphSeries::pop);
    }

    pub(super) fn of(&self, who: Who) -> Option<&GraphSeries> {
        self.0.get(&who)
    }
}
