//! The agent's log of operations: bounded, for the next report and for people who look closer.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{
    FinishedOperation, MAX_GROUPS_PER_REPORT, MAX_NAMES_PER_REPORT, MAX_OPERATIONS_PER_REPORT,
    Operations, Work,
};

/// Operations that an agent keeps after they were reported.
pub const MAX_KEPT: usize = 65_536;
/// Operations that may wait to be reported.
const MAX_WAITING: usize = 4 * MAX_OPERATIONS_PER_REPORT;
/// The name of computations whose own has no place.
const OTHER: &str = "other";

/// The operations of a node's ranks in one epoch, the latest.
#[derive(Debug, Clone, Default)]
pub struct WorkLog {
    kept: VecDeque<FinishedOperation>,
    waiting: VecDeque<FinishedOperation>,
    names: BTreeSet<Arc<str>>,
    /// How many came before those that wait, reported or lost.
    before: u64,
}

impl WorkLog {
    /// The name of a computation, shared with the others of that name. When there are too many, the rest is `other`.
    pub fn name(&mut self, name: &str) -> Arc<str> {
        let is_known = self.names.contains(name);
        let has_room = self.names.len() + 1 < MAX_NAMES_PER_REPORT;
        let name = if is_known || has_room { name } else { OTHER };
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    /// Takes an operation that has ended. When too many wait to be reported, the earliest is lost.
    pub fn push(&mut self, operation: FinishedOperation) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
            self.lose(1);
        }
        self.waiting.push_back(operation);
    }

    /// So many were lost before they came here.
    pub fn lose(&mut self, count: u64) {
        self.before = self.before.saturating_add(count);
    }

    /// What the next report carries.
    pub fn report(&mut self) -> Operations {
        let mut groups = BTreeSet::new();
        let mut list = Vec::new();
        while list.len() < MAX_OPERATIONS_PER_REPORT {
            let Some(next) = self.waiting.front() else { break };
            if let Work::Transfer { group, .. } | Work::Collective { group, .. } = next.work {
                groups.insert(group);
            }
            if groups.len() > MAX_GROUPS_PER_REPORT {
                break;
            }
            list.extend(self.waiting.pop_front());
        }
        let room = MAX_KEPT - list.len();
        while self.kept.len() > room {
            self.kept.pop_front();
        }
        self.kept.extend(list.iter().cloned());
        let before = (!list.is_empty()).then_some(self.before);
        self.before = self.before.saturating_add(u64::try_from(list.len()).unwrap_or(u64::MAX));
        Operations { list, before }
    }

    /// The latest operations that were reported, the oldest first.
    pub fn kept(&self) -> impl Iterator<Item = &FinishedOperation> {
        self.kept.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::Rank;

    fn operation(step: u64) -> FinishedOperation {
        FinishedOperation { rank: Rank(0), step, work: Work::StepEnd, start_us: 0, duration_us: 0 }
    }

    #[test]
    fn a_log_is_bounded_and_counts_what_it_loses() {
        let mut log = WorkLog::default();
        let too_many = u64::try_from(MAX_WAITING).unwrap() + 3;
        (0..too_many).for_each(|step| log.push(operation(step)));
        let reports: Vec<Operations> = (0..6).map(|_| log.report()).collect();
        let lengths: Vec<usize> = reports.iter().map(|one| one.list.len()).collect();
        // The earliest three are those that are lost.
        assert_eq!((reports[0].before, reports[0].list[0].step), (Some(3), 3));
        let full = MAX_OPERATIONS_PER_REPORT;
        assert_eq!(lengths, [full, full, full, full, 0, 0]);
        (0..9).for_each(|step| log.push(operation(step)));
        let report = log.report();
        assert_eq!((report.list.len(), report.before), (9, Some(too_many)));
        assert_eq!(log.kept().count(), MAX_KEPT);
        assert_eq!(log.kept().last(), report.list.last());
        let names: BTreeSet<Arc<str>> =
            (0..=MAX_NAMES_PER_REPORT).map(|name| log.name(&name.to_string())).collect();
        assert_eq!(names.len(), MAX_NAMES_PER_REPORT);
        assert!(names.contains(OTHER) && Arc::ptr_eq(&log.name("7"), &log.name("7")));
    }
}
