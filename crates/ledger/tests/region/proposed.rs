//! Version 4, as tt-metal proposes it: its word of initialisation, its rows that are given up in two
//! steps, and its own processes beside ours.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use telltale_harness::{ChildGuard, Scratch, compile_c, rounds, wait_until};
use telltale_ledger::region::writer::{AttachError, RegionLayout, RegionOptions, RegionWriter};
use telltale_ledger::region::{
    LayoutVariant, PROCESS_ROWS, RegionKind, RegionReadError, file_name, read,
};

use crate::region::members::{TIMEOUT, attach, finish, options, region, remains, start};
use crate::region::samples::{ID, NOW, make};

/// Where our writers note what they are about to do.
const INTENT: u64 = 8544;

fn refused(directory: &Path) -> AttachError {
    let attached = RegionWriter::attach(directory, &options(RegionLayout::V4));
    attached.expect_err("the region refuses")
}

/// A region with these fields in which one of our writers died at `intent`.
fn interrupted(directory: &Path, fields: &str, intent: u64) {
    let path = make(directory, ID, LayoutVariant::V4, fields);
    let file = File::options().write(true).open(path).expect("the sample exists");
    file.write_all_at(&intent.to_le_bytes(), INTENT).expect("the sample is writable");
}

#[test]
fn a_region_that_somebody_else_initialises_is_not_touched() {
    let scratch = Scratch::new();
    make(scratch.path(), ID, LayoutVariant::V4, "init_state=1 total.dram=5");
    assert!(matches!(refused(scratch.path()), AttachError::NotReady { .. }));
    let unread = read(scratch.path(), ID, NOW).expect_err("it is not ready");
    assert!(matches!(unread, RegionReadError::Decode { .. }), "{unread:?}");
}

#[test]
fn what_one_of_ours_began_before_it_was_killed_is_finished() {
    // Initialising: the row behind the last one.
    let scratch = Scratch::new();
    interrupted(scratch.path(), "version=0 init_state=1", 65 << 32);
    let writer = attach(scratch.path(), &options(RegionLayout::V4));
    writer.record_allocation(RegionKind::Dram, 7, 3);
    assert_eq!(remains(&region(scratch.path())), (7, 1, 7, 1));
    drop(writer);
    assert_eq!(region(scratch.path()).findings, []);
    // Giving up row 2, with one reference beside.
    let scratch = Scratch::new();
    let fields = "reference_count=2 total.dram=150 process.2.pid=-1 process.2.dram=100 \
                  process.9.pid=1 process.9.dram=50";
    interrupted(scratch.path(), fields, (3 << 32) | 1);
    drop(attach(scratch.path(), &options(RegionLayout::V4)));
    let left = region(scratch.path());
    assert_eq!((left.totals.sum(), left.processes.len(), left.reference_count), (50, 1, 1));
    assert_eq!(left.findings, []);
}

#[test]
fn every_process_has_a_row_or_is_nowhere() {
    let scratch = Scratch::new();
    let member = RegionOptions { per_pid: false, ..options(RegionLayout::V4) };
    let writers: Vec<_> = (0..PROCESS_ROWS).map(|_| attach(scratch.path(), &member)).collect();
    assert!(writers.iter().all(RegionWriter::has_row));
    assert!(matches!(refused(scratch.path()), AttachError::TableFull { .. }));
    assert_eq!(region(scratch.path()).reference_count, 64);
    drop(writers);
    assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
}

/// A command that runs tt-metal's kind of process on the region of `directory`.
fn peer(directory: &Path, words: &[&str]) -> Command {
    static PROGRAM: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/region/peer.c");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("region-peer");
        compile_c(&source, &out, &["-std=gnu11", "-O2"])
    });
    let mut command = Command::new(program);
    command.arg(directory.join(file_name(ID))).args(words);
    command.stdin(Stdio::piped());
    command
}

#[test]
fn beside_its_own_processes_no_byte_is_lost() {
    let scratch = Scratch::new();
    let rounds = rounds(200, 5000).to_string();
    let [ours, theirs] = [1000_u64, 20_000];
    let order = format!("layout=4 rows=yes rounds={rounds} pairs=50 hold={ours}");
    let mut members: Vec<ChildGuard> = (0..2).map(|_| start(scratch.path(), &order)).collect();
    let words = [rounds.as_str(), "50", "20000"];
    members.extend((0..2).map(|_| ChildGuard::spawn(&mut peer(scratch.path(), &words))));
    wait_until("all to hold their share", TIMEOUT, || {
        let Ok(reading) = read(scratch.path(), ID, NOW) else { return false };
        let shares: Vec<u128> =
            reading.region.processes.iter().map(|row| row.bytes.sum()).collect();
        let holding = |bytes: u64| shares.iter().filter(|share| **share == bytes.into()).count();
        holding(ours) == 2 && holding(theirs) == 2
    });
    let seen = region(scratch.path());
    assert_eq!(seen.totals.sum(), 2 * u128::from(ours + theirs));
    assert_eq!((seen.reference_count, seen.findings.as_slice()), (4, [].as_slice()));
    members.into_iter().for_each(finish);
    assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
}

#[test]
fn the_killed_of_either_kind_are_taken_out_by_the_other() {
    let scratch = Scratch::new();
    let holds = |pid: u32| {
        let rows = read(scratch.path(), ID, NOW).map(|reading| reading.region.processes);
        rows.is_ok_and(|rows| rows.iter().any(|row| row.pid == pid && row.bytes.sum() > 0))
    };
    let mut theirs = ChildGuard::spawn(&mut peer(scratch.path(), &["0", "0", "5000"]));
    wait_until("the row of tt-metal's process", TIMEOUT, || holds(theirs.id()));
    theirs.kill();
    let mut ours = start(scratch.path(), "layout=4 rows=yes hold=70");
    wait_until("our row", TIMEOUT, || holds(ours.id()));
    assert_eq!(region(scratch.path()).totals.sum(), 70);
    ours.kill();
    let ended = peer(scratch.path(), &["1", "1"]).status().expect("it runs");
    assert!(ended.success(), "{ended}");
    let left = region(scratch.path());
    assert_eq!((left.totals.sum(), left.processes.len(), left.reference_count), (0, 0, 0));
}
