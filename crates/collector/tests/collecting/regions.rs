//! Foreign regions in a snapshot: rows of the living, of the dead, and what is in no row.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, chown};
use std::process::Command;

use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, needs_root};
use telltale_ledger::region::{Layout, file_name};
use telltale_schema::snapshot::{Accounting, HeldUsage, ProcessSource, ProcessState};

use crate::collecting::bench::{Bench, dram, noticed, process, subjects};
use crate::collecting::workload::{ROOT, Role, command, let_begin, start};

/// A version 1 region of the chip in `place`, with a DRAM total and rows of (pid, name, bytes).
pub(crate) fn write_region(bench: &Bench, place: usize, total: u64, rows: &[(u32, &str, u64)]) {
    let id = bench.chips[place].composite_id().unwrap().value;
    let directory = bench.machine.root().join("dev/shm");
    fs::create_dir_all(&directory).unwrap();
    let file = fs::File::create(directory.join(file_name(id))).unwrap();
    let layout = Layout::find(1, 9280).unwrap();
    file.set_len(9280).unwrap();
    file.write_all_at(&1u32.to_le_bytes(), 0).unwrap();
    file.write_all_at(&(id >> 8).to_le_bytes(), 24).unwrap();
    file.write_all_at(&total.to_le_bytes(), 48).unwrap();
    let now = u64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos(),
    )
    .unwrap();
    for (row, (pid, name, bytes)) in rows.iter().enumerate() {
        let at = u64::try_from(
            layout.process_counter(row, telltale_ledger::region::RegionKind::Dram).unwrap(),
        )
        .unwrap();
        // pid, then the counters, then time and name (docs/regions.md).
        file.write_all_at(&pid.to_le_bytes(), at - 8).unwrap();
        file.write_all_at(&bytes.to_le_bytes(), at).unwrap();
        file.write_all_at(&now.to_le_bytes(), at + 48).unwrap();
        file.write_all_at(name.as_bytes(), at + 56).unwrap();
    }
}

fn comm(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim_end().to_owned()
}

/// Whether this is the first PID namespace, from which every process is seen.
fn sees_all() -> bool {
    fs::read_link("/proc/self/ns/pid").unwrap().to_str() == Some("pid:[4026531836]")
}

#[test]
fn rows_are_the_livings_the_deads_or_nobodys() {
    let mut bench = Bench::new(MachineKind::N300);
    let tracked = start(&bench.child(Role::Ledger, 1_000));
    let me = std::process::id();
    let (mine, theirs) = (comm(me), comm(tracked.id()));
    let mut gone = start(&bench.child(Role::Ledger, 0));
    drop(gone.child().stdin.take());
    gone.wait_within("the workload to end", std::time::Duration::from_secs(30));
    let rows = [
        (tracked.id(), theirs.as_str(), 900),
        (me, mine.as_str(), 20),
        (gone.id(), theirs.as_str(), 3),
        // Our pid under another name: a number of another namespace, or given out again.
        (me, "somebody", 4),
    ];
    write_region(&bench, 0, 1_000, &rows);
    bench.machine.set_holders(0, &[me, tracked.id()]).unwrap();
    let snapshot = bench.collector().collect();
    let parts = dram(&snapshot, 0);
    assert_eq!(parts.processes_bytes, 1_000 + 20, "the ledger beats its row");
    assert_eq!(parts.ghost_bytes, 3 + 4);
    assert_eq!(parts.unattributed_bytes, 1_000 - 927);
    assert_eq!(process(&snapshot, me).known_by, Some(ProcessSource::Region));
    assert_eq!(process(&snapshot, me).state, ProcessState::Alive);
    let held = &process(&snapshot, me).devices[0];
    assert_eq!(held.kinds[0].usage, HeldUsage::BytesOnly { live_bytes: 20 });
    assert_eq!((held.live_buffers, parts.live_buffers), (None, None));
    assert_eq!(process(&snapshot, tracked.id()).known_by, Some(ProcessSource::Ledger));
    let found = subjects(&snapshot);
    assert!(found.iter().all(|text| text.contains("several rows")), "{found:?}");
    // What certainly no process has is removed; whether our pid is another namespace's is in doubt.
    let report = telltale_collector::clean(bench.options()).unwrap();
    assert_eq!(report.removed, []);
    let why =
        |list: &[telltale_collector::Cleaned]| list.iter().map(|one| one.why.clone()).collect();
    let [mended, left]: [Vec<String>; 2] = [why(&report.mended), why(&report.left)];
    if sees_all() {
        assert_eq!(mended, ["took out the rows of 1 ended process, and 3 bytes"], "{left:?}");
        assert!(left[0].starts_with("1 row of dead processes has 4 bytes; "), "{left:?}");
    } else {
        assert!(left[0].starts_with("2 rows of dead processes have 7 bytes; "), "{left:?}");
        assert_eq!(mended, [""; 0]);
    }
}

/// A user who means harm.
const MALLORY: u32 = 61_005;

