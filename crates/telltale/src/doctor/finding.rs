//! One thing that was looked at, and what came of it.

use serde::Serialize;

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    pub(super) subject: &'static str,
    /// How it is.
    pub(super) verdict: Verdict,
    /// What is so, and why.
    pub(super) what: String,
    /// The commands that mend it, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) remedy: Vec<String>,
}

/// How something is, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It works.
    Works,
    /// It is not on this machine, which is no fault.
    NotHere,
    /// It works in part.
    Partly,
    /// It does not work.
    Broken,
}

// === impl Verdict ===

impl Verdict {
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
    pub(super) fn new(subject: &'static str, verdict: Verdict, what: impl Into<String>) -> Self {
        Self { subject, verdict, what: what.into(), remedy: Vec::new() }
    }

    /// The same with a command that mends it.
    pub(super) fn mended_by(mut self, command: impl Into<String>) -> Self {
        self.remedy.push(command.into());
        self
    }

    /// The worst verdict of all that is there.
    pub(super) fn worst(findings: &[Self]) -> Verdict {
        findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::NotHere)
    }
}
