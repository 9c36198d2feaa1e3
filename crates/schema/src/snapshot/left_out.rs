//! How much of a snapshot a filter left out.

use serde::{Deserialize, Serialize};

/// What a filter left out of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Devices.
    pub devices: u64,
    /// Processes that are in no row at all.
    pub processes: u64,
}