#[test]
fn a_name_of_another_user_that_no_writer_gives_is_a_note() {
    if !needs_root("node::regions::a_name_of_another_user_that_no_writer_gives_is_a_note") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    write_region(&bench, 0, 1000, &[]);
    let shm = bench.machine.root().join("dev/shm");
    let odd: [&[u8]; 4] = [b"\xff", b"\"'", b"\\", b"1\n"];
    for middle in odd {
        let name = [b"tt_device_", middle, b"_memory"].concat();
        let path = shm.join(OsStr::from_bytes(&name));
        fs::write(&path, "").unwrap();
        chown(&path, Some(MALLORY), None).unwrap();
    }
    let snapshot = bench.collector().collect();
    assert_eq!(subjects(&snapshot), Vec::<String>::new(), "no user makes a source fail");
    let found = noticed(&snapshot);
    assert!(found.len() == 1 && found[0].0 == 4, "{found:?}");
    assert!(found[0].1.starts_with(&format!("user {MALLORY}: ")), "{found:?}");
    assert_eq!(dram(&snapshot, 0).total_bytes, 1000);
    // Root's own is root's to mend.
    fs::write(shm.join(OsStr::from_bytes(b"tt_device_\xfe_memory")), "").unwrap();
    let snapshot = bench.collector().collect();
    let found = subjects(&snapshot);
    assert!(found.len() == 1 && found[0].contains("tt_device_\\xfe_memory"), "{found:?}");
}

#[test]
fn one_users_empty_files_hide_no_region_and_are_notes() {
    if !needs_root("node::regions::one_users_empty_files_hide_no_region_and_are_notes") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    write_region(&bench, 0, 1000, &[]);
    let shm = bench.machine.root().join("dev/shm");
    for id in 1..=1100 {
        let path = shm.join(file_name(id));
        fs::write(&path, "").unwrap();
        chown(&path, Some(MALLORY), None).unwrap();
    }
    let snapshot = bench.collector().collect();
    assert_eq!(dram(&snapshot, 0).total_bytes, 1000);
    assert_eq!(subjects(&snapshot), Vec::<String>::new(), "no user makes a source fail");
    let found = noticed(&snapshot);
    assert!(
        found.len() == 1 && found[0].0 == 1100,
        "those that are read and those left out: {found:?}"
    );
    assert!(found[0].1.starts_with(&format!("user {MALLORY}: ")), "{found:?}");
}

#[test]
fn a_holder_that_cannot_be_seen_may_be_behind_a_row() {
    let mut bench = Bench::new(MachineKind::N150);
    write_region(&bench, 0, 50, &[(1, "trainer", 50)]);
    let fault =
        telltale_emulator::Fault::Pids { ordinal: 0, lines: telltale_emulator::PidsFault::Zero };
    bench.machine.inject(fault).unwrap();
    let snapshot = bench.collector().collect();
    assert_eq!(dram(&snapshot, 0).processes_bytes, 50);
    let hidden = &snapshot.processes[0];
    assert_eq!((hidden.state, hidden.namespace_pid), (ProcessState::Hidden, Some(1)));
    assert_eq!(hidden.name, "trainer");
    assert_eq!(snapshot.processes.len(), 1, "the row explains the holder");
}

#[test]
fn a_killed_workload_that_kept_a_region_is_in_no_total() {
    for variables in [
        &[][..],
        &[("TT_METAL_SHM_STATS_PER_PID", "0")],
        &[("TELLTALE_SHM_LAYOUT", "1")],
        &[("TELLTALE_SHM_LAYOUT", "1"), ("TT_METAL_SHM_STATS_PER_PID", "1")],
        &[("TELLTALE_SHM_LAYOUT", "4")],
    ] {
        let bench = Bench::new(MachineKind::N300);
        fs::create_dir_all(bench.machine.root().join("dev/shm")).unwrap();
        let workload = |bytes| {
            let mut command = command(&bench.child(Role::Runtime, bytes), |it| Command::new(it));
            command.env(ROOT, bench.machine.root()).env("TT_METAL_SHM_STATS_ENABLED", "1");
            command.envs(variables.iter().copied());
            let mut child = ChildGuard::spawn(&mut command);
            let_begin(&mut child);
            child
        };
        let _lives = workload(4_096);
        let mut killed = workload(1_000);
        let files = fs::read_dir(bench.machine.root().join("dev/shm")).unwrap().count();
        assert_eq!(files, 2, "one region for each chip");
        let total = || {
            let snapshot = bench.collector().collect();
            assert_eq!(subjects(&snapshot), Vec::<String>::new());
            [0, 1]
                .map(|device| dram(&snapshot, device))
                .map(|parts| (parts.total_bytes, parts.processes_bytes, parts.unattributed_bytes))
        };
        assert_eq!(total(), [(5_096, 5_096, 0); 2], "{variables:?}");
        // Held open, so that the workload is killed and does not end by itself before.
        let _input = killed.child().stdin.take();
        killed.kill();
        assert_eq!(total(), [(4_096, 4_096, 0); 2], "{variables:?}");
    }
}

#[test]
fn a_holder_that_nothing_explains_is_a_process_of_its_own() {
    let mut bench = Bench::new(MachineKind::N150);
    let fault =
        telltale_emulator::Fault::Pids { ordinal: 0, lines: telltale_emulator::PidsFault::Zero };
    bench.machine.inject(fault).unwrap();
    let snapshot = bench.collector().collect();
    let [hidden] = &snapshot.processes[..] else { panic!("{:?}", snapshot.processes) };
    assert_eq!((hidden.state, hidden.pid, hidden.known_by), (ProcessState::Hidden, None, None));
    assert_eq!(hidden.devices[0].accounting, Accounting::Unknown);
}

#[test]
fn a_wrapped_total_and_a_foreign_file_are_reported_and_counted_nowhere() {
    let bench = Bench::new(MachineKind::N150);
    write_region(&bench, 0, u64::MAX - 5, &[]);
    fs::write(bench.machine.root().join("dev/shm").join(file_name(77)), "short").unwrap();
    let snapshot = bench.collector().collect();
    assert_eq!(snapshot.devices.len(), 1);
    assert_eq!(snapshot.devices[0].kind(telltale_schema::memory::MemoryKind::Dram), None);
    let found = subjects(&snapshot);
    assert_eq!(found.len(), 2, "{found:?}");
}
