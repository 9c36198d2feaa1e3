//! What the writer leaves in a region, as C code and our own reader see it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_harness::{
    ChildGuard, ProcMount, Scratch, as_user, in_pid_namespace, needs_pid_namespaces, needs_root,
    wait_until,
};
use telltale_ledger::region::writer::{
    AttachError, PidNamespace, RegionLayout, RegionLosses, RegionOptions, RegionWriter, ended_pids,
};
use telltale_ledger::region::{
    LastUpdate, Layout, LayoutVariant, PROCESS_ROWS, RegionFinding, RegionKind, UpdateClock,
    file_name, read,
};

use crate::region::members::{TIMEOUT, attach, finish, options, order_command, region, remains};
use crate::region::samples::{ID, NOW, dump, make};

const LAYOUTS: [(RegionLayout, LayoutVariant); 3] = [
    (RegionLayout::V1, LayoutVariant::V1),
    (RegionLayout::V3, LayoutVariant::V3),
    (RegionLayout::V4, LayoutVariant::V4),
];

fn refused(directory: &Path, options: &RegionOptions) -> AttachError {
    RegionWriter::attach(directory, options).expect_err("the region refuses")
}

/// The C program's view of the region, stamps left out.
fn seen_by_c(directory: &Path, variant: LayoutVariant) -> Vec<String> {
    let mut lines = dump(&directory.join(file_name(ID)), variant);
    lines.retain(|line| !line.contains("last_update"));
    lines.retain(|line| !line.ends_with(".chip_id 4294967295"));
    lines
}

#[test]
fn c_code_reads_what_we_write() {
    let pid = std::process::id();
    for (layout, variant) in LAYOUTS {
        let scratch = Scratch::new();
        let writer = attach(scratch.path(), &options(layout));
        writer.record_allocation(RegionKind::Dram, 4096, 3);
        writer.record_allocation(RegionKind::L1, 300, 3);
        writer.record_allocation(RegionKind::L1Small, 20, 3);
        writer.record_allocation(RegionKind::Trace, 10, 9);
        writer.record_allocation(RegionKind::Cb, 5, 3);
        writer.record_allocation(RegionKind::Kernel, 2, 3);
        writer.record_deallocation(RegionKind::Dram, 96, 3);
        let mut expected: Vec<String> = match layout {
            RegionLayout::V1 => vec!["version 1", "board_serial 1834"],
            RegionLayout::V3 => vec!["version 3", "asic_id 469504"],
            RegionLayout::V4 => vec!["version 4", "asic_id 469504", "init_state 1380271193"],
        }
        .into_iter()
        .map(str::to_owned)
        .collect();
        expected.extend(["num_active_processes 1".into(), "reference_count 1".into()]);
        expected.push("device_id 3".into());
        let mut counters = vec![("dram", 4000), ("l1", 300), ("l1_small", 20), ("cb", 5)];
        if layout == RegionLayout::V1 {
            counters.push(("kernel", 2));
        }
        for (kind, bytes) in &counters {
            expected.push(format!("total.{kind} {bytes}"));
            expected.push(format!("chip.0.{kind} {bytes}"));
            expected.push(format!("process.0.{kind} {bytes}"));
        }
        for place in ["total", "chip.1", "process.0"] {
            expected.push(format!("{place}.trace 10"));
        }
        expected.extend(
            ["chip.0.chip_id 3", "chip.1.chip_id 9", "chip.1.is_remote 1"].map(str::to_owned),
        );
        expected.extend([format!("process.0.pid {pid}"), "process.0.name trainer".into()]);
        let mut seen = seen_by_c(scratch.path(), variant);
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected, "{layout:?}");
        let kernels = u64::from(layout != RegionLayout::V1);
        assert_eq!(writer.losses(), RegionLosses { kind_records: kernels, ..Default::default() });
    }
}

#[test]
fn our_reader_finds_nothing_wrong_with_it() {
    for (layout, variant) in LAYOUTS {
        let scratch = Scratch::new();
        let writer = attach(scratch.path(), &options(layout));
        writer.record_allocation(RegionKind::Dram, 4096, 3);
        let region = region(scratch.path());
        assert_eq!((region.variant, region.findings.as_slice()), (variant, [].as_slice()));
        let clock = match layout {
            RegionLayout::V1 => UpdateClock::Monotonic,
            RegionLayout::V3 | RegionLayout::V4 => UpdateClock::Epoch,
        };
        for stamp in [region.last_update, region.processes[0].last_update] {
            let reported = match stamp {
                LastUpdate::Ago { clock, .. } => clock,
                // The tests' present is not the machine's, so the stamp can lie ahead of it.
                LastUpdate::Unknown { stamp_ns } if stamp_ns < 1 << 59 => UpdateClock::Monotonic,
                LastUpdate::Unknown { .. } => UpdateClock::Epoch,
                LastUpdate::Never => panic!("{layout:?}: no stamp"),
            };
            assert_eq!(reported, clock, "{layout:?}");
        }
    }
}

