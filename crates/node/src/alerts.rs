//! Alerts: rules over snapshots. The engine is pure: time and snapshots come in, transitions go
//! out; who tells them to whom is another module's business.
//!
//! A rule is raised for a subject (a device, a process on a device, a source) when its condition
//! holds, fires when it has held for the rule's time, and is resolved when the condition has been
//! clearly over for the rule's other time. What cannot be read raises nothing and resolves nothing.

mod activity;
mod alert;
mod engine;
mod findings;
mod growth;
mod rule;
mod rule_file;

pub use alert::{Alert, AlertState, Severity, Subject, Transition};
pub use engine::{Engine, MAX_ALERTS};
pub use growth::{MAX_TRACKED, MINIMA};
pub use rule::{Condition, Rule};
pub use rule_file::{AlertOptions, RuleError, RuleText};

#[cfg(test)]
mod tests;
