//! Alerts on the collecting thread: after each collection the engine has a check, what changed is
//! logged and queued for the webhook, and what holds is published. Nothing here waits for anybody.

use std::sync::Arc;
use tracing::{error, info, warn};

use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;

use super::notices::{NoticeEvent, Notices};
use super::{Alert, AlertStates, Engine, Rule, Severity, Transition};

/// Changes of one check that have a line each in the log; the others are counted there.
const MAX_LINES: usize = 50;

/// The engine and where its findings go.
pub(crate) struct Watching {
    engine: Engine,
    notices: Arc<Notices>,
    states: Arc<AlertStates>,
}

// === impl Watching ===

impl Watching {
    /// Without a rule.
    pub(crate) fn new(notices: Arc<Notices>) -> Self {
        Self { engine: Engine::new(Vec::new()), notices, states: Arc::default() }
    }

    /// Goes by these rules from now on. Alerts of rules that are as they were go on.
    pub(crate) fn replace_rules(&mut self, rules: Vec<Rule>, at: Timestamp) {
        let transitions = self.engine.replace_rules(rules);
        self.tell(transitions, at);
    }

    /// Checks a snapshot; gives the alerts to publish with it. `now_ns` is of a clock that never
    /// goes back.
    pub(crate) fn evaluate(&mut self, now_ns: u64, snapshot: &Snapshot) -> Arc<AlertStates> {
        let transitions = self.engine.step(now_ns, snapshot);
        self.tell(transitions, snapshot.taken_at);
        let states = AlertStates {
            rules: self.engine.shared_rules(),
            alerts: self.engine.alerts().cloned().collect(),
            dropped: self.engine.dropped(),
            notifications: self.notices.metrics(),
        };
        // Most of the time there is nothing new, and what is published is kept by several.
        if *self.states != states {
            self.states = Arc::new(states);
        }
        Arc::clone(&self.states)
    }

    fn tell(&self, transitions: Vec<Transition>, at: Timestamp) {
        let more = transitions.len().saturating_sub(MAX_LINES);
        for transition in transitions.iter().take(MAX_LINES) {
            log_transition(transition);
        }
        if more > 0 {
            warn!("{more} more alerts have changed; telltale alerts lists them");
        }
        for transition in transitions {
            match transition {
                Transition::Fired(alert) => self.notices.push(NoticeEvent::Fired, at, alert),
                Transition::Resolved(alert) => self.notices.push(NoticeEvent::Resolved, at, alert),
            }
        }
    }
}

fn log_transition(transition: &Transition) {
    match transition {
        Transition::Fired(alert) => {
            let Alert { rule, severity, text, .. } = alert;
            let line = format!("alert {rule} fires: {text}");
            match severity {
                Severity::Info => info!("{line}"),
                Severity::Warning => warn!("{line}"),
                Severity::Critical => error!("{line}"),
            }
        }
        Transition::Resolved(Alert { rule, text, .. }) => {
            let was = if text.is_empty() { String::new() } else { format!("; it was: {text}") };
            info!(rule = %rule, "alert {rule} is resolved{was}");
        }
    }
}
