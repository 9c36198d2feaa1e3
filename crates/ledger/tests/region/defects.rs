//! The ten defects of tt-metal's accounting that make naive sums wrong, each reported as what it
//! is. The samples are written by C code.

use std::collections::BTreeSet;

use telltale_harness::Scratch;
use telltale_ledger::region::{
    CounterPlace, LayoutVariant, Liveness, PROCESS_ROWS, Region, RegionFinding, RegionKind,
    RegionReading, distinct_files, holder_findings, read, sum_over_files,
};

use crate::region::samples::{ID, NOW, make, sample};

/// The holder findings in short, with these pids in the driver's list and these rows' liveness.
fn holders(region: &Region, driver: &[u32], liveness: impl Fn(u32) -> Liveness) -> Vec<String> {
    let driver = BTreeSet::from_iter(driver.iter().copied());
    let findings = holder_findings(region, &driver, |row| liveness(row.pid));
    let short = |finding: &RegionFinding| match finding {
        RegionFinding::GhostRow { pid, bytes } => format!("ghost {pid} {}", bytes.sum()),
        RegionFinding::UnknownOwner { pid, bytes } => format!("unknown {pid} {}", bytes.sum()),
        RegionFinding::RowWithoutHolder { pid, .. } => format!("no holder {pid}"),
        RegionFinding::UntrackedHolder { pid } => format!("untracked {pid}"),
        RegionFinding::PinnedReferenceCount { reference_count } => {
            format!("pinned {reference_count}")
        }
        other => panic!("{other:?} is no finding about holders"),
    };
    findings.iter().map(short).collect()
}

/// Readings of samples in one directory each, so that all are different files.
fn readings(samples: &[(u64, &str)]) -> Vec<RegionReading> {
    let read_one = |(id, fields): &(u64, &str)| {
        let scratch = Scratch::new();
        make(scratch.path(), *id, LayoutVariant::V3, fields);
        let kept = read(scratch.path(), *id, NOW).expect("the sample is a region");
        (scratch, kept)
    };
    // The directories live until all are read: a removed file's inode may be given out again.
    let all: Vec<_> = samples.iter().map(read_one).collect();
    all.into_iter().map(|(_, kept)| kept).collect()
}

#[test]
fn defect_1_a_sum_over_devices_is_only_an_upper_bound() {
    let mesh = readings(&[(1, "total.dram=4096"), (2, "total.dram=4096")]);
    let sum = sum_over_files(&mesh);
    assert_eq!((sum.file_count, sum.is_upper_bound), (2, true));
    assert_eq!(sum.bytes(RegionKind::Dram), 8192);
    assert!(!sum_over_files(&mesh[..1]).is_upper_bound);
}

#[test]
fn defect_2_the_circular_buffer_total_is_the_last_writers() {
    let rows = "total.cb=300 process.0.pid=1 process.0.cb=200 process.1.pid=2 process.1.cb=300";
    let expected = [RegionFinding::CbLastWriterWins { total_bytes: 300, rows_bytes: 500 }];
    for variant in [LayoutVariant::V1, LayoutVariant::V2, LayoutVariant::V3] {
        assert_eq!(sample(variant, rows).findings, expected);
    }
    // Version 4 adds differences, so there the same numbers are drift.
    let drift = RegionFinding::Drift { kind: RegionKind::Cb, total_bytes: 300, rows_bytes: 500 };
    assert_eq!(drift.disagreement(), Some((RegionKind::Cb, -200)));
    assert_eq!(sample(LayoutVariant::V4, rows).findings, [drift]);
}

#[test]
fn defect_3_chip_rows_keep_what_ended_processes_held() {
    let fields = "total.l1=100 process.0.pid=1 process.0.l1=100 \
                  chip.0.chip_id=1 chip.0.l1=70 chip.1.chip_id=2 chip.1.l1=80";
    let (total_bytes, chips_bytes) = (100, 150);
    let expected =
        [RegionFinding::ChipRowsExceedTotals { kind: RegionKind::L1, total_bytes, chips_bytes }];
    for variant in [LayoutVariant::V1, LayoutVariant::V3, LayoutVariant::V4] {
        assert_eq!(sample(variant, fields).findings, expected);
    }
}

#[test]
fn defect_4_a_full_table_hides_further_processes() {
    let rows: String = (0..PROCESS_ROWS)
        .map(|row| format!(" process.{row}.pid={} process.{row}.dram=10", row + 1))
        .collect();
    let full = sample(LayoutVariant::V3, &format!("total.dram=650{rows}"));
    let drift = RegionFinding::Drift { kind: RegionKind::Dram, total_bytes: 650, rows_bytes: 640 };
    assert_eq!(full.findings, [RegionFinding::TableFull { rest_is_in_totals: true }, drift]);
    let full = sample(LayoutVariant::V4, &format!("total.dram=640{rows}"));
    assert_eq!(full.findings, [RegionFinding::TableFull { rest_is_in_totals: false }]);
    let driver: Vec<u32> = (1..=65).collect();
    assert_eq!(holders(&full, &driver, |_| Liveness::Alive), ["untracked 65"]);
}

