//! Whether a coordinator leads and how its store does, in words: for probes, and for refused clients.

use std::fmt;

/// How a coordinator stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Whether it leads.
    pub(super) leads: bool,
    /// Where the one is that leads, as far as it is known.
    pub(super) leader: Option<String>,
    /// What is wrong with its store, and what helps.
    pub(super) trouble: Option<String>,
}

// === impl Standing ===

impl Standing {
    /// Why a coordinator that does not lead takes nothing.
    pub(super) fn refusal(&self) -> String {
        let who = match &self.leader {
            Some(leader) => format!("this coordinator does not lead; the one at {leader} does"),
            None => String::from("this coordinator does not lead, and knows no leader"),
        };
        match &self.trouble {
            Some(trouble) => format!("{who}; of its store it says: {trouble}"),
            None => who,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.leads, &self.trouble) {
            (true, None) => formatter.write_str("leads"),
            (true, Some(trouble)) => write!(formatter, "leads, but its store fails: {trouble}"),
            (false, _) => formatter.write_str(&self.refusal()),
        }
    }
}
