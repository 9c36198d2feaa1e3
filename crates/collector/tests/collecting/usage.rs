//! What processes and their host use: read of real processes, while it is asked for.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use telltale_collector::clock::SystemClock;
use telltale_collector::{CollectOptions, Collector, ProcessTextsError, process_texts};
use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, as_user, needs_root, wait_until};
use telltale_schema::clock::Clock;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{ProcessUsage, Snapshot};

use crate::collecting::bench::{Bench, process};
use crate::collecting::workload::collected;

const SOON: Duration = Duration::from_secs(60);
const ADA: u32 = 61_002;

/// Shells that hold the first device of the bench's machine, each while it runs its script.
fn holders(bench: &mut Bench, scripts: &[&str]) -> Vec<ChildGuard> {
    let start = |script: &&str| {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .env("SAMPLE", "one\u{1b}[31m")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // A directory on a disk: what is written to memory is not counted.
        ChildGuard::spawn(command.current_dir(env!("CARGO_TARGET_TMPDIR")))
    };
    let children: Vec<ChildGuard> = scripts.iter().map(start).collect();
    let pids: Vec<u32> = children.iter().map(ChildGuard::id).collect();
    bench.machine.set_holders(0, &pids).unwrap();
    children
}

fn usage(snapshot: &Snapshot, pid: u32) -> &ProcessUsage {
    process(snapshot, pid).usage.as_deref().expect("it was asked for")
}

fn reason<T>(reading: &Reading<T>) -> Option<Absence> {
    reading.absence().map(|(reason, _)| reason)
}

#[test]
fn what_processes_use_is_read_while_it_is_asked_for() {
    let mut bench = Bench::new(MachineKind::N150);
    let scripts = [
        "while :; do :; done",
        "while :; do printf %65536s x > usage-test; done",
        "exec sleep 600",
    ];
    let children = holders(&mut bench, &scripts);
    let [busy, writing, idle] = [0, 1, 2].map(|at| children[at].id());
    let mut collector = bench.collector();
    let without = collector.collect();
    assert_eq!(without.host, None);
    assert!(without.processes.iter().all(|process| process.usage.is_none()));

    collector.read_usage(true);
    let first = collector.collect();
    let of_busy = usage(&first, busy);
    assert_eq!(reason(&of_busy.cpu_ratio), Some(Absence::NotYet));
    assert_eq!(of_busy.threads.value(), Some(&1));
    assert!(of_busy.resident_bytes.value().is_some_and(|bytes| (1..1 << 30).contains(bytes)));
    let host = first.host.as_ref().unwrap();
    assert!(host.used_bytes.value() < host.memory_bytes.value());
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(*host.processors.value().unwrap() >= u64::try_from(processors).unwrap());
    assert!(host.load_1.value().is_some() && reason(&host.cpu_ratio) == Some(Absence::NotYet));

    wait_until("rates of three processes", SOON, || {
        let snapshot = collector.collect();
        let cpu = |pid| usage(&snapshot, pid).cpu_ratio.value().copied();
        let written = usage(&snapshot, writing).written_bytes_per_second.value().copied();
        cpu(busy) > Some(0.1) && cpu(idle) == Some(0.0) && written > Some(0)
    });
    let host = collector.collect().host.unwrap();
    assert!(
        host.cpu_ratio.value().is_some_and(|share| (0.0..=1.0).contains(share) && *share > 0.0)
    );

    collector.read_usage(false);
    assert_eq!(collector.collect().host, None);
    collector.read_usage(true);
    let again = collector.collect();
    assert_eq!(reason(&usage(&again, busy).cpu_ratio), Some(Absence::NotYet), "nothing was kept");
}

#[test]
fn one_collection_and_a_moment_suffice_for_rates() {
    let mut bench = Bench::new(MachineKind::N150);
    let children = holders(&mut bench, &["while :; do :; done"]);
    let options = CollectOptions { usage: true, ..bench.options() };
    let mut collector = Collector::new(options).unwrap();
    let mut snapshot = collector.collect();
    collector.measure_usage(&mut snapshot);
    assert!(usage(&snapshot, children[0].id()).cpu_ratio.value().is_some());
    assert!(snapshot.host.unwrap().cpu_ratio.value().is_some());
}