#[test]
fn the_last_to_leave_resets_and_the_file_persists() {
    for (layout, _) in LAYOUTS.into_iter().filter(|(layout, _)| layout.rows_are_optional()) {
        let scratch = Scratch::new();
        let first = attach(scratch.path(), &options(layout));
        let second = attach(scratch.path(), &RegionOptions { per_pid: false, ..options(layout) });
        first.record_allocation(RegionKind::Dram, 100, 3);
        second.record_allocation(RegionKind::Dram, 20, 3);
        second.record_allocation(RegionKind::L1, 3, 8);
        assert_eq!(remains(&region(scratch.path())), (123, 1, 123, 2));
        assert!(first.has_row() && !second.has_row());
        first.detach().expect("nobody holds the lock");
        assert_eq!(remains(&region(scratch.path())), (23, 0, 23, 1));
        drop(second);
        let left = region(scratch.path());
        assert_eq!(remains(&left), (0, 0, 0, 0));
        assert_eq!((left.process_count, left.chips.len()), (0, 1));
        assert_eq!(left.findings, []);
        let again = attach(scratch.path(), &options(layout));
        again.record_allocation(RegionKind::Dram, 1, 3);
        assert_eq!(remains(&region(scratch.path())), (1, 1, 1, 1));
    }
}

#[test]
fn one_process_can_hold_several_rows() {
    let scratch = Scratch::new();
    let writers = [(); 2].map(|()| attach(scratch.path(), &options(RegionLayout::V1)));
    writers[0].record_allocation(RegionKind::Dram, 5, 3);
    writers[1].record_allocation(RegionKind::Dram, 6, 3);
    let seen = region(scratch.path());
    assert_eq!(remains(&seen), (11, 2, 11, 2));
    assert_eq!(seen.findings, [RegionFinding::DuplicatePid { pid: std::process::id() }]);
    drop(writers);
    assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
}

#[test]
fn frees_beyond_what_was_recorded_take_from_nobody() {
    for per_pid in [true, false] {
        let scratch = Scratch::new();
        let member = RegionOptions { per_pid, ..options(RegionLayout::V3) };
        let other = attach(scratch.path(), &RegionOptions { pid: 1, ..member.clone() });
        other.record_allocation(RegionKind::L1, 1000, 3);
        let writer = attach(scratch.path(), &member);
        writer.record_allocation(RegionKind::L1, 10, 3);
        writer.record_deallocation(RegionKind::L1, 25, 3);
        writer.record_deallocation(RegionKind::L1, 5, 77);
        writer.record_allocation(RegionKind::L1, u64::MAX, 3);
        let seen = region(scratch.path());
        assert_eq!(seen.totals.get(RegionKind::L1), Some(1000));
        assert_eq!(seen.chips_bytes(RegionKind::L1), Some(1000));
        let losses = writer.losses();
        assert_eq!((losses.excess_free_bytes, losses.refused_records), (20, 1));
        drop(writer);
        assert_eq!(region(scratch.path()).totals.sum(), 1000);
    }
}

#[test]
fn full_tables_are_counted_and_totals_stay_right() {
    let scratch = Scratch::new();
    let member = options(RegionLayout::V3);
    let writers: Vec<_> = (0..=PROCESS_ROWS).map(|_| attach(scratch.path(), &member)).collect();
    for writer in &writers {
        writer.record_allocation(RegionKind::Dram, 10, 3);
    }
    let missing: Vec<bool> = writers.iter().map(|writer| writer.losses().row_missing).collect();
    assert_eq!(missing.iter().position(|row| *row), Some(PROCESS_ROWS));
    let seen = region(scratch.path());
    assert_eq!((seen.totals.sum(), seen.processes.len(), seen.reference_count), (650, 64, 65));
    assert!(seen.findings.contains(&RegionFinding::TableFull { rest_is_in_totals: true }));
    for chip in 0..20 {
        writers[0].record_allocation(RegionKind::L1, 1, chip);
    }
    // Row 0 is chip 3's and 15 rows are free; of 19 other chips 4 get none.
    assert_eq!(writers[0].losses().chip_records, 4);
    assert_eq!(region(scratch.path()).totals.get(RegionKind::L1), Some(20));
    drop(writers);
    assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
}

