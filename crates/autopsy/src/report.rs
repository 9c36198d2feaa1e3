//! All that was found, as JSON, text or a page.

mod page;
mod text;

use serde::{Deserialize, Serialize};

use crate::evidence::ProcessEvidence;
use crate::explanation::{Awaited, Explanation, explain};
use crate::standing::ProcessStanding;

/// The version of the JSON; new fields leave it as it is.
pub const SCHEMA_VERSION: u32 = 1;

/// Processes that were sampled, and why they hang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AutopsyReport {
    /// The version of this JSON.
    pub schema_version: u32,
    /// Why they hang; none where nothing stands still.
    pub explanation: Option<Explanation>,
    /// Processes of which nothing could be taken, and why.
    pub refused: Vec<RefusedProcess>,
    /// The evidence.
    pub processes: Vec<ProcessEvidence>,
}

/// A process of which nothing could be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct RefusedProcess {
    /// Its process id.
    pub pid: u32,
    /// Why.
    pub why: String,
}

impl AutopsyReport {
    /// Explains what was taken.
    #[must_use]
    pub fn new(processes: Vec<ProcessEvidence>, refused: Vec<(u32, String)>) -> Self {
        let standings: Vec<ProcessStanding> =
            processes.iter().filter_map(ProcessStanding::of).collect();
        let refused = refused.into_iter().map(|(pid, why)| RefusedProcess { pid, why }).collect();
        let explanation = explain(&standings, Awaited::default());
        Self { schema_version: SCHEMA_VERSION, explanation, refused, processes }
    }

    /// Whether the kernel permitted all that was asked for.
    #[must_use]
    pub fn is_permitted(&self) -> bool {
        let mut missing = self.processes.iter().flat_map(|process| &process.missing);
        !missing.any(|missing| missing.remedy.is_some())
    }

    /// The report as one line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // Nothing in it can fail to be written: no maps with other keys than texts, no numbers beyond JSON's.
        let mut json = serde_json::to_string(self).unwrap_or_default();
        json.push('\n');
        json
    }
}
