//! Processes in PID namespaces of their own, with and without a shared directory; needs root.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector, EndpointUse};
use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, ProcMount, in_pid_namespace, needs_pid_namespaces};
use telltale_schema::snapshot::{ProcessSource, ProcessState, Snapshot};

use crate::collecting::bench::{Bench, dram, process, subjects};
use crate::collecting::workload::{Child, Role, collected, command, let_begin, started};

/// A workload that is process 1 of a PID namespace of its own.
fn contained(child: &Child<'_>) -> ChildGuard {
    started(command(child, |program| in_pid_namespace(program, ProcMount::Own)))
}

/// The pid, as we see it, of the only child of the `unshare` that was started.
fn inner_pid(guard: &ChildGuard) -> u32 {
    let path = format!("/proc/{0}/task/{0}/children", guard.id());
    let text = std::fs::read_to_string(path).unwrap();
    text.trim().parse().unwrap()
}

fn check(snapshot: &Snapshot, guard: &ChildGuard, bytes: u64, source: ProcessSource) {
    let process = process(snapshot, inner_pid(guard));
    assert_eq!(process.state, ProcessState::Alive);
    assert_eq!(process.namespace_pid, Some(1));
    assert_eq!(process.known_by, Some(source));
    assert_eq!(process.devices[0].kinds[0].usage.live_bytes(), bytes);
}

#[test]
fn two_containers_that_share_the_directory_are_distinguished() {
    if !needs_pid_namespaces("node::containers::two_containers_that_share_the_directory") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    let first = contained(&bench.child(Role::Ledger, 100));
    let second = contained(&bench.child(Role::Ledger, 2_000));
    let answers = contained(&bench.child(Role::Endpoint, 30_000));
    for endpoints in [EndpointUse::WhereNeeded, EndpointUse::Always] {
        let options = CollectOptions { endpoints, ..bench.options() };
        let mut collector = Collector::new(options).unwrap();
        for _ in 0..2 {
            let snapshot = collector.collect();
            assert_eq!(subjects(&snapshot), Vec::<String>::new());
            assert_eq!(snapshot.processes.len(), 3);
            check(&snapshot, &first, 100, ProcessSource::Ledger);
            check(&snapshot, &second, 2_000, ProcessSource::Ledger);
            check(&snapshot, &answers, 30_000, ProcessSource::Endpoint);
            assert_eq!(dram(&snapshot, 0).total_bytes, 32_100);
        }
    }
}

/// A workload in a system container: process 1 of a PID namespace, with a boot id of its own.
fn in_system_container(child: &Child<'_>, boot_id: &Path) -> ChildGuard {
    const SCRIPT: &str =
        "mount --bind \"$1\" /proc/sys/kernel/random/boot_id && shift && exec \"$@\"";
    started(command(child, |program| {
        let mut shell = in_pid_namespace("sh", ProcMount::Own);
        shell.args(["-c", SCRIPT, "sh"]).arg(boot_id).arg(program);
        shell
    }))
}

#[test]
fn a_system_container_with_a_boot_id_of_its_own_is_alive_until_it_is_not() {
    if !needs_pid_namespaces("node::containers::a_system_container_with_a_boot_id_of_its_own") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    let boot_id = bench.machine.root().join("boot_id");
    std::fs::write(&boot_id, "0f8fad5b-d9cb-469f-a165-70867728950e\n").unwrap();
    let mut first = in_system_container(&bench.child(Role::Ledger, 100), &boot_id);
    let second = in_system_container(&bench.child(Role::Ledger, 2_000), &boot_id);
    let third = in_system_container(&bench.child(Role::Endpoint, 30_000), &boot_id);
    let mut collector = bench.collector();
    for _ in 0..2 {
        let snapshot = collector.collect();
        assert_eq!(subjects(&snapshot), Vec::<String>::new());
        check(&snapshot, &first, 100, ProcessSource::Ledger);
        check(&snapshot, &second, 2_000, ProcessSource::Ledger);
        check(&snapshot, &third, 30_000, ProcessSource::Endpoint);
        assert_eq!(dram(&snapshot, 0).total_bytes, 32_100);
        assert!(telltale_collector::clean(bench.options()).unwrap().removed.is_empty());
        collector.watch();
    }
    // Held open, so that the workload is killed and does not end by itself before.
    let _input = first.child().stdin.take();
    first.kill();
    telltale_harness::wait_until("its end", Duration::from_secs(20), || {
        dram(&collector.collect(), 0).total_bytes == 32_000
    });
    let removed = telltale_collector::clean(bench.options()).unwrap().removed;
    assert_eq!(removed.len(), 1, "{removed:?}");
}

