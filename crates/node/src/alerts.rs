//! Alerts: rules over snapshots. The engine is pure: time and snapshots come in, transitions go
//! out. The collecting thread steps it and publishes what holds; the webhook tells others.
//!
//! A rule is raised for a subject (a device, a process on a device, a source) when its condition
//! holds, fires when it has held for the rule's time, and is resolved when the condition has been
//! clearly over for the rule's other time. What cannot be read raises nothing and resolves nothing.

mod activity;
mod alert;
mod engine;
mod findings;
mod growth;
mod notices;
mod options;
mod rule;
mod rule_file;
mod states;
mod watching;
mod webhook;

pub use alert::Transition;
pub use engine::{Engine, MAX_ALERTS};
pub use growth::{MAX_TRACKED, MINIMA};
pub use notices::{MAX_NOTICES, Notice, NoticeEvent, Notices};
pub use options::{AlertOptions, WebhookOptions};
pub use rule::{Condition, Rule};
pub use rule_file::{RuleError, RuleText};
pub use states::{AlertStates, NotificationMetrics};
pub use telltale_schema::alert::{Alert, AlertState, Severity, Subject, VisibleAlerts};
pub use webhook::{Message, Payload, SHAPE_VERSION, serve};

pub(crate) use watching::Watching;
pub(crate) use webhook::check_files;

#[cfg(test)]
pub(crate) use states::tests::states as states_fixture;

#[cfg(test)]
mod tests;
