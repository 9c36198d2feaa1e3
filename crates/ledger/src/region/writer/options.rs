//! What a process says when it attaches to a region, and what it learns: options, errors, losses.
//!
//! Data only; the rules are in [`super`].
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;

use super::super::layout::{Layout, LayoutVariant};

/// The layouts that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegionLayout {
    /// Version 1 in its 9280-byte form, mode 0666 less the umask, stamped with time since boot.
    V1,
    /// Version 3, 8576 bytes, mode 0600, stamped with Unix time; no kernel counters.
    #[default]
    V3,
    /// Version 4 as it is proposed: as version 3, with a state of initialisation, and every process
    /// has a row.
    V4,
}

impl RegionLayout {
    /// All layouts that are written, with the number that selects each.
    pub const NUMBERED: [(u32, Self); 3] = [(1, Self::V1), (3, Self::V3), (4, Self::V4)];

    /// Whether a process can be in the totals without having a row. In version 4 the rows are all
    /// that tells who is attached.
    #[must_use]
    pub const fn rows_are_optional(self) -> bool {
        matches!(self, Self::V1 | Self::V3)
    }

    pub(super) fn table(self) -> &'static Layout {
        Layout::of(match self {
            Self::V1 => LayoutVariant::V1,
            Self::V3 => LayoutVariant::V3,
            Self::V4 => LayoutVariant::V4,
        })
    }

    pub(super) fn mode(self) -> Mode {
        Mode::from_raw_mode(match self {
            Self::V1 => 0o666,
            Self::V3 | Self::V4 => 0o600,
        })
    }

    pub(super) fn now_ns(self) -> u64 {
        // The coarse clocks lag a tick and cost a fraction; a stamp needs no more.
        let now = clock_gettime(match self {
            Self::V1 => ClockId::MonotonicCoarse,
            Self::V3 | Self::V4 => ClockId::RealtimeCoarse,
        });
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
    }
}

/// Whether the pids in the region mean to this process what they meant to their writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidNamespace {
    /// All processes that can reach the region are in this process's PID namespace or below it, as
    /// in the initial namespace. A row is taken out if none of them has its pid in any namespace.
    Shared,
    /// Others may be elsewhere: no row is taken for dead. Say this when in doubt.
    Private,
}

/// What a process that attaches says about itself and the chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionOptions {
    /// The layout to write.
    pub layout: RegionLayout,
    /// Whether to keep a process row; version 4 always has one.
    pub per_pid: bool,
    /// The id in the file's name.
    pub name_id: u64,
    /// The header's `board_serial`: in version 1 the board part of the id, 0 later.
    pub board_serial: u64,
    /// The header's `asic_id`: in version 1 the location part of the id, the whole id later.
    pub asic_id: u64,
    /// The logical device id in this process; at most `i32::MAX`.
    pub device_id: u32,
    /// This process's pid as its PID namespace numbers it; not 0, at most `i32::MAX`.
    pub pid: u32,
    /// The process's name; more than 63 bytes are cut.
    pub process_name: String,
    /// What pids in the region mean to this process.
    pub pid_namespace: PidNamespace,
    /// How long attaching and detaching each wait for others that do the same. Each holds the lock
    /// for microseconds; any reader of the file can also hold it for ever.
    pub lock_wait: Duration,
}

