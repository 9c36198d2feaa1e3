//! The NVLink links of a device, all together.

use serde::{Deserialize, Serialize};

use crate::reading::{Absence, Reading};

/// NVLink links of a device: how many, what goes over them, and their errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct NvLinks {
    // From sensors.toml: fields of nvlink.
    /// The NVLink links that it has.
    pub nvlink_links: Reading<u64>,
    /// Those of them that are up.
    pub nvlink_links_up: Reading<u64>,
    /// Bytes of data that it received over all its NVLink links since its driver was loaded.
    pub nvlink_received_bytes_total: Reading<u64>,
    /// Bytes of data that it sent over all its NVLink links since its driver was loaded.
    pub nvlink_sent_bytes_total: Reading<u64>,
    /// Bytes a second of data that it received over all its NVLink links, since the collection
    /// before. Absent in the first.
    pub nvlink_received_bytes_per_second: Reading<u64>,
    /// Bytes a second of data that it sent over all its NVLink links, since the collection before.
    /// Absent in the first.
    pub nvlink_sent_bytes_per_second: Reading<u64>,
    /// Errors of checksums of flow control on all its links.
    pub nvlink_crc_errors_total: Reading<u64>,
    /// Times that data was sent again on all its links.
    pub nvlink_replays_total: Reading<u64>,
    /// Times that one of all its links was lost and came back.
    pub nvlink_recoveries_total: Reading<u64>,
    // End of these.
}

impl NvLinks {
    /// Nothing is known of it, for one reason.
    pub fn absent(reason: Absence, detail: &str) -> Self {
        Self {
            // From sensors.toml: absences of nvlink.
            nvlink_links: Reading::absent(reason, detail),
            nvlink_links_up: Reading::absent(reason, detail),
            nvlink_received_bytes_total: Reading::absent(reason, detail),
            nvlink_sent_bytes_total: Reading::absent(reason, detail),
            nvlink_received_bytes_per_second: Reading::absent(reason, detail),
            nvlink_sent_bytes_per_second: Reading::absent(reason, detail),
            nvlink_crc_errors_total: Reading::absent(reason, detail),
            nvlink_replays_total: Reading::absent(reason, detail),
            nvlink_recoveries_total: Reading::absent(reason, detail),
            // End of these.
        }
    }
}
