//! Regions against the rest of the machine: who lives, who holds the device, which files are one.
//!
//! Pure: liveness is a predicate and the driver's list is a set, both the caller's.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use super::decode::{ProcessRow, Region};
use super::findings::RegionFinding;
use super::layout::RegionKind;
use super::read::RegionReading;

/// Whether a row's process lives, as far as the one who asks can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It lives.
    Alive,
    /// It certainly does not.
    Dead,
    /// The pid may belong to a PID namespace that cannot be seen from here.
    Unknown,
}

/// Compares a region with the processes that hold its device.
///
/// `driver_pids` are those that the driver lists, in the caller's PID namespace; 0, which the
/// driver prints for processes outside it, is ignored. The predicate decides about each row and
/// may use all of it: a pid alone cannot tell a reused number or another namespace's.
pub fn holder_findings(
    region: &Region,
    driver_pids: &BTreeSet<u32>,
    liveness: impl Fn(&ProcessRow) -> Liveness,
) -> Vec<RegionFinding> {
    let mut findings = Vec::new();
    let mut tracked = BTreeSet::new();
    let mut anyone = false;
    for row in &region.processes {
        let (pid, bytes) = (row.pid, row.bytes);
        match liveness(row) {
            Liveness::Dead => findings.push(RegionFinding::GhostRow { pid, bytes }),
            Liveness::Unknown => {
                anyone = true;
                findings.push(RegionFinding::UnknownOwner { pid, bytes });
            }
            Liveness::Alive => {
                anyone = true;
                tracked.insert(pid);
                if !driver_pids.contains(&pid) {
                    findings.push(RegionFinding::RowWithoutHolder { pid, bytes });
                }
            }
        }
    }
    for pid in driver_pids.iter().copied().filter(|pid| *pid != 0) {
        anyone = true;
        if !tracked.contains(&pid) {
            findings.push(RegionFinding::UntrackedHolder { pid });
        }
    }
    if !anyone && region.reference_count > 0 && !driver_pids.contains(&0) {
        let reference_count = region.reference_count;
        findings.push(RegionFinding::PinnedReferenceCount { reference_count });
    }
    findings
}

/// The readings of different files, first ones first.
///
/// One file can be reached through several names (`/dev/shm`, `/proc/<pid>/root/dev/shm`), and two
/// containers can each have a file of one name: device and inode tell.
#[must_use]
pub fn distinct_files(readings: &[RegionReading]) -> Vec<&RegionReading> {
    let mut seen = BTreeSet::new();
    readings.iter().filter(|reading| seen.insert(reading.file)).collect()
}

/// Totals summed over files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumOverFiles {
    /// How many different files were summed.
    pub file_count: usize,
    /// Whether they are about more than one device. Then the sum is only an upper bound: a mesh
    /// buffer is booked at its full size on each device that has a part of it.
    pub is_upper_bound: bool,
    /// How many totals were left out because they cannot be true.
    pub totals_left_out: usize,
    bytes: [u128; RegionKind::ALL.len()],
}

impl SumOverFiles {
    /// The sum for `kind`, in bytes.
    #[must_use]
    pub fn bytes(&self, kind: RegionKind) -> u128 {
        self.bytes[kind.index()]
    }
}

/// Sums the totals of different files: of one device over containers that do not share a region,
/// or over devices.
#[must_use]
pub fn sum_over_files(readings: &[RegionReading]) -> SumOverFiles {
    let files = distinct_files(readings);
    let devices: BTreeSet<u64> = files.iter().map(|reading| reading.name_id).collect();
    let mut sum = SumOverFiles {
        file_count: files.len(),
        is_upper_bound: devices.len() > 1,
        totals_left_out: 0,
        bytes: [0; RegionKind::ALL.len()],
    };
    for reading in files {
        for (kind, bytes) in reading.region.totals.iter() {
            sum.bytes[kind.index()] += u128::from(bytes);
        }
        sum.totals_left_out += reading.region.wrapped_totals();
    }
    sum
}