/// Why a region is not kept.
#[derive(Debug, Error)]
pub enum AttachError {
    /// A number in the options does not fit its field.
    #[error("{field} {value} cannot be in a region; pass the real one, up to {}", i32::MAX)]
    Options {
        /// Which option.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// The directory of regions cannot be opened.
    #[error("cannot open {} for the region; check that it exists", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The region is another user's. From version 3 on it admits only its creator's processes.
    #[error("{name}: no right to attach to the region; it belongs to another user")]
    PermissionDenied {
        /// The file's name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A link, directory, FIFO, socket or device stands where the region should be.
    #[error("{name}: not a regular file; another process has taken the region's name")]
    NotARegularFile {
        /// The file's name.
        name: String,
    },
    /// The file has another layout. It is left as it is.
    #[error(
        "{name}: the region has another layout ({}{size_bytes} bytes); {}remove the file once \
         no process uses it",
        version.map(|version| format!("version {version}, ")).unwrap_or_default(),
        choice(*version, *size_bytes),
    )]
    Unsupported {
        /// The file's name.
        name: String,
        /// The file's version, where its size is the wanted one.
        version: Option<u32>,
        /// The file's size.
        size_bytes: u64,
    },
    /// All rows are taken, and the layout has no place for a process without one.
    #[error("{name}: all rows of the region are taken; end processes that have one")]
    TableFull {
        /// The file's name.
        name: String,
    },
    /// Another process has begun to initialise the region and has not finished.
    #[error(
        "{name}: another process has not finished initialising the region; if none is about to, \
         remove the file"
    )]
    NotReady {
        /// The file's name.
        name: String,
    },
    /// There is no room for the file.
    #[error("{name}: no space for the region; free some in its file system")]
    NoSpace {
        /// The file's name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Others held the lock for longer than [`RegionOptions::lock_wait`].
    #[error("{name}: the region stays locked; see who holds it with lslocks")]
    Busy {
        /// The file's name.
        name: String,
    },
    /// A system call failed.
    #[error("{name}: cannot {step} the region")]
    System {
        /// The file's name.
        name: String,
        /// What was tried.
        step: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl AttachError {
    pub(super) fn system(name: &str, step: &'static str, error: Errno) -> Self {
        Self::System { name: name.into(), step, source: error.into() }
    }
}

/// Why a process could not leave a region. Its row stays until another process finds it dead.
#[derive(Debug, Error)]
pub enum DetachError {
    /// Others held the lock for longer than [`RegionOptions::lock_wait`].
    #[error("the region stays locked; see who holds it with lslocks")]
    Busy,
    /// Locking failed.
    #[error("cannot lock the region")]
    Lock {
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What a writer could not put into its region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionLosses {
    /// The process table was full at attach: the totals count this process, no row does.
    pub row_missing: bool,
    /// Another process freed or took this process's row; nothing was recorded since.
    pub row_lost: bool,
    /// Records of a kind that the layout has no counter for.
    pub kind_records: u64,
    /// Allocations that are in the totals but in no chip row, as the chip table was full.
    pub chip_records: u64,
    /// Records that were left out: after [`Self::row_lost`], or larger than any chip.
    pub refused_records: u64,
    /// Bytes freed beyond what this process had recorded as allocated.
    pub excess_free_bytes: u64,
}

/// How a process comes to write such a region, if that is one of [`RegionLayout`].
fn choice(version: Option<u32>, size_bytes: u64) -> String {
    RegionLayout::NUMBERED
        .into_iter()
        .find(|(_, layout)| {
            let table = layout.table();
            version == Some(table.version) && usize::try_from(size_bytes) == Ok(table.size_bytes)
        })
        .map(|(number, _)| format!("choose it with TELLTALE_SHM_LAYOUT={number}, or "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::AttachError;

    #[test]
    fn another_layout_is_reported_with_the_variable_that_selects_it() {
        let reported = |version, size_bytes| {
            AttachError::Unsupported { name: "region".into(), version, size_bytes }.to_string()
        };
        let cases = [
            (Some(3), 8576, "(version 3, 8576 bytes); choose it with TELLTALE_SHM_LAYOUT=3, or r"),
            (Some(4), 8576, "(version 4, 8576 bytes); choose it with TELLTALE_SHM_LAYOUT=4, or r"),
            (Some(1), 9280, "(version 1, 9280 bytes); choose it with TELLTALE_SHM_LAYOUT=1, or r"),
            (Some(1), 100, "(version 1, 100 bytes); r"),
            (None, 2, "(2 bytes); r"),
        ];
        for (version, size_bytes, what) in cases {
            let expected = format!(
                "region: the region has another layout {what}emove the file once no process uses it"
            );
            assert_eq!(reported(version, size_bytes), expected);
        }
    }
}
