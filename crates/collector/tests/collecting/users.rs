//! Several users on one machine, in a directory as an installation makes it; needs root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};

use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, as_user, needs_root};
use telltale_ledger::directory::{MOST_ENTRIES_LISTED, endpoint_name, ledger_name};
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{ProcessSource, ProcessState, Snapshot};

use crate::collecting::bench::{Bench, dram, noticed, process, subjects};
use crate::collecting::regions::write_region;
use crate::collecting::workload::{Role, cleaned_by, collected, command, let_begin, started};

const SERVICE: u32 = 61_001;
const ADA: u32 = 61_002;
const BOB: u32 = 61_003;

/// A machine whose runtime directory is as an installation makes it: owned by the service, group
/// of the service, mode 3777.
fn installed() -> Bench {
    let bench = Bench::new(MachineKind::N150);
    bench.scratch.set_mode(0o755);
    chown(&bench.directory, Some(SERVICE), Some(SERVICE)).unwrap();
    fs::set_permissions(&bench.directory, Permissions::from_mode(0o3777)).unwrap();
    bench
}

fn workload(bench: &Bench, role: Role, uid: u32, bytes: u64, named: u32) -> ChildGuard {
    let child = crate::collecting::workload::Child { named, ..bench.child(role, bytes) };
    started(as_user(uid, uid, command(&child, |program| Command::new(program))))
}

fn collected_by(bench: &Bench, uid: u32) -> Snapshot {
    collected(bench.machine.root(), &bench.directory, |command| as_user(uid, uid, command))
}

/// Whether what cannot be seen from here does not exist.
fn sees_all() -> bool {
    fs::read_link("/proc/self/ns/pid").unwrap().as_os_str() == "pid:[4026531836]"
}

#[test]
fn the_service_needs_no_capability_and_users_do_not_see_each_other() {
    if !needs_root("node::users::the_service_needs_no_capability") {
        return;
    }
    let bench = installed();
    let ada = workload(&bench, Role::LedgerAndEndpoint, ADA, 100, 0);
    let bob = workload(&bench, Role::LedgerAndEndpoint, BOB, 2_000, 0);
    let bobs_endpoint = workload(&bench, Role::Endpoint, BOB, 30_000, 0);
    let snapshot = collected_by(&bench, SERVICE);
    assert_eq!(subjects(&snapshot), Vec::<String>::new());
    assert_eq!(dram(&snapshot, 0).total_bytes, 32_100);
    for (child, uid) in [(&ada, ADA), (&bob, BOB), (&bobs_endpoint, BOB)] {
        assert_eq!(process(&snapshot, child.id()).uid.value(), Some(&uid));
    }
    // Ada sees her own; what is Bob's is reported as closed to her, and is not counted.
    let snapshot = collected_by(&bench, ADA);
    assert_eq!(dram(&snapshot, 0).total_bytes, 100);
    assert_eq!(process(&snapshot, ada.id()).known_by, Some(ProcessSource::Ledger));
    assert_eq!(subjects(&snapshot), Vec::<String>::new());
    assert_eq!(snapshot.closed_processes, 2, "one of them by its ledger and its endpoint");
    drop(bob);
    assert_eq!(collected_by(&bench, ADA).closed_processes, if sees_all() { 1 } else { 2 });
}

#[test]
fn a_socket_under_another_processs_name_is_refused_and_reported() {
    if !needs_root("node::users::a_socket_under_another_processs_name") {
        return;
    }
    let bench = installed();
    let bob = workload(&bench, Role::Ledger, BOB, 2_000, 0);
    let _ada = workload(&bench, Role::Squatter, ADA, 999_999, bob.id());
    for uid in [SERVICE, 0] {
        let snapshot = collected_by(&bench, uid);
        assert_eq!(dram(&snapshot, 0).total_bytes, 2_000);
        let name = endpoint_name(bob.id(), None);
        assert_eq!(subjects(&snapshot), Vec::<String>::new(), "no user makes a source fail");
        let found = noticed(&snapshot);
        assert!(found.len() == 1 && found[0].0 == 1, "{found:?}");
        let words = format!("user {ADA}: not used, the first: {name}: ");
        assert!(found[0].1.starts_with(&words), "{found:?}");
        assert!(found[0].1.contains("under the name of process"), "{found:?}");
    }
}

