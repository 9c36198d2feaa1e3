//! The agent's log of operations: bounded, for the next report and for people who look closer.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{
    MAX_GROUPS_PER_REPORT, MAX_NAMES_PER_REPORT, MAX_OPERATIONS_PER_REPORT, Operation, Operations,
    Work,
};

/// Operations that an agent keeps after they were reported.
pub const MAX_KEPT: usize = 65_536;
/// Operations that may wait to be reported.
const MAX_WAITING: usize = 4 * MAX_OPERATIONS_PER_REPORT;

/// The operations of a node's ranks in one epoch, the latest.
#[derive(Debug, Clone, Default)]
pub struct WorkLog {
    kept: VecDeque<Operation>,
    waiting: VecDeque<Operation>,
    names: BTreeSet<Arc<str>>,
    dropped: u64,
}

impl WorkLog {
    /// The name of a computation, shared with the others of that name; `None` when there are too many.
    pub fn name(&mut self, name: &str) -> Option<Arc<str>> {
        if let Some(known) = self.names.get(name) {
            return Some(Arc::clone(known));
        }
        if self.names.len() >= MAX_NAMES_PER_REPORT {
            self.dropped = self.dropped.saturating_add(1);
            return None;
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        Some(name)
    }

    /// Takes an operation that has ended. Drops it when too many wait to be reported.
    pub fn push(&mut self, operation: Operation) {
        if self.waiting.len() >= MAX_WAITING {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.waiting.push_back(operation);
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
        Operations { list, dropped: self.dropped }
    }

    /// The latest operations that were reported, the oldest first.
    pub fn kept(&self) -> impl Iterator<Item = &Operation> {
        self.kept.iter()
    }

    /// How many had no place since the epoch began.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::Rank;

    fn operation(step: u64) -> Operation {
        Operation { rank: Rank(0), step, work: Work::StepEnd, start_us: 0, duration_us: 0 }
    }

    #[test]
    fn a_log_is_bounded_and_counts_what_it_drops() {
        let mut log = WorkLog::default();
        let too_many = u64::try_from(MAX_WAITING).unwrap() + 3;
        (0..too_many).for_each(|step| log.push(operation(step)));
        let lengths: Vec<usize> = (0..6).map(|_| log.report().list.len()).collect();
        let full = MAX_OPERATIONS_PER_REPORT;
        assert_eq!(lengths, [full, full, full, full, 0, 0]);
        assert_eq!(log.dropped(), 3);
        (0..9).for_each(|step| log.push(operation(step)));
        let report = log.report();
        assert_eq!((report.list.len(), report.dropped), (9, 3));
        assert_eq!(log.kept().count(), MAX_KEPT);
        assert_eq!(log.kept().last(), report.list.last());
        let names = (0..=MAX_NAMES_PER_REPORT).filter(|name| log.name(&name.to_string()).is_some());
        assert_eq!(names.count(), MAX_NAMES_PER_REPORT);
        assert!(Arc::ptr_eq(&log.name("7").unwrap(), &log.name("7").unwrap()));
    }
}