#[test]
fn two_runtimes_that_are_both_process_1_share_a_directory() {
    if !needs_pid_namespaces("node::containers::two_runtimes_that_are_both_process_1") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    let runtimes: Vec<ChildGuard> = [100, 2_000]
        .map(|bytes| {
            let child = bench.child(Role::Runtime, bytes);
            let wrapped = |program: &OsStr| in_pid_namespace(program, ProcMount::Own);
            let mut guard = ChildGuard::spawn(&mut command(&child, wrapped));
            let_begin(&mut guard);
            guard
        })
        .into();
    let names: Vec<_> = std::fs::read_dir(&bench.directory).unwrap().collect();
    assert_eq!(names.len(), 4, "two ledgers and two endpoints: {names:?}");
    for endpoints in [EndpointUse::Never, EndpointUse::Always] {
        let options = CollectOptions { endpoints, ..bench.options() };
        let snapshot = Collector::new(options).unwrap().collect();
        assert_eq!(subjects(&snapshot), Vec::<String>::new());
        check(&snapshot, &runtimes[0], 100, ProcessSource::Ledger);
        check(&snapshot, &runtimes[1], 2_000, ProcessSource::Ledger);
        let reported = snapshot.processes.iter().filter(|one| !one.metrics.is_empty()).count();
        assert_eq!(reported, if endpoints == EndpointUse::Always { 2 } else { 0 });
    }
}

#[test]
fn a_dead_container_is_dead() {
    if !needs_pid_namespaces("node::containers::a_dead_container_is_dead") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    let mut first = contained(&bench.child(Role::Ledger, 100));
    let _second = contained(&bench.child(Role::Ledger, 2_000));
    let mut running = bench.collector();
    assert_eq!(dram(&running.collect(), 0).total_bytes, 2_100);
    // Held open, so that the workload is killed and does not end by itself before.
    let _input = first.child().stdin.take();
    first.kill();
    let gone = || dram(&running.collect(), 0).total_bytes == 2_000;
    telltale_harness::wait_until("the end to be seen", std::time::Duration::from_secs(30), gone);
    let snapshot = running.collect();
    let states: Vec<_> = snapshot.processes.iter().map(|one| one.state).collect();
    assert_eq!(states.len(), 2);
    assert!(states.contains(&ProcessState::Dead) && states.contains(&ProcessState::Alive));
    // One who did not see it live can tell by the lock that it held.
    let expected = ProcessState::Dead;
    let snapshot = bench.collector().collect();
    let gone: Vec<_> =
        snapshot.processes.iter().filter(|one| one.state != ProcessState::Alive).collect();
    assert_eq!(gone.len(), 1);
    assert_eq!((gone[0].state, gone[0].pid, gone[0].namespace_pid), (expected, None, Some(1)));
}

/// A workload whose `/run` is its own, so that no outside process can see its runtime directory.
fn isolated(child: &Child<'_>) -> ChildGuard {
    let script = "mount -t tmpfs none /run && mkdir /run/tt && exec \"$0\" \"$@\"";
    let wrap = |program: &OsStr| {
        let mut command = in_pid_namespace("sh", ProcMount::Own);
        command.args(["-c", script]).arg(program);
        command
    };
    started(command(&Child { directory: Path::new("/run/tt"), ..*child }, wrap))
}

#[test]
fn a_container_that_shares_nothing_is_found_through_its_root() {
    if !needs_pid_namespaces("node::containers::a_container_that_shares_nothing") {
        return;
    }
    let mut bench = Bench::new(MachineKind::N150);
    let outside = crate::collecting::workload::start(&bench.child(Role::Ledger, 5));
    let ledger = isolated(&bench.child(Role::Ledger, 100));
    let answers = isolated(&bench.child(Role::Endpoint, 2_000));
    let pids = [outside.id(), inner_pid(&ledger), inner_pid(&answers)];
    let unseen = bench.collector().collect();
    assert_eq!(dram(&unseen, 0).total_bytes, 5, "the driver does not list them yet");
    bench.machine.set_holders(0, &pids).unwrap();
    let mut collector = bench.collector();
    for _ in 0..3 {
        let snapshot = collector.collect();
        assert_eq!(subjects(&snapshot), Vec::<String>::new());
        check(&snapshot, &ledger, 100, ProcessSource::Ledger);
        check(&snapshot, &answers, 2_000, ProcessSource::Endpoint);
        assert_eq!(dram(&snapshot, 0).total_bytes, 2_105);
        assert!(snapshot.devices[0].holders.value().unwrap().iter().all(|one| one.memory_known));
    }
    let options = CollectOptions { containers: false, ..bench.options() };
    let outlined = Collector::new(options).unwrap().collect();
    assert_eq!(dram(&outlined, 0).total_bytes, 5);
    // Without its ledger a process is known by the driver alone, and is the same one.
    let with_ledger = process(&collector.collect(), pids[1]).identity;
    let bare = process(&outlined, pids[1]);
    assert_eq!((bare.known_by, bare.identity), (None, with_ledger));
}

