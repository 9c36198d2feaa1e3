//! Alerts by gRPC: as messages, and back at the other end.

use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemorySpace;
use telltale_schema::process::ProcessIdentity;
use telltale_wire::telemetry::decode::AnswerError;
use telltale_wire::telemetry::{CallError, Client, message};

use crate::access::Visibility;
use crate::alerts::{Alert, AlertState, Severity, Subject, VisibleAlerts};
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

/// The alerts that the service tells this client.
///
/// # Errors
/// When it refuses, or its answer cannot be used.
pub async fn ask_alerts(client: &mut Client) -> Result<VisibleAlerts, CallError> {
    let answer = client.alerts().await?;
    let alerts = answer.alerts.into_iter().map(alert_of).collect::<Result<_, _>>()?;
    Ok(VisibleAlerts { alerts, withheld: answer.withheld_alerts })
}

fn message_of(alert: Alert) -> message::Alert {
    let severity = match alert.severity {
        Severity::Info => message::AlertSeverity::Info,
        Severity::Warning => message::AlertSeverity::Warning,
        Severity::Critical => message::AlertSeverity::Critical,
    };
    let state = match alert.state {
        AlertState::Pending => message::AlertState::Pending,
        AlertState::Firing => message::AlertState::Firing,
    };
    let mut message = message::Alert {
        rule: alert.rule,
        severity: severity.into(),
        state: state.into(),
        uid: alert.uid,
        since_unix_ns: alert.since.0,
        fired_at_unix_ns: alert.fired_at.map(|at| at.0),
        value: alert.value,
        text: alert.text,
        ..message::Alert::default()
    };
    match alert.subject {
        Subject::Device { device } => message.device_id = device,
        Subject::Space { device, space } => {
            message.device_id = device;
            message.space = space_message(space).into();
        }
        Subject::Process { identity, device } => {
            message.device_id = device;
            message.process = Some(message::ProcessIdentity {
                boot_id: identity.boot_id.to_vec(),
                pid_namespace: identity.pid_namespace,
                pid: identity.pid,
                start_time_ticks: identity.start_time_ticks,
            });
        }
        Subject::Source { source } => message.source = source,
        Subject::Part { part } => message.part = part,
    }
    message
}

fn alert_of(message: message::Alert) -> Result<Alert, AnswerError> {
    let severity = match message.severity() {
        message::AlertSeverity::Info => Severity::Info,
        message::AlertSeverity::Warning => Severity::Warning,
        message::AlertSeverity::Critical => Severity::Critical,
        message::AlertSeverity::Unspecified => return Err(AnswerError::Impossible("severity")),
    };
    let state = match message.state() {
        message::AlertState::Pending => AlertState::Pending,
        message::AlertState::Firing => AlertState::Firing,
        message::AlertState::Unspecified => return Err(AnswerError::Impossible("alert state")),
    };
    let subject = subject_of(&message)?;
    Ok(Alert {
        rule: message.rule,
        severity,
        subject,
        uid: message.uid,
        state,
        since: Timestamp(message.since_unix_ns),
        fired_at: message.fired_at_unix_ns.map(Timestamp),
        value: message.value,
        text: message.text,
    })
}

fn subject_of(message: &message::Alert) -> Result<Subject, AnswerError> {
    let device = message.device_id.clone();
    if let Some(process) = &message.process {
        let boot_id = process.boot_id.as_slice().try_into();
        let identity = ProcessIdentity {
            boot_id: boot_id.map_err(|_| AnswerError::Impossible("boot id"))?,
            pid_namespace: process.pid_namespace,
            pid: process.pid,
            start_time_ticks: process.start_time_ticks,
        };
        return Ok(Subject::Process { identity, device });
    }
    let space = match message.space() {
        message::MemorySpace::Unspecified => None,
        message::MemorySpace::Dram => Some(MemorySpace::Dram),
        message::MemorySpace::L1 => Some(MemorySpace::L1),
        message::MemorySpace::Host => Some(MemorySpace::Host),
    };
    if !message.part.is_empty() {
        return Ok(Subject::Part { part: message.part.clone() });
    }
    match (space, message.source.is_empty(), device.is_empty()) {
        (Some(space), true, false) => Ok(Subject::Space { device, space }),
        (None, true, false) => Ok(Subject::Device { device }),
        (None, false, true) => Ok(Subject::Source { source: message.source.clone() }),
        _ => Err(AnswerError::Impossible("subject of an alert")),
    }
}

fn space_message(space: MemorySpace) -> message::MemorySpace {
    match space {
        MemorySpace::Dram => message::MemorySpace::Dram,
        MemorySpace::L1 => message::MemorySpace::L1,
        MemorySpace::Host => message::MemorySpace::Host,
    }
}

#[cfg(test)]
mod tests {
    use telltale_wire::telemetry::message;

    use super::{alert_of, message_of};
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
