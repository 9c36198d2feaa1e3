//! Alerts, as messages and back.

use telltale_schema::alert::{Alert, AlertState, Severity, Subject};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemorySpace;
use telltale_schema::process::ProcessIdentity;

use super::decode::AnswerError;
use super::message;

/// The message of an alert.
#[must_use]
pub fn message_of(alert: Alert) -> message::Alert {
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

/// The alert of a message.
///
/// # Errors
/// When it is of a severity, a state or a subject that is not known here.
pub fn alert_of(message: message::Alert) -> Result<Alert, AnswerError> {
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
