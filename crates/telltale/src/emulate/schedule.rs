//! Faults that begin and end while the machine runs, in order of time.

use std::time::Duration;

use telltale_emulator::{Emulator, Fault, FaultError, TimedFault};

/// What happens at one moment, counted from the start.
struct FaultChange {
    at: Duration,
    fault: Fault,
    begins: bool,
}

/// What is still to happen, the next at the end.
pub(super) struct Schedule(Vec<FaultChange>);

// === impl Schedule ===

impl Schedule {
    /// The changes of these after the start, and the faults that are there from the start on.
    pub(super) fn new(faults: &[TimedFault]) -> (Self, Vec<Fault>) {
        let mut changes = Vec::new();
        for TimedFault { fault, from, until } in faults {
            let begin = (!from.is_zero()).then_some((*from, true));
            for (at, begins) in begin.into_iter().chain(until.map(|until| (until, false))) {
                changes.push(FaultChange { at, fault: fault.clone(), begins });
            }
        }
        changes.sort_by(|one, other| other.at.cmp(&one.at).then(one.begins.cmp(&other.begins)));
        let now = faults.iter().filter(|one| one.from.is_zero());
        (Self(changes), now.map(|one| one.fault.clone()).collect())
    }

    /// The faults that are still to begin.
    pub(super) fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter().filter(|change| change.begins).map(|change| &change.fault)
    }

    /// How long it is to the next change.
    pub(super) fn until_next(&self, elapsed: Duration) -> Option<Duration> {
        self.0.last().map(|change| change.at.saturating_sub(elapsed))
    }

    /// Makes the changes that are due; what each did.
    pub(super) fn run(&mut self, emulator: &Emulator, elapsed: Duration) -> Vec<(String, Outcome)> {
        let mut made = Vec::new();
        while let Some(change) = self.0.pop_if(|change| change.at <= elapsed) {
            let FaultChange { fault, begins, .. } = change;
            let what = format!("{} {fault}", if begins { "inject" } else { "clear" });
            let outcome = if begins { emulator.inject(fault) } else { emulator.clear(&fault) };
            made.push((what, outcome));
        }
        made
    }
}

/// What became of a change.
pub(super) type Outcome = Result<(), FaultError>;
