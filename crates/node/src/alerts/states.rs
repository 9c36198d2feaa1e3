//! What alerts there are at one moment, and what became of the notifications of them.

use std::sync::Arc;

use telltale_schema::alert::{Alert, AlertState, Subject, VisibleAlerts};

use super::Rule;
use crate::access::Visibility;

/// The source whose errors are about devices alone, which everybody may see.
const DEVICE_SOURCE: &str = "tenstorrent";

/// All alerts at one moment. Published with the snapshot that they are about.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertStates {
    /// The rules that hold.
    pub rules: Arc<[Rule]>,
    /// What is pending and what fires, by rule and subject.
    pub alerts: Vec<Alert>,
    /// Alerts that found no room, since the service was started.
    pub dropped: u64,
    /// What became of notifications, since the service was started.
    pub notifications: NotificationMetrics,
}

/// What became of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NotificationMetrics {
    /// Those that the webhook took.
    pub sent: u64,
    /// Those that it did not take, however often it was tried.
    pub failed: u64,
    /// Those that found no room in the queue.
    pub dropped: u64,
}

// === impl AlertStates ===

impl AlertStates {
    /// How many alerts of a rule fire.
    #[must_use]
    pub fn firing(&self, rule: &Rule) -> u64 {
        let firing = |alert: &&Alert| alert.state == AlertState::Firing && alert.rule == rule.name;
        u64::try_from(self.alerts.iter().filter(firing).count()).unwrap_or(u64::MAX)
    }

    /// What a reader may see: alerts about devices, about its own processes, and about sources
    /// without the names in their errors, which are paths and pids.
    #[must_use]
    pub fn visible(&self, visibility: Visibility) -> VisibleAlerts {
        let own = match visibility {
            Visibility::Everything => {
                return VisibleAlerts { alerts: self.alerts.clone(), withheld: 0 };
            }
            Visibility::Own { uid } => Some(uid),
            Visibility::DevicesOnly => None,
        };
        let mut seen = VisibleAlerts::default();
        for alert in &self.alerts {
            match &alert.subject {
                Subject::Process { .. } if own.is_none() || alert.uid != own => seen.withheld += 1,
                Subject::Source { source } if source != DEVICE_SOURCE => {
                    let mut alert = alert.clone();
                    let ending = if alert.value == 1.0 { "" } else { "s" };
                    alert.text = format!("source {source} has {} error{ending}", alert.value);
                    seen.alerts.push(alert);
                }
                _ => seen.alerts.push(alert.clone()),
            }
        }
        seen
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use telltale_schema::clock::Timestamp;
    use telltale_schema::process::ProcessIdentity;

    use super::{AlertStates, VisibleAlerts};
    use crate::access::Visibility;
    use crate::alerts::{Alert, AlertState, Rule, Severity, Subject};

    fn alert(rule: &str, subject: Subject, uid: Option<u32>, state: AlertState) -> Alert {
        Alert {
            rule: rule.to_owned(),
            severity: Severity::Warning,
            subject,
            uid,
            state,
            since: Timestamp(1),
            fired_at: None,
            value: 2.0,
            text: "secret".to_owned(),
        }
    }

    /// Alerts of every kind.
    pub(crate) fn states() -> AlertStates {
        let identity =
            ProcessIdentity { boot_id: [7; 16], pid_namespace: 1, pid: 9, start_time_ticks: 5 };
        let process = Subject::Process { identity, device: "a".to_owned() };
        let source = |name: &str| Subject::Source { source: name.to_owned() };
        let device = Subject::Device { device: "a".to_owned() };
        AlertStates {
            rules: Rule::defaults().into(),
            alerts: vec![
                alert("memory_leak", process.clone(), Some(1000), AlertState::Firing),
                alert("memory_leak", process.clone(), Some(1001), AlertState::Pending),
                alert("memory_leak", process, None, AlertState::Firing),
                alert("device_hot", device, None, AlertState::Firing),
                alert(
                    "fan_failed",
                    Subject::Part { part: "fan1".to_owned() },
                    None,
                    AlertState::Firing,
                ),
                alert("source_down", source("ledgers"), None, AlertState::Pending),
                alert("source_down", source("tenstorrent"), None, AlertState::Pending),
            ],
            ..AlertStates::default()
        }
    }

    #[test]
    fn others_processes_and_paths_are_withheld() {
        let states = states();
        let reported = |visibility| {
            let VisibleAlerts { alerts, withheld } = states.visible(visibility);
            let uids: Vec<_> = alerts.iter().filter_map(|alert| alert.uid).collect();
            let texts = alerts.iter().filter(|alert| alert.text == "secret").count();
            (alerts.len(), uids, texts, withheld)
        };
        assert_eq!(reported(Visibility::Everything), (7, vec![1000, 1001], 7, 0));
        assert_eq!(reported(Visibility::Own { uid: 1000 }), (5, vec![1000], 4, 2));
        assert_eq!(reported(Visibility::DevicesOnly), (4, vec![], 3, 3));
        let text = &states.visible(Visibility::DevicesOnly).alerts[2].text;
        assert_eq!(text, "source ledgers has 2 errors");
    }

    #[test]
    fn what_fires_is_counted_by_rule() {
        let states = states();
        let rules: Arc<[Rule]> = Arc::clone(&states.rules);
        let fires = |rule: &&Rule| states.firing(rule) > 0;
        let counts = rules.iter().filter(fires).map(|rule| (&*rule.name, states.firing(rule)));
        let expected = [("memory_leak", 2), ("device_hot", 1), ("fan_failed", 1)];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }
}
