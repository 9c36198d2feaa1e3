//! What the rules of the service find, asked for beside the snapshots that it sends.

use std::time::{Duration, Instant};

use telltale_client::Client;
use telltale_node::alerts::{Alert as Found, AlertState, Subject, VisibleAlerts};
use telltale_schema::text::with_causes;
use telltale_smi::screen::{Alert, Alerts, Availability};

use super::Wake;

/// How often the service is asked at most: rules count in seconds.
const LEAST_INTERVAL: Duration = Duration::from_secs(2);
/// How long an answer may take, since snapshots wait for it.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Why there are no alerts without a service.
pub(super) const WITHOUT_SERVICE: &str = "No alerts: no service runs here, and it is the service \
    that looks for them. `telltale serve` starts one; `telltale alerts` looks once.";
/// Why there are none of several machines.
pub(super) const OF_SEVERAL: &str =
    "No alerts: they are those of one machine. Open `telltale top` there.";

/// The questions to one service.
pub(super) struct AlertPoller {
    period: Duration,
    due: Instant,
    /// What was reported last, which is not repeated.
    last: Option<Availability<Alerts>>,
}

impl AlertPoller {
    /// Questions at the view's own pace, or a slower one.
    pub(super) fn new(period: Duration) -> Self {
        Self { period: period.max(LEAST_INTERVAL), due: Instant::now(), last: None }
    }

    /// Asks, where it is time to; gives what is new.
    pub(super) async fn ask(&mut self, client: &mut Client) -> Option<Wake> {
        if Instant::now() < self.due {
            return None;
        }
        let reported = match tokio::time::timeout(TIMEOUT, client.alerts()).await {
            Ok(Ok(found)) => Availability::Known(shown(found)),
            Ok(Err(error)) => Availability::Absent(format!("No alerts: {}", with_causes(&error))),
            Err(_) => Availability::Absent(String::from(
                "No alerts: the service does not answer in time.",
            )),
        };
        self.due = Instant::now() + self.period;
        if self.last.as_ref() == Some(&reported) {
            return None;
        }
        self.last = Some(reported.clone());
        Some(Wake::Alerts(reported))
    }
}

/// Says why there are none.
pub(super) fn absent(why: &str) -> Wake {
    Wake::Alerts(Availability::Absent(why.to_owned()))
}

fn shown(found: VisibleAlerts) -> Alerts {
    let one = |alert: Found| Alert {
        fires: alert.state == AlertState::Firing,
        severity: alert.severity.name(),
        rule: alert.rule,
        since: alert.since,
        text: alert.text,
        device: match alert.subject {
            Subject::Device { device }
            | Subject::Space { device, .. }
            | Subject::Process { device, .. } => Some(device),
            Subject::Source { .. } | Subject::Part { .. } => None,
        },
    };
    Alerts { alerts: found.alerts.into_iter().map(one).collect(), withheld: found.withheld }
}