#[test]
fn defect_5_totals_without_rows_come_from_processes_that_keep_none() {
    let region = sample(LayoutVariant::V3, "total.dram=4096 reference_count=1");
    let drift = RegionFinding::Drift { kind: RegionKind::Dram, total_bytes: 4096, rows_bytes: 0 };
    assert_eq!(drift.disagreement(), Some((RegionKind::Dram, 4096)));
    assert_eq!(region.findings, [RegionFinding::NoProcessRows, drift]);
    assert_eq!(holders(&region, &[70], |_| Liveness::Alive), ["untracked 70"]);
}

#[test]
fn defect_6_a_killed_process_leaves_its_row_bytes_and_reference() {
    let fields = "reference_count=1 total.dram=500 total.trace=12 \
                  process.3.pid=4242 process.3.dram=500 process.3.trace=12";
    let region = sample(LayoutVariant::V3, fields);
    assert_eq!(region.findings, []);
    assert_eq!(holders(&region, &[], |_| Liveness::Dead), ["ghost 4242 512", "pinned 1"]);
    // A process that the driver cannot name holds the device: the reference may be theirs.
    assert_eq!(holders(&region, &[0], |_| Liveness::Dead), ["ghost 4242 512"]);
    // A new process with the dead one's number does not bring the row to life.
    assert_eq!(holders(&region, &[4242], |_| Liveness::Dead), ["ghost 4242 512", "untracked 4242"]);
}

#[test]
fn defect_7_a_pid_of_another_namespace_is_not_taken_for_ours() {
    let fields = "total.dram=100 process.0.pid=1 process.0.dram=100";
    let region = sample(LayoutVariant::V3, fields);
    // The driver lists the container's process by its number here; the row has its number there.
    assert_eq!(
        holders(&region, &[5000], |_| Liveness::Unknown),
        ["unknown 1 100", "untracked 5000"]
    );
    // Our own process 1 lives, but it does not hold the device.
    assert_eq!(holders(&region, &[5000], |_| Liveness::Alive), ["no holder 1", "untracked 5000"]);
    let twice = sample(LayoutVariant::V3, "process.0.pid=1 process.1.pid=1 process.2.pid=1");
    assert_eq!(twice.findings, [RegionFinding::DuplicatePid { pid: 1 }]);
}

#[test]
fn defect_8_a_newer_process_that_refuses_an_older_region_is_untracked() {
    let region = sample(LayoutVariant::V3, "process.0.pid=10 reference_count=1");
    assert_eq!(holders(&region, &[10, 11], |_| Liveness::Alive), ["untracked 11"]);
}

#[test]
fn defect_9_files_of_one_name_are_distinguished_by_inode() {
    let containers = readings(&[(ID, "total.dram=100"), (ID, "total.dram=40")]);
    let mut seen = containers.clone();
    seen.push(containers[0].clone());
    assert_eq!(distinct_files(&seen), [&containers[0], &containers[1]]);
    let sum = sum_over_files(&seen);
    assert_eq!((sum.file_count, sum.is_upper_bound), (2, false));
    assert_eq!(sum.bytes(RegionKind::Dram), 140);
}

#[test]
fn defect_10_a_counter_that_raced_below_zero_is_absent_and_named() {
    // 2^64 - 4096, what a subtraction too many leaves.
    let raw = 18_446_744_073_709_547_520;
    let fields = "total.dram=18446744073709547520 total.l1=8 process.0.pid=9 process.0.l1=8 \
                  process.0.trace=18446744073709547520 \
                  chip.1.chip_id=1 chip.1.cb=18446744073709547520";
    let region = sample(LayoutVariant::V3, fields);
    let wrapped = |place, kind| RegionFinding::WrappedCounter { place, kind, raw };
    assert_eq!(
        region.findings,
        [
            wrapped(CounterPlace::Total, RegionKind::Dram),
            wrapped(CounterPlace::Chip { row: 1 }, RegionKind::Cb),
            wrapped(CounterPlace::Process { row: 0 }, RegionKind::Trace),
        ]
    );
    assert_eq!(region.totals.get(RegionKind::Dram), None);
    assert_eq!(region.totals.get(RegionKind::L1), Some(8));
    assert_eq!(region.rows_bytes(RegionKind::Trace), None);
    let sum = sum_over_files(&readings(&[(ID, fields)]));
    assert_eq!((sum.bytes(RegionKind::Dram), sum.totals_left_out), (0, 1));
}

#[test]
fn drift_keeps_its_sign() {
    let check = |total: u64, row: u64, expected: i128| {
        let fields = format!("total.dram={total} process.0.pid=1 process.0.dram={row}");
        let region = sample(LayoutVariant::V4, &fields);
        let found: Vec<_> =
            region.findings.iter().filter_map(RegionFinding::disagreement).collect();
        assert_eq!(found, [(RegionKind::Dram, expected)]);
    };
    check(10, 7, 3);
    check(7, 10, -3);
    check(0, 1 << 62, -(1 << 62));
}

#[test]
fn rows_without_a_process_are_named() {
    let releasing = sample(LayoutVariant::V4, "process.2.pid=-1 process.5.pid=-7");
    let invalid = |row, pid| RegionFinding::InvalidPid { row, pid };
    assert_eq!(releasing.findings, [RegionFinding::SlotReleasing { row: 2 }, invalid(5, -7)]);
    assert_eq!(releasing.processes, []);
    // Before version 4 no version wrote -1.
    assert_eq!(sample(LayoutVariant::V3, "process.2.pid=-1").findings, [invalid(2, -1)]);
}