#[test]
fn a_name_that_was_taken_beforehand_costs_its_owner_nothing() {
    if !needs_root("node::users::a_name_that_was_taken_beforehand") {
        return;
    }
    let bench = installed();
    let bob = command(&bench.child(Role::Runtime, 2_000), |program| Command::new(program));
    let mut bob = ChildGuard::spawn(&mut as_user(BOB, BOB, bob));
    let _ada = workload(&bench, Role::Squatter, ADA, 999_999, bob.id());
    let_begin(&mut bob);
    let snapshot = collected_by(&bench, SERVICE);
    assert_eq!(dram(&snapshot, 0).total_bytes, 2_000);
    let metrics = &process(&snapshot, bob.id()).metrics;
    assert!(metrics.iter().any(|one| one.name == "steps"), "his endpoint has another name");
    let found = noticed(&snapshot);
    assert!(found.len() == 1 && found[0].1.contains("under the name of process"), "{found:?}");
}

#[test]
fn a_ledger_in_another_processs_name_is_refused_and_reported() {
    if !needs_root("node::users::a_ledger_in_another_processs_name") {
        return;
    }
    let bench = installed();
    let bob = workload(&bench, Role::Ledger, BOB, 2_000, 0);
    let entries = fs::read_dir(&bench.directory).unwrap();
    let real = entries.map(|entry| entry.unwrap().path()).next().unwrap();
    // Ada has somehow got Bob's bytes, and puts them into files of her own.
    for (start, mode) in [(1, 0o644), (2, 0o666)] {
        let forged = bench.directory.join(ledger_name(bob.id(), start, None));
        fs::copy(&real, &forged).unwrap();
        chown(&forged, Some(ADA), Some(ADA)).unwrap();
        fs::set_permissions(&forged, Permissions::from_mode(mode)).unwrap();
    }
    let snapshot = collected_by(&bench, SERVICE);
    assert_eq!(dram(&snapshot, 0).total_bytes, 2_000, "Bob's own, once");
    assert_eq!(subjects(&snapshot), Vec::<String>::new());
    let found = noticed(&snapshot);
    assert!(found.len() == 1 && found[0].0 == 2, "{found:?}");
    assert!(found[0].1.contains(&format!("user {ADA} made it")), "{found:?}");
}

#[test]
fn root_sees_what_users_keep_in_private_directories() {
    if !needs_root("node::users::root_sees_what_users_keep_in_private_directories") {
        return;
    }
    let mut bench = Bench::new(MachineKind::N150);
    bench.scratch.set_mode(0o755);
    let mut children = Vec::new();
    for (uid, bytes) in [(ADA, 100), (BOB, 2_000)] {
        let directory = bench.scratch.join(format!("telltale-{uid}"));
        fs::create_dir(&directory).unwrap();
        chown(&directory, Some(uid), Some(uid)).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        let child = crate::collecting::workload::Child {
            directory: &directory,
            ..bench.child(Role::LedgerAndEndpoint, bytes)
        };
        let mut command = command(&child, |program| Command::new(program));
        command.env("TT_METRICS_SOCKET_DIR", &directory);
        children.push(started(as_user(uid, uid, command)));
    }
    let pids: Vec<u32> = children.iter().map(ChildGuard::id).collect();
    bench.machine.set_holders(0, &pids).unwrap();
    let mut collector = bench.collector();
    for _ in 0..2 {
        let snapshot = collector.collect();
        assert_eq!(subjects(&snapshot), Vec::<String>::new());
        assert_eq!(dram(&snapshot, 0).total_bytes, 2_100);
        for (child, uid) in children.iter().zip([ADA, BOB]) {
            let process = process(&snapshot, child.id());
            assert_eq!(process.known_by, Some(ProcessSource::Ledger));
            assert_eq!(process.uid.value(), Some(&uid));
        }
    }
}

