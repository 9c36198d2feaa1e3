//! What was done about errors of a GPU: rows of its memory that were replaced, pages that were
//! retired, and packets that went over PCIe again.

use nvml_wrapper::Device;
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_RETIRED_DBE, NVML_FI_DEV_RETIRED_PENDING, NVML_FI_DEV_RETIRED_SBE,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::DeviceErrors;

use super::complaints::Complaints;
use super::library::Said;
use super::question::Question;
use super::raw_calls::{RemappedRows, ScopedField, field_values, remapped_rows};

/// More rows or pages than any GPU has spare ones of.
const MAX_REPLACED: u64 = 1 << 20;

/// What NVML said of them.
#[derive(Debug)]
pub(super) struct RepairCounts {
    rows: Said<RemappedRows>,
    /// Pages that corrected errors cost, pages that uncorrected ones cost, and whether one waits.
    pages: Said<Vec<Said<u64>>>,
    replays: Said<u32>,
}

// === impl RepairCounts ===

impl RepairCounts {
    pub(super) fn of(device: &Device<'_>) -> Self {
        let pages = [NVML_FI_DEV_RETIRED_SBE, NVML_FI_DEV_RETIRED_DBE, NVML_FI_DEV_RETIRED_PENDING];
        Self {
            rows: remapped_rows(device),
            pages: field_values(device, &pages.map(|id| ScopedField { id, scope: 0 })),
            replays: device.pcie_replay_counter(),
        }
    }

    /// The readings, without those of events.
    pub(super) fn readings(self, now: Timestamp, complaints: &mut Complaints<'_>) -> DeviceErrors {
        const QUESTION: Question = Question::Repairs;
        let rows = complaints.reading(QUESTION, self.rows, now, |_| true);
        let row = |count: fn(&RemappedRows) -> u32, most: u64| {
            rows.clone().map(|rows| u64::from(count(&rows))).keep_if(|count| *count <= most)
        };
        let mut pages = match self.pages {
            Ok(pages) => pages
                .into_iter()
                .zip([MAX_REPLACED, MAX_REPLACED, 1])
                .map(|(said, most)| complaints.reading(QUESTION, said, now, |it| *it <= most))
                .collect(),
            Err(error) => {
                vec![complaints.reading(QUESTION, Err::<u64, _>(error), now, |_| true); 3]
            }
        }
        .into_iter();
        let mut page = || pages.next().unwrap_or_else(Reading::unreported);
        let replays = complaints.reading(QUESTION, self.replays, now, |_| true);
        DeviceErrors {
            remapped_rows_corrected: row(|rows| rows.corrected, MAX_REPLACED),
            remapped_rows_uncorrected: row(|rows| rows.uncorrected, MAX_REPLACED),
            row_remap_pending: row(|rows| rows.pending, 1),
            row_remap_failed: row(|rows| rows.failed, 1),
            retired_pages_corrected: page(),
            retired_pages_uncorrected: page(),
            page_retirement_pending: page(),
            pcie_replays_total: replays.map(u64::from),
            ..DeviceErrors::absent(Absence::NotYet, "")
        }
    }
}