/// A file of the tree in which every reader hangs.
fn hang(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// Lets its readers find the end of the file.
fn let_go(path: &Path) {
    drop(std::fs::File::options().write(true).open(path).unwrap());
}

#[test]
fn a_file_that_hangs_costs_what_it_has_and_nothing_else() {
    let mut bench = Bench::new(MachineKind::N150);
    let children = holders(&mut bench, &["while :; do :; done", "while :; do :; done"]);
    let [hung, other] = [0, 1].map(|at| children[at].id());
    let proc = bench.machine.root().join("proc");
    let directory = proc.join(hung.to_string());
    // It is a link to the process's own.
    std::fs::remove_file(&directory).unwrap();
    std::fs::create_dir(&directory).unwrap();
    let real = PathBuf::from(format!("/proc/{hung}"));
    for name in std::fs::read_dir(&real).unwrap().map(|entry| entry.unwrap().file_name()) {
        if name != "io" {
            symlink(real.join(&name), directory.join(&name)).unwrap();
        }
    }
    let [io, meminfo] = [directory.join("io"), proc.join("meminfo")];
    hang(&io);
    hang(&meminfo);
    let options = CollectOptions { usage: true, ..bench.options() };
    let mut collector = Collector::new(options).unwrap();
    wait_until("the rates of all that does not hang", SOON, || {
        let snapshot = collector.collect();
        let of_hung = usage(&snapshot, hung);
        assert_eq!(reason(&of_hung.read_bytes_per_second), Some(Absence::TimedOut));
        assert_eq!(reason(&of_hung.written_bytes_per_second), Some(Absence::TimedOut));
        assert!(of_hung.resident_bytes.value().is_some());
        let host = snapshot.host.as_ref().unwrap();
        assert_eq!(reason(&host.memory_bytes), Some(Absence::TimedOut));
        let of_other = usage(&snapshot, other);
        let cpu = [&of_hung.cpu_ratio, &of_other.cpu_ratio, &host.cpu_ratio, &host.load_1];
        cpu.iter().all(|rate| rate.value().is_some())
            && of_other.written_bytes_per_second.value().is_some()
    });
    // The thread that was left behind comes back, and the next one finds a file that does not hang.
    let_go(&io);
    std::fs::remove_file(&io).unwrap();
    symlink(real.join("io"), &io).unwrap();
    wait_until("its storage once it can be read", SOON, || {
        usage(&collector.collect(), hung).written_bytes_per_second.value().is_some()
    });
    assert_eq!(reason(&collector.collect().host.unwrap().memory_bytes), Some(Absence::TimedOut));
    let_go(&meminfo);
}

#[test]
fn a_start_is_the_same_from_one_look_to_the_next() {
    let mut bench = Bench::new(MachineKind::N150);
    let begun = SystemClock.now();
    let children = holders(&mut bench, &["exec sleep 600"]);
    let pid = children[0].id();
    let mut collector = bench.collector();
    let first = process(&collector.collect(), pid).started_at.unwrap();
    let apart = first.0.abs_diff(begun.0);
    assert!(apart < 5_000_000_000, "{apart} ns from when it was started");
    for _ in 0..3 {
        assert_eq!(process(&collector.collect(), pid).started_at, Some(first));
    }
    // Another collector's clock is another look at the same one.
    let other = process(&bench.collector().collect(), pid).started_at.unwrap();
    assert!(other.0.abs_diff(first.0) < 1_000_000_000);
}

#[test]
fn an_environment_is_its_owners_and_never_the_next_processs() {
    let mut bench = Bench::new(MachineKind::N150);
    let children = holders(&mut bench, &["exec sleep 600"]);
    let pid = children[0].id();
    let root = bench.machine.root().to_owned();
    let started = process(&bench.collector().collect(), pid).identity.unwrap().start_time_ticks;
    let texts = process_texts(&root, pid, started).unwrap();
    assert!(!texts.is_environment_cut);
    let read = texts.environment.unwrap();
    assert!(read.contains(&String::from("SAMPLE=one\\u{1b}[31m")), "{read:?}");
    let other = process_texts(&root, pid, started + 1);
    assert!(matches!(other, Err(ProcessTextsError::Ended(ended)) if ended == pid));
    drop(children);
    assert!(matches!(process_texts(&root, pid, started), Err(ProcessTextsError::Ended(_))));
}

#[test]
fn an_environment_that_is_too_long_has_its_first_variables_whole() {
    let mut bench = Bench::new(MachineKind::N150);
    // The kernel allows 128 KiB for each.
    let variable = |number: usize| (format!("V{number}"), "x".repeat(100_000));
    let all: Vec<(String, String)> = (0..8).map(variable).collect();
    let mut command = Command::new("sleep");
    command.arg("600").env_clear().envs(all.iter().cloned());
    let child = ChildGuard::spawn(&mut command);
    bench.machine.set_holders(0, &[child.id()]).unwrap();
    let shown = process(&bench.collector().collect(), child.id()).identity;
    let started = shown.unwrap().start_time_ticks;
    let texts = process_texts(bench.machine.root(), child.id(), started).unwrap();
    assert!(texts.is_environment_cut);
    let read = texts.environment.unwrap();
    let whole: Vec<String> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert!(!read.is_empty() && read.len() < whole.len());
    assert!(read.iter().all(|variable| whole.contains(variable)), "each is whole");
}

#[test]
fn a_command_line_is_read_as_a_whole() {
    let mut bench = Bench::new(MachineKind::N150);
    let long = "x".repeat(100_000);
    // It waits itself: a child of it would outlive it.
    let script = format!("kill -STOP $$; : {long}");
    let children = holders(&mut bench, &[&script]);
    let pid = children[0].id();
    let snapshot = bench.collector().collect();
    let holder = process(&snapshot, pid);
    assert!(holder.command.value().unwrap().len() < script.len(), "a snapshot has its beginning");
    let started = holder.identity.unwrap().start_time_ticks;
    let texts = process_texts(bench.machine.root(), pid, started).unwrap();
    assert_eq!(texts.command.unwrap(), format!("sh -c {script}"));
}

#[test]
fn what_another_users_process_reads_and_writes_is_its_own_affair() {
    if !needs_root("collecting::usage::what_another_users_process_reads_and_writes") {
        return;
    }
    let mut bench = Bench::new(MachineKind::N150);
    bench.scratch.set_mode(0o755);
    let children = holders(&mut bench, &["exec sleep 600"]);
    let root = bench.machine.root();
    let snapshot = collected(root, &bench.directory, |command| as_user(ADA, ADA, command));
    let used = usage(&snapshot, children[0].id());
    assert_eq!(reason(&used.read_bytes_per_second), Some(Absence::Permission));
    assert_eq!(reason(&used.written_bytes_per_second), Some(Absence::Permission));
    assert_eq!(used.threads.value(), Some(&1), "what `ps` shows to all is shown");
}
