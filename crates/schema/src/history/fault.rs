//! What was wrong, and for how long.

use serde::{Deserialize, Deserializer, Serialize};

use crate::clock::Timestamp;
use crate::fault::{Fault, WrittenFault};

/// Faults of one answer, at most; those beyond are counted.
pub const MAX_FAULTS: usize = 1_000;

/// A fault that a device, a part of the machine or a source has or had, or an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PastFault {
    /// The device that has it; none of a part or a source, which the fault names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What it is, as it was when it was last written.
    #[serde(flatten)]
    pub fault: Fault,
    /// When it was over; none while it lasts, and where no service has recorded since.
    pub until: Option<Timestamp>,
    /// When it was last known to be so.
    pub last_seen: Timestamp,
}

// === impl PastFault ===

impl PastFault {
    /// What has it: the device's id, or the name of the part or source.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.device.as_deref().unwrap_or(&self.fault.part)
    }

    /// For how long it was so, as far as is recorded, in nanoseconds.
    #[must_use]
    pub fn lasted_ns(&self) -> u64 {
        self.last_seen.since_ns(self.fault.since)
    }
}

/// Reads those of the kinds that this version knows.
pub(super) fn known_past_faults<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PastFault>, D::Error> {
    /// One of any kind.
    #[derive(Deserialize)]
    struct Written {
        #[serde(default)]
        device: Option<String>,
        #[serde(flatten)]
        fault: WrittenFault,
        until: Option<Timestamp>,
        last_seen: Timestamp,
    }
    let known = |one: Written| {
        let Written { device, fault, until, last_seen } = one;
        Some(PastFault { device, fault: fault.known()?, until, last_seen })
    };
    Ok(Vec::<Written>::deserialize(deserializer)?.into_iter().filter_map(known).collect())
}
