//! What can be wrong with a region: one name for each known defect.
//!
//! The findings of this file come from the bytes alone; those that need to know who lives and who
//! holds the device come from [`super::holder_findings`]. A finding never changes a value.
#![forbid(unsafe_code)]

use super::decode::{Counters, Region};
use super::layout::{Layout, PROCESS_ROWS, RegionKind};

/// A counter above this has wrapped below zero or is garbage: no chip has 4 EiB.
pub const MAX_COUNTER_BYTES: u64 = 1 << 62;

/// Which of a region's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterPlace {
    /// A total.
    Total,
    /// In this chip row.
    Chip {
        /// The row's place in the table.
        row: usize,
    },
    /// In this process row.
    Process {
        /// The row's place in the table.
        row: usize,
    },
}

/// Something that makes a naive reading of a region wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionFinding {
    /// A counter is too large to be true, as after a subtraction below zero; it is left out.
    WrappedCounter {
        /// Where the counter is.
        place: CounterPlace,
        /// Its kind.
        kind: RegionKind,
        /// What the file has.
        raw: u64,
    },
    /// The process rows do not add up to the total.
    Drift {
        /// The kind.
        kind: RegionKind,
        /// The total.
        total_bytes: u64,
        /// The sum over process rows.
        rows_bytes: u128,
    },
    /// The circular-buffer total is below the sum of the rows: before version 4 each process
    /// *stores* it, so it is one process's value and not a sum.
    CbLastWriterWins {
        /// The total, one process's value.
        total_bytes: u64,
        /// The sum over process rows.
        rows_bytes: u128,
    },
    /// The chip rows add up to more than the total: they keep what ended processes held.
    ChipRowsExceedTotals {
        /// The kind.
        kind: RegionKind,
        /// The total.
        total_bytes: u64,
        /// The sum over chip rows.
        chips_bytes: u128,
    },
    /// Every process row is taken: further processes have none.
    TableFull {
        /// Whether such processes are in the totals (before version 4) or nowhere.
        rest_is_in_totals: bool,
    },
    /// Bytes in the totals and no process row: the writers keep none (per-process statistics off),
    /// and what a killed one held stays.
    NoProcessRows,
    /// A version 4 row that is being given up right now.
    SlotReleasing {
        /// The row's place in the table.
        row: usize,
    },
    /// A row whose pid is negative.
    InvalidPid {
        /// The row's place in the table.
        row: usize,
        /// The pid in the file.
        pid: i32,
    },
    /// Several rows with one pid: processes of different PID namespaces.
    DuplicatePid {
        /// The pid.
        pid: u32,
    },
    /// Totals and rows disagreed in each read and never twice in the same way: the region is too
    /// busy to distinguish a real remainder from one caught in the middle of an update.
    Unsettled {
        /// How often the file was read.
        reads: u32,
    },
    /// A row whose process is dead: its bytes are still in the totals.
    GhostRow {
        /// The pid.
        pid: u32,
        /// What the row still holds.
        bytes: Counters,
    },
    /// A row whose process may live in a PID namespace that cannot be seen from here.
    UnknownOwner {
        /// The pid, of an unknown namespace.
        pid: u32,
        /// What the row holds.
        bytes: Counters,
    },
    /// The row's pid is alive but does not hold the device: it is another namespace's number, a
    /// reused pid, or a process that has closed the device.
    RowWithoutHolder {
        /// The pid.
        pid: u32,
        /// What the row holds.
        bytes: Counters,
    },
    /// A process holds the device and has no row: its memory is not known.
    UntrackedHolder {
        /// The pid, as the driver lists it.
        pid: u32,
    },
    /// No process lives or holds the device, yet the region counts references: a killed process's
    /// reference stays before version 4, and the region is never reset.
    PinnedReferenceCount {
        /// The count in the file.
        reference_count: u32,
    },
}

impl RegionFinding {
    /// For a disagreement between a total and its rows: the kind, and total minus rows, in bytes.
    #[must_use]
    pub fn disagreement(&self) -> Option<(RegionKind, i128)> {
        let (kind, total_bytes, rows_bytes) = match self {
            Self::Drift { kind, total_bytes, rows_bytes } => (*kind, *total_bytes, *rows_bytes),
            Self::CbLastWriterWins { total_bytes, rows_bytes } => {
                (RegionKind::Cb, *total_bytes, *rows_bytes)
            }
            _ => return None,
        };
        let rows = i128::try_from(rows_bytes).unwrap_or(i128::MAX);
        Some((kind, i128::from(total_bytes) - rows))
    }
}

/// The findings that a region's own numbers give.
pub(super) fn find_in_table(region: &Region) -> Vec<RegionFinding> {
    let mut findings = Vec::new();
    if region.processes.is_empty() && region.totals.sum() > 0 {
        findings.push(RegionFinding::NoProcessRows);
    }
    if region.processes.len() == PROCESS_ROWS {
        findings.push(RegionFinding::TableFull { rest_is_in_totals: region.version < 4 });
    }
    findings.extend(duplicate_pids(region));
    for (kind, total_bytes) in region.totals.iter() {
        debug_assert!(Layout::of(region.variant).counts(kind), "only counted kinds have totals");
        if let Some(rows_bytes) = region.rows_bytes(kind) {
            findings.extend(compare_rows(region.version, kind, total_bytes, rows_bytes));
        }
        match region.chips_bytes(kind) {
            Some(chips_bytes) if chips_bytes > u128::from(total_bytes) => {
                findings.push(RegionFinding::ChipRowsExceedTotals {
                    kind,
                    total_bytes,
                    chips_bytes,
                });
            }
            Some(_) | None => {}
        }
    }
    findings
}

fn compare_rows(
    version: u32,
    kind: RegionKind,
    total_bytes: u64,
    rows_bytes: u128,
) -> Option<RegionFinding> {
    let total = u128::from(total_bytes);
    if total == rows_bytes {
        None
    } else if kind == RegionKind::Cb && version < 4 && rows_bytes > total {
        Some(RegionFinding::CbLastWriterWins { total_bytes, rows_bytes })
    } else {
        Some(RegionFinding::Drift { kind, total_bytes, rows_bytes })
    }
}

fn duplicate_pids(region: &Region) -> Vec<RegionFinding> {
    let mut pids: Vec<u32> = region.processes.iter().map(|row| row.pid).collect();
    pids.sort_unstable();
    let mut repeated: Vec<u32> =
        pids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    repeated.dedup();
    repeated.into_iter().map(|pid| RegionFinding::DuplicatePid { pid }).collect()
}
