//! One thing that was checked, and what came of it.

use serde::Serialize;

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    /// What was checked.
    pub(super) subject: &'static str,
    /// How it is.
    pub(super) verdict: FindingLevel,
    /// What is so, and why.
    pub(super) what: String,
    /// The commands that mend it, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) remedy: Vec<String>,
}

/// How something is, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FindingLevel {
    /// It works.
    Works,
    /// It is not on this machine, which is no fault.
    NotHere,
    /// It works in part.
    Partly,
    /// It does not work.
    Broken,
}

// === impl FindingLevel ===

impl FindingLevel {
    /// The name in JSON and in the table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::NotHere => "not_here",
            Self::Partly => "partly",
            Self::Broken => "broken",
        }
    }
}

// === impl Finding ===

impl Finding {
    /// It works.
    pub(super) fn works(subject: &'static str, what: impl Into<String>) -> Self {
        Self { subject, verdict: FindingLevel::Works, what: what.into(), remedy: Vec::new() }
    }

    /// It is not on this machine.
    pub(super) fn not_here(subject: &'static str, what: impl Into<String>) -> Self {
        Self { verdict: FindingLevel::NotHere, ..Self::works(subject, what) }
    }

    /// It works in part, and this mends it. There is no such finding without a remedy.
    pub(super) fn partly(
        subject: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { verdict: FindingLevel::Partly, ..Self::works(subject, what).mended_by(remedy) }
    }

    /// It does not work, and this mends it, or tells more. There is no such finding without a remedy.
    pub(super) fn broken(
        subject: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { verdict: FindingLevel::Broken, ..Self::works(subject, what).mended_by(remedy) }
    }

    /// The same with a further command.
    pub(super) fn mended_by(mut self, command: impl Into<String>) -> Self {
        self.remedy.push(command.into());
        self
    }

    /// The worst verdict of all that is there.
    pub(super) fn worst(findings: &[Self]) -> FindingLevel {
        findings.iter().map(|finding| finding.verdict).max().unwrap_or(FindingLevel::NotHere)
    }
}