/// A version 3 region with a row of `pid`, as a killed process leaves it.
fn left_behind(directory: &Path, pid: u32) {
    let fields = format!(
        "reference_count=2 num_active_processes=2 total.dram=150 total.cb=7 chip.0.chip_id=3 \
         chip.0.dram=150 chip.0.cb=7 process.4.pid={pid} process.4.dram=100 process.4.cb=7 \
         process.9.pid=1 process.9.dram=50"
    );
    let unused: String = (1..16).map(|row| format!(" chip.{row}.chip_id=4294967295")).collect();
    make(directory, ID, LayoutVariant::V3, &(fields + &unused));
}

#[test]
fn a_dead_process_is_taken_out_by_the_next() {
    // Ours: a restarted container gets its predecessor's number.
    for pid in [4242, std::process::id()] {
        let scratch = Scratch::new();
        left_behind(scratch.path(), pid);
        let member = options(RegionLayout::V3);
        let writer = RegionWriter::attach_with(scratch.path(), &member, |asked| {
            assert_eq!(*asked, BTreeSet::from([1, pid]));
            BTreeSet::from([pid])
        })
        .expect("the region can be attached to");
        let seen = region(scratch.path());
        assert_eq!(remains(&seen), (50, 2, 50, 2));
        assert_eq!((seen.process_count, seen.findings.as_slice()), (2, [].as_slice()));
        drop(writer);
        assert_eq!(remains(&region(scratch.path())), (50, 1, 50, 1));
    }
}

#[test]
fn rows_of_other_namespaces_are_left_alone() {
    for pid in [4242, std::process::id()] {
        let scratch = Scratch::new();
        left_behind(scratch.path(), pid);
        let private =
            RegionOptions { pid_namespace: PidNamespace::Private, ..options(RegionLayout::V3) };
        let ask = |_: &BTreeSet<u32>| panic!("nobody here knows");
        let writer = RegionWriter::attach_with(scratch.path(), &private, ask)
            .expect("the region can be attached to");
        assert_eq!(remains(&region(scratch.path())), (157, 3, 157, 3));
        drop(writer);
        assert_eq!(remains(&region(scratch.path())), (157, 2, 157, 2));
    }
}

#[test]
fn an_interrupted_claim_or_leave_is_finished() {
    // The intent word: row + 1 above, the references without that row below.
    let check = |references: u32, row_is_taken: bool, expected: u32| {
        let scratch = Scratch::new();
        let pid = if row_is_taken { 1 } else { 0 };
        let fields = format!("reference_count={references} process.2.pid={pid}");
        let path = make(scratch.path(), ID, LayoutVariant::V3, &fields);
        let file = fs::File::options().write(true).open(path).expect("the sample exists");
        let intent: u64 = (3 << 32) | 5;
        file.write_all_at(&intent.to_le_bytes(), 8544).expect("the sample is writable");
        let writer = attach(scratch.path(), &options(RegionLayout::V3));
        assert_eq!(region(scratch.path()).reference_count, expected + 1);
        drop(writer);
    };
    check(5, false, 5);
    check(6, false, 5);
    check(5, true, 6);
    check(6, true, 6);
}

#[test]
fn a_row_that_somebody_else_freed_is_not_written_again() {
    let scratch = Scratch::new();
    let writer = attach(scratch.path(), &options(RegionLayout::V1));
    writer.record_allocation(RegionKind::Dram, 100, 3);
    let path = scratch.join(file_name(ID));
    let file = fs::File::options().write(true).open(path).expect("the region exists");
    let pid_offset = u64::try_from(Layout::of(LayoutVariant::V1).process(0)).expect("small");
    file.write_all_at(&99_i32.to_le_bytes(), pid_offset).expect("the region is writable");
    writer.record_allocation(RegionKind::Dram, 7, 3);
    assert_eq!(region(scratch.path()).totals.sum(), 100);
    assert!(!writer.has_row());
    let losses = writer.losses();
    assert!(losses.row_lost && losses.refused_records == 1, "{losses:?}");
    drop(writer);
    assert_eq!(region(scratch.path()).processes[0].pid, 99);
}

