//! What is wrong, in lines: faults that are alike are one line with the names of all that have them.

use telltale_schema::health::{Fault, HealthState};
use telltale_schema::snapshot::Snapshot;

use crate::style::Tone;

/// Names that are written where several have the same fault.
const NAMED: usize = 3;

/// A line for each kind of fault, with what has it, and how bad it is.
pub(crate) fn lines(snapshot: &Snapshot) -> Vec<(HealthState, String)> {
    let mut kinds: Vec<(&Fault, Vec<&str>)> = Vec::new();
    for (name, fault) in snapshot.wrong() {
        let is_alike = |(known, _): &&mut (&Fault, Vec<&str>)| {
            (known.kind, &known.detail) == (fault.kind, &fault.detail)
        };
        match kinds.iter_mut().find(is_alike) {
            Some((_, names)) => names.push(name),
            None => kinds.push((fault, vec![name])),
        }
    }
    let line = |(fault, names): (&Fault, Vec<&str>)| {
        (fault.kind.state(), format!("{}: {}", named(&names), fault.detail))
    };
    kinds.into_iter().map(line).collect()
}

/// How a state is painted.
pub(crate) const fn tone(state: HealthState) -> Tone {
    match state {
        HealthState::Ok | HealthState::Unknown => Tone::Plain,
        HealthState::Warning => Tone::Warning,
        HealthState::Failed => Tone::Alarm,
    }
}

/// The first of these names, and how many more there are.
pub(crate) fn named(names: &[&str]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
