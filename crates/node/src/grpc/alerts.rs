//! Alerts by gRPC.

use telltale_schema::alert::VisibleAlerts;
use telltale_wire::telemetry::alert::message_of;
use telltale_wire::telemetry::message;

use crate::access::Visibility;
use crate::service::Published;

/// What `visibility` covers of the alerts of a publication.
pub(super) fn response(
    published: &Published,
    visibility: Visibility,
) -> message::ListAlertsResponse {
    let VisibleAlerts { alerts, withheld } = published.alerts.visible(visibility);
    message::ListAlertsResponse {
        alerts: alerts.into_iter().map(message_of).collect(),
        withheld_alerts: withheld,
        dropped_alerts: published.alerts.dropped,
        sequence: published.sequence,
        taken_at_unix_ns: published.snapshot.taken_at.0,
    }
}

#[cfg(test)]
mod tests {
    use telltale_wire::telemetry::alert::{alert_of, message_of};
    use telltale_wire::telemetry::message;

    use crate::access::Visibility;
    use crate::alerts::states_fixture;

    #[test]
    fn alerts_come_back_as_they_went_and_others_are_refused() {
        let alerts = states_fixture().visible(Visibility::Everything).alerts;
        assert!(alerts.len() > 5);
        for alert in alerts {
            let message = message_of(alert.clone());
            assert_eq!(alert_of(message.clone()).unwrap(), alert);
            let nobody = message::Alert {
                device_id: String::new(),
                source: String::new(),
                part: String::new(),
                process: None,
                ..message.clone()
            };
            assert!(alert_of(nobody).is_err());
            assert!(alert_of(message::Alert { severity: 99, ..message.clone() }).is_err());
            assert!(alert_of(message::Alert { state: 0, ..message }).is_err());
        }
    }
}