#[test]
fn a_containers_absolute_links_lead_where_they_lead_the_container() {
    if !needs_pid_namespaces("node::containers::a_containers_absolute_links") {
        return;
    }
    let mut bench = Bench::new(MachineKind::N150);
    // Outside, the link leads to nothing; followed from there, the directory would not be found.
    let script = "mount -t tmpfs none /run && mkdir -p /run/telltale-inside/tt && \
                  ln -s /run/telltale-inside /run/telltale-link && exec \"$0\" \"$@\"";
    let wrap = |program: &OsStr| {
        let mut command = in_pid_namespace("sh", ProcMount::Own);
        command.args(["-c", script]).arg(program);
        command
    };
    let directory = Path::new("/run/telltale-inside/tt");
    let mut command = command(&Child { directory, ..bench.child(Role::Ledger, 100) }, wrap);
    command.env("TT_METRICS_SOCKET_DIR", "/run/telltale-link/tt");
    let contained = started(command);
    bench.machine.set_holders(0, &[inner_pid(&contained)]).unwrap();
    let snapshot = bench.collector().collect();
    assert_eq!(subjects(&snapshot), Vec::<String>::new());
    check(&snapshot, &contained, 100, ProcessSource::Ledger);
}

#[test]
fn each_process_of_a_container_may_name_a_directory_of_its_own() {
    if !needs_pid_namespaces("node::containers::each_process_of_a_container") {
        return;
    }
    let mut bench = Bench::new(MachineKind::N150);
    let script = "mount -t tmpfs none /run && mkdir /run/one /run/other && exec \"$0\" \"$@\"";
    let wrap = |program: &OsStr| {
        let mut command = in_pid_namespace("sh", ProcMount::Own);
        command.args(["-c", script]).arg(program);
        command
    };
    let start = |directory: &str, bytes, wrap: &dyn Fn(&OsStr) -> Command| {
        let child = Child { directory: Path::new(directory), ..bench.child(Role::Ledger, bytes) };
        let mut command = command(&child, wrap);
        command.env("TT_METRICS_SOCKET_DIR", directory);
        started(command)
    };
    let one = start("/run/one", 100, &wrap);
    let inside = inner_pid(&one).to_string();
    let other = start("/run/other", 2_000, &|program| {
        let mut command = Command::new("nsenter");
        command.args(["--target", &inside, "--mount", "--pid"]).arg(program);
        command
    });
    bench.machine.set_holders(0, &[inner_pid(&one), inner_pid(&other)]).unwrap();
    let snapshot = bench.collector().collect();
    assert_eq!(subjects(&snapshot), Vec::<String>::new());
    assert_eq!(dram(&snapshot, 0).total_bytes, 2_100);
}

/// `program` with its environment, as process 1 of a PID namespace of its own.
fn moved(program: &Command) -> Command {
    let mut command = in_pid_namespace(program.get_program(), ProcMount::Own);
    command.args(program.get_args());
    let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

#[test]
fn who_cannot_see_a_process_reports_by_its_ledger_whether_it_is_dead() {
    if !needs_pid_namespaces("node::containers::who_cannot_see_a_process") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    let mut killed = crate::collecting::workload::start(&bench.child(Role::Ledger, 100));
    let lives = crate::collecting::workload::start(&bench.child(Role::Ledger, 2_000));
    killed.kill();
    let root = bench.machine.root();
    let snapshot = collected(root, &bench.directory, |program| moved(&program));
    let state = |pid| {
        let found = snapshot.processes.iter().find(|one| one.namespace_pid == Some(pid));
        found.map(|one| one.state)
    };
    assert_eq!(state(killed.id()), Some(ProcessState::Dead));
    assert_eq!(state(lives.id()), Some(ProcessState::Hidden), "it has it open still");
    assert_eq!(dram(&snapshot, 0).total_bytes, 2_000);
}