#[test]
fn regions_of_another_layout_are_left_as_they_are() {
    let variants = [LayoutVariant::V1WithoutKernel, LayoutVariant::V1Unpadded, LayoutVariant::V2];
    for (layout, own) in LAYOUTS {
        let others = LAYOUTS.into_iter().map(|(_, variant)| variant).filter(|other| *other != own);
        for variant in variants.into_iter().chain(others) {
            let scratch = Scratch::new();
            let path = make(scratch.path(), ID, variant, "total.dram=5 reference_count=0");
            let before = fs::read(&path).expect("the sample exists");
            let error = refused(scratch.path(), &options(layout));
            let number = Some(Layout::of(variant).version);
            match error {
                AttachError::Unsupported { version, .. } => assert_eq!(version, number),
                other => panic!("{variant:?}: {other:?}"),
            }
            assert_eq!(fs::read(&path).expect("the sample exists"), before);
        }
    }
}

#[test]
fn an_empty_or_zeroed_file_becomes_a_region() {
    for (layout, variant) in LAYOUTS {
        for size_bytes in [0, Layout::of(variant).size_bytes] {
            let scratch = Scratch::new();
            fs::write(scratch.join(file_name(ID)), vec![0; size_bytes]).expect("writable");
            let writer = attach(scratch.path(), &options(layout));
            writer.record_allocation(RegionKind::Dram, 9, 3);
            assert_eq!(region(scratch.path()).findings, []);
        }
    }
}

#[test]
fn what_stands_in_the_way_is_refused() {
    let check = |place: fn(&Path)| {
        let scratch = Scratch::new();
        place(&scratch.join(file_name(ID)));
        let error = refused(scratch.path(), &options(RegionLayout::V1));
        assert!(matches!(error, AttachError::NotARegularFile { .. }), "{error:?}");
    };
    check(|path| fs::create_dir(path).expect("a directory can be made"));
    check(|path| symlink("/tmp/no-such-file", path).expect("a link can be made"));
    check(|path| {
        let made = Command::new("mkfifo").arg(path).status();
        assert!(made.expect("mkfifo is part of coreutils").success());
    });
    let scratch = Scratch::new();
    let missing = refused(&scratch.join("none"), &options(RegionLayout::V1));
    assert!(matches!(missing, AttachError::Directory { .. }), "{missing:?}");
    for member in [
        RegionOptions { pid: 0, ..options(RegionLayout::V1) },
        RegionOptions { pid: u32::MAX, ..options(RegionLayout::V1) },
        RegionOptions { device_id: u32::MAX, ..options(RegionLayout::V1) },
    ] {
        let error = refused(scratch.path(), &member);
        assert!(matches!(error, AttachError::Options { .. }), "{error:?}");
    }
    assert!(!scratch.join(file_name(ID)).exists());
}

#[test]
fn a_region_that_stays_locked_is_given_up() {
    let scratch = Scratch::new();
    let path = make(scratch.path(), ID, LayoutVariant::V1, "");
    let holder = fs::File::open(path).expect("the sample exists");
    holder.lock().expect("a reader can lock the file");
    let error = refused(scratch.path(), &options(RegionLayout::V1));
    assert!(matches!(error, AttachError::Busy { .. }), "{error:?}");
}

#[test]
fn long_names_are_cut_between_characters() {
    let scratch = Scratch::new();
    let process_name = "ü".repeat(40);
    let member = RegionOptions { process_name, ..options(RegionLayout::V1) };
    let _writer = attach(scratch.path(), &member);
    assert_eq!(region(scratch.path()).processes[0].name, "ü".repeat(31));
}

#[test]
fn a_row_taken_again_while_its_owner_was_searched_for_stays() {
    let scratch = Scratch::new();
    left_behind(scratch.path(), 4242);
    let path = scratch.join(file_name(ID));
    let stamp_offset = Layout::of(LayoutVariant::V3).process_last_update(4);
    let writer = RegionWriter::attach_with(scratch.path(), &options(RegionLayout::V3), |_| {
        let file = fs::File::options().write(true).open(&path).expect("the sample exists");
        let offset = u64::try_from(stamp_offset).expect("small");
        file.write_all_at(&7_u64.to_le_bytes(), offset).expect("the sample is writable");
        BTreeSet::from([1, 4242])
    })
    .expect("the region can be attached to");
    let pids: Vec<u32> = region(scratch.path()).processes.iter().map(|row| row.pid).collect();
    assert_eq!(pids.len(), 2);
    assert!(pids.contains(&4242) && !pids.contains(&1), "{pids:?}");
    drop(writer);
}

