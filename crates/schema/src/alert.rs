//! What an alert is: a rule that is raised for a subject. Which rules there are, and when they are raised,
//! the node service decides.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::memory::MemorySpace;
use crate::process::ProcessIdentity;

/// How bad it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Needs attention today.
    Warning,
    /// Work is failing or about to.
    Critical,
}

impl Severity {
    /// Its name, as in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What an alert is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Subject {
    /// A device.
    Device {
        /// Its id in the snapshot.
        device: String,
    },
    /// One memory space of a device.
    Space {
        /// The device's id.
        device: String,
        /// The space.
        space: MemorySpace,
    },
    /// A process on one device.
    Process {
        /// Who it is.
        identity: ProcessIdentity,
        /// The device's id.
        device: String,
    },
    /// A source of readings.
    Source {
        /// Its name.
        source: String,
    },
    /// A part of the machine.
    Part {
        /// Its name.
        part: String,
    },
}

/// How far an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// Its condition holds, not for long enough yet.
    Pending,
    /// It fires.
    Firing,
}

impl AlertState {
    /// Its name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Firing => "firing",
        }
    }
}

/// A rule that is raised for a subject.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alert {
    /// The rule's name.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// The user whose process it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// How far it is.
    pub state: AlertState,
    /// When the condition began to hold.
    pub since: Timestamp,
    /// When it fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<Timestamp>,
    /// What was measured last, in the unit of the rule's threshold.
    pub value: f64,
    /// A sentence for a person.
    pub text: String,
}

/// What one reader may see of the alerts.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct VisibleAlerts {
    /// What is pending and what fires, by rule and subject.
    pub alerts: Vec<Alert>,
    /// Alerts about processes of others, left out.
    #[serde(rename = "withheld_alerts")]
    pub withheld: u64,
}
