//! What a device's driver counts of errors beside those of its memory's cells.

use serde::{Deserialize, Serialize};

use crate::reading::{Absence, Reading};

/// Errors of a device, and what was done about them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct DeviceErrors {
    // From sensors.toml: fields of errors.
    /// XID errors that NVIDIA's driver reported of it since the reader first saw it.
    pub xid_errors_total: Reading<u64>,
    /// The number of the last of these; absent while there was none.
    pub xid_last: Reading<u64>,
    /// Those of the XID errors that mean the hardware, by the rule `xid_error`; counted from 0
    /// again after a reset.
    #[serde(default = "Reading::<u64>::unreported")]
    pub xid_hardware_errors_total: Reading<u64>,
    /// The number of the last of those; absent while there was none.
    #[serde(default = "Reading::<u64>::unreported")]
    pub xid_hardware_last: Reading<u64>,
    /// Packets that were sent again over its PCIe link, as its driver counts them.
    pub pcie_replays_total: Reading<u64>,
    /// Rows of its memory that were replaced by spare ones because of corrected errors.
    pub remapped_rows_corrected: Reading<u64>,
    /// Rows that were replaced because of uncorrected errors.
    pub remapped_rows_uncorrected: Reading<u64>,
    /// 1 while a row waits for a reset of the device to be replaced, else 0.
    pub row_remap_pending: Reading<u64>,
    /// 1 if a row could not be replaced, else 0.
    pub row_remap_failed: Reading<u64>,
    /// Pages of its memory that are not used any more because of corrected errors.
    pub retired_pages_corrected: Reading<u64>,
    /// Pages that are not used any more because of an uncorrected error.
    pub retired_pages_uncorrected: Reading<u64>,
    /// 1 while a page waits for a restart of the driver to be retired, else 0.
    pub page_retirement_pending: Reading<u64>,
    // End of these.
}

impl DeviceErrors {
    /// Nothing is known of it, for one reason.
    pub fn absent(reason: Absence, detail: &str) -> Self {
        Self {
            // From sensors.toml: absences of errors.
            xid_errors_total: Reading::absent(reason, detail),
            xid_last: Reading::absent(reason, detail),
            xid_hardware_errors_total: Reading::absent(reason, detail),
            xid_hardware_last: Reading::absent(reason, detail),
            pcie_replays_total: Reading::absent(reason, detail),
            remapped_rows_corrected: Reading::absent(reason, detail),
            remapped_rows_uncorrected: Reading::absent(reason, detail),
            row_remap_pending: Reading::absent(reason, detail),
            row_remap_failed: Reading::absent(reason, detail),
            retired_pages_corrected: Reading::absent(reason, detail),
            retired_pages_uncorrected: Reading::absent(reason, detail),
            page_retirement_pending: Reading::absent(reason, detail),
            // End of these.
        }
    }
}