#[test]
fn the_ended_are_distinguished_from_the_living() {
    let mut ended = Command::new("true").spawn().expect("true is part of coreutils");
    ended.wait().expect("a child can be waited for");
    let living = ChildGuard::spawn(Command::new("sleep").arg("600"));
    let asked = BTreeSet::from([0, 1, living.id(), ended.id(), u32::MAX]);
    assert_eq!(ended_pids(&asked), BTreeSet::from([ended.id()]));
}

#[test]
fn a_process_in_a_pid_namespace_keeps_its_row() {
    let name = "region::writer::a_process_in_a_pid_namespace_keeps_its_row";
    if !needs_pid_namespaces(name) {
        return;
    }
    let itself = std::env::current_exe().expect("a test knows its own program");
    // A number that is unused out here, where the kernel would call its bearer dead.
    let unused = (3..).find(|pid| !Path::new(&format!("/proc/{pid}")).exists()).expect("few run");
    for layout in [RegionLayout::V1, RegionLayout::V3] {
        let scratch = Scratch::new();
        let number = if layout == RegionLayout::V1 { 1 } else { 3 };
        let order = format!("layout={number} rows=yes hold=500");
        let member = order_command(&itself, scratch.path(), &order);
        // The shell has number 1, and each `sh` takes the next one; `seq` is one of them.
        let script = "for _ in $(seq 4 \"$0\"); do sh -c :; done; \"$@\"; exit $?";
        let mut command = in_pid_namespace("sh", ProcMount::Own);
        command.args(["-c", script, &unused.to_string()]).arg(&itself).args(member.get_args());
        command.envs(member.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let child = ChildGuard::spawn(&mut command);
        let row = || {
            let seen = read(scratch.path(), ID, NOW).ok()?.region;
            Some(seen.processes.first()?.bytes.sum())
        };
        wait_until("the member to hold its share", TIMEOUT, || row() == Some(500));
        let pid = region(scratch.path()).processes[0].pid;
        assert!(pid == unused || !Path::new(&format!("/proc/{pid}")).exists(), "{pid}");
        let host = attach(scratch.path(), &options(layout));
        assert_eq!(remains(&region(scratch.path())).0, 500, "the row of {pid} stays");
        drop(host);
        finish(child);
        assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
    }
}

#[test]
fn users_share_version_1_and_not_version_3() {
    let name = "users_share_version_1_and_not_version_3";
    if !needs_root(name) {
        return;
    }
    let scratch = Scratch::new();
    scratch.set_mode(0o1777);
    let itself = std::env::current_exe().expect("a test knows its own program");
    let program = scratch.join("member");
    fs::copy(itself, &program).expect("the scratch directory is writable");
    let run = |uid: u32, order: &str| {
        let status = as_user(uid, uid, order_command(&program, scratch.path(), order))
            .status()
            .expect("the member starts");
        assert!(status.success(), "uid {uid}: {order}: {status}");
    };
    let path = scratch.join(file_name(ID));
    let mode_after = |layout: &str| {
        // The shell sets the umask that lets version 1 be shared.
        let order = format!("layout={layout} rows=yes");
        let member = order_command(&program, scratch.path(), &order);
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(&program).args(member.get_args());
        shell.envs(member.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
        let status = as_user(12_345, 12_345, shell).status().expect("the shell starts");
        assert!(status.success(), "{status}");
        fs::metadata(&path).expect("the region exists").permissions().mode() & 0o7777
    };
    assert_eq!(mode_after("1"), 0o666);
    run(12_346, "layout=1 rows=yes");
    assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
    fs::remove_file(&path).expect("root may remove it");
    assert_eq!(mode_after("3"), 0o600);
    run(12_346, "layout=3 rows=yes refused=PermissionDenied");
}

#[test]
fn a_full_file_system_costs_the_region_and_not_the_process() {
    let name = "a_full_file_system_costs_the_region_and_not_the_process";
    if !needs_pid_namespaces(name) {
        return;
    }
    let scratch = Scratch::new();
    let program = std::env::current_exe().expect("a test knows its own program");
    let member = order_command(&program, scratch.path(), "layout=1 rows=yes refused=NoSpace");
    let script = "mount -t tmpfs -o size=4k none \"$1\" && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(scratch.path()).arg(&program);
    command.args(member.get_args()).stdout(Stdio::null());
    command.envs(member.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = ChildGuard::spawn(&mut command);
    let status = child.wait_within("a member without space", TIMEOUT);
    assert!(status.success(), "{status}");
    assert!(read(scratch.path(), ID, NOW).is_err(), "the mount was the child's own");
}