#[test]
fn a_users_own_directory_with_too_many_names_is_a_note_of_that_user() {
    if !needs_root("node::users::a_users_own_directory_with_too_many_names_is_a_note") {
        return;
    }
    let mut bench = Bench::new(MachineKind::N150);
    bench.scratch.set_mode(0o755);
    let directory = bench.scratch.join("adas");
    fs::create_dir(&directory).unwrap();
    chown(&directory, Some(ADA), Some(ADA)).unwrap();
    // Whatever its mode; in `/run/tt` it would be everybody's.
    for mode in [0o700, 0o3777] {
        fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
        let child = crate::collecting::workload::Child {
            directory: &directory,
            ..bench.child(Role::Ledger, 100)
        };
        let mut command = command(&child, |program| Command::new(program));
        command.env("TT_METRICS_SOCKET_DIR", &directory);
        let ada = started(as_user(ADA, ADA, command));
        let name = |number: usize| directory.join(format!("x{number}"));
        (0..=MOST_ENTRIES_LISTED).for_each(|number| drop(fs::File::create(name(number)).unwrap()));
        bench.machine.set_holders(0, &[ada.id()]).unwrap();
        let snapshot = bench.collector().collect();
        assert_eq!(subjects(&snapshot), Vec::<String>::new(), "no user makes a source fail");
        let found = noticed(&snapshot);
        assert!(found.len() == 1 && found[0].1.starts_with(&format!("user {ADA}: ")), "{found:?}");
        assert!(found[0].1.contains("names that are looked at"), "{found:?}");
    }
}

#[test]
fn files_of_nobody_are_refused() {
    if !needs_root("node::users::files_of_nobody") {
        return;
    }
    let bench = installed();
    let _nobody = workload(&bench, Role::LedgerAndEndpoint, 65_534, 7, 0);
    let snapshot = collected_by(&bench, 0);
    assert_eq!(snapshot.devices[0].kind(telltale_schema::memory::MemoryKind::Dram), None);
    assert_eq!(noticed(&snapshot).len(), 2, "{:?}", noticed(&snapshot));
}

#[test]
fn the_owner_of_the_directory_cleans_up_after_everyone_and_others_only_after_themselves() {
    if !needs_root("node::users::the_owner_of_the_directory_cleans_up") {
        return;
    }
    let bench = installed();
    let mut killed = workload(&bench, Role::LedgerAndEndpoint, ADA, 100, 0);
    let _lives = workload(&bench, Role::LedgerAndEndpoint, BOB, 100, 0);
    killed.kill();
    let count = || fs::read_dir(&bench.directory).unwrap().count();
    assert_eq!((cleaned_by(BOB, bench.machine.root(), &bench.directory).0, count()), (0, 4));
    assert_eq!(cleaned_by(SERVICE, bench.machine.root(), &bench.directory), (2, 0));
    assert_eq!(count(), 2);
}

#[test]
fn a_holder_that_proc_hides_has_a_row_with_its_pid() {
    if !needs_root("node::users::a_holder_that_proc_hides") {
        return;
    }
    let mut bench = installed();
    let bob = workload(&bench, Role::Ledger, BOB, 2_000, 0);
    // Of another process that ended nothing is left to show.
    let mut ended = ChildGuard::spawn(&mut Command::new("true"));
    ended.wait_within("true to end", std::time::Duration::from_secs(60));
    bench.machine.set_holders(0, &[bob.id(), bob.id(), ended.id()]).unwrap();
    let hiding = |command: Command| {
        let mut unshared = Command::new("unshare");
        let script = "mount -t proc -o hidepid=2 proc /proc && exec \
                      setpriv --reuid=61002 --regid=61002 --clear-groups -- \"$@\"";
        unshared.args(["--mount", "--", "sh", "-c", script, "sh"]).arg(command.get_program());
        unshared.args(command.get_args());
        for (name, value) in command.get_envs() {
            unshared.env(name, value.expect("nothing is taken away"));
        }
        unshared.stdin(Stdio::piped()).stdout(Stdio::piped());
        unshared
    };
    let snapshot = collected(bench.machine.root(), &bench.directory, hiding);
    let [hidden] = &snapshot.processes[..] else { panic!("{:?}", snapshot.processes) };
    assert_eq!((hidden.state, hidden.pid), (ProcessState::Hidden, Some(bob.id())));
    assert_eq!(hidden.devices[0].open_descriptors, 2, "one row, however often it has it open");
    // Nor where it has a row of a region, which is its memory.
    write_region(&bench, 0, 50, &[(bob.id(), "bob", 50)]);
    let snapshot = collected(bench.machine.root(), &bench.directory, hiding);
    let [hidden] = &snapshot.processes[..] else { panic!("{:?}", snapshot.processes) };
    assert_eq!((hidden.state, hidden.pid), (ProcessState::Hidden, Some(bob.id())));
    assert_eq!(hidden.devices[0].live_bytes(MemorySpace::Dram), Some(50));
}
