//! Something that is wrong with a device or with a part of the machine, with what shows it, and the
//! rules by which it is found (`health.toml`).

mod definitions;
mod rule;

pub use definitions::{FaultKind, RULES};
pub use rule::{
    HealthRule, HealthSettings, RuleSetting, RuleSubject, SettingError, Shape, Thresholds,
};

use serde::{Deserialize, Deserializer, Serialize};

use crate::clock::Timestamp;

/// How a device is. The later one is the worse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub enum HealthState {
    /// Something of it is read, and nothing is known to be wrong.
    Ok,
    /// Nothing of it can be read, or of a past moment nothing was kept, so that nothing is known.
    Unknown,
    /// It works, and something about it needs a look.
    Warning,
    /// It does not work.
    Failed,
}

/// Something that is wrong, or an event worth knowing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "ShownFault")]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// What it is.
    pub kind: FaultKind,
    /// The part of the machine or the source that has it; empty for a device as a whole.
    pub part: String,
    /// Since when it has been so, as far as the reader has watched.
    pub since: Timestamp,
    /// What was seen and what to do, for a person.
    pub detail: String,
    /// The readings that show it.
    pub evidence: Vec<Evidence>,
}

/// A fault as it is written in JSON, with what its rule says of it.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
struct ShownFault {
    /// What it is: the name of a rule.
    kind: FaultKind,
    /// What a device or a machine with it is: `warning` or `failed`, or `ok` for an event.
    state: HealthState,
    /// The part of the machine or the source that has it; not there for a device as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    part: String,
    /// Since when it has been so, as far as the reader has watched.
    since: Timestamp,
    /// What was seen and what to do, for a person.
    detail: String,
    /// What ends it, for a person.
    ends: &'static str,
    /// The readings that show it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
}

/// A reading that shows a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Which: a sensor of the device, or a reading of the part.
    pub reading: String,
    /// What it was.
    pub value: f64,
    /// When.
    pub at: Timestamp,
}

// === impl Fault ===

impl Fault {
    /// One of a device as a whole.
    pub const fn new(kind: FaultKind, since: Timestamp, detail: String) -> Self {
        Self { kind, part: String::new(), since, detail, evidence: Vec::new() }
    }

    /// Whether it is one for a person to act on, and no mere event.
    pub fn is_wrong(&self) -> bool {
        self.kind.state() > HealthState::Ok
    }
}

/// Reads the faults of the kinds that this version knows: one of a later kind must not make a whole
/// recording or answer unreadable.
pub(crate) fn known_faults<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Fault>, D::Error> {
    let written = Vec::<WrittenFault>::deserialize(deserializer)?;
    Ok(written.into_iter().filter_map(WrittenFault::known).collect())
}

/// A fault of any kind, as JSON has it.
#[derive(Deserialize)]
pub(crate) struct WrittenFault {
    kind: String,
    #[serde(default)]
    part: String,
    since: Timestamp,
    detail: String,
    #[serde(default)]
    evidence: Vec<Evidence>,
}

// === impl WrittenFault ===

impl WrittenFault {
    /// The fault, where this version knows its kind.
    pub(crate) fn known(self) -> Option<Fault> {
        let Self { kind, part, since, detail, evidence } = self;
        Some(Fault { kind: FaultKind::from_name(&kind)?, part, since, detail, evidence })
    }
}

// === impl ShownFault ===

impl From<Fault> for ShownFault {
    fn from(Fault { kind, part, since, detail, evidence }: Fault) -> Self {
        let (state, ends) = (kind.state(), kind.rule().ends);
        Self { kind, state, part, since, detail, ends, evidence }
    }
}

// === impl HealthState ===

impl HealthState {
    /// All of them, the best one first.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Unknown, Self::Warning, Self::Failed];

    /// Its name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

// === impl FaultKind ===

impl FaultKind {
    /// The rule that finds it.
    pub fn rule(self) -> &'static HealthRule {
        &RULES[self as usize]
    }

    /// Its name as in JSON, for scripts.
    pub fn name(self) -> &'static str {
        self.rule().name
    }

    /// The kind of this name; none where this version knows none.
    pub fn from_name(name: &str) -> Option<Self> {
        RULES.iter().find(|rule| rule.name == name).map(|rule| rule.kind)
    }

    /// Its name in a few words.
    pub fn words(self) -> &'static str {
        self.rule().words
    }

    /// What a device or a machine with it is.
    pub fn state(self) -> HealthState {
        self.rule().state
    }
}
