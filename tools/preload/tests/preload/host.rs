//! The host's memory: a C program that knows what it did.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use telltale_harness::wait_until;
use telltale_ledger::WriterLock;
use telltale_schema::memory::MemoryUsage;

use crate::preload::running::{LIBRARY, Place, Running, WORKLOAD};

/// Rounds and threads of `allocators.h`.
const ROUNDS: u64 = 50;
const THREADS: u64 = 4;

/// What the constructor of `workload.c` has until `main` begins.
const EARLY_BYTES: u64 = 70_000_000;

/// What one thread of `churn` allocates in each round, at or above the threshold.
fn churned(thread: u64) -> [u64; 8] {
    let plain = [100_000, 300_000, 400_000, 450_000, 500_000].map(|size| size + thread);
    let [a, b, c, d, e] = plain;
    [a, 10 * (20_000 + thread), 4096 * (40 + thread), b, c, d, e, 6 * (100_000 + thread)]
}

#[test]
fn four_threads_are_recorded_to_the_byte() {
    let place = Place::new();
    let mut running = place.start("threads");
    let pid = running.says("sums");
    let usage = place.host(pid);
    let all: u64 = (0..THREADS).flat_map(churned).sum();
    let expected = MemoryUsage {
        live_bytes: 7_000_000,
        live_buffers: 1,
        peak_bytes: EARLY_BYTES,
        allocations: THREADS * ROUNDS * 8 + 2,
        allocated_bytes: all * ROUNDS + 7_000_000 + EARLY_BYTES,
        failed_allocations: 1,
    };
    assert_eq!(usage, expected);
    running.go_on();
    assert_eq!(running.ends().code(), Some(0));
    assert!(place.ledgers().is_empty(), "a process that ends leaves nothing");
}

#[test]
fn a_forked_child_has_a_ledger_of_its_own_and_leaves_its_parents_alone() {
    let place = Place::new();
    let mut running = place.start("fork");
    let child = running.says("child");
    let parent = running.child.id();
    assert_ne!(child, parent);
    assert_eq!(place.host(child).live_bytes, 2_000_000);
    assert_eq!(place.host(child).allocations, 1, "the parent's are the parent's");
    assert_eq!(place.host(parent).live_bytes, 1_000_000);
    running.go_on();
    assert_eq!(running.says("parent"), parent);
    assert_eq!(place.ledgers().len(), 1, "_exit removes the child's");
    assert_eq!(place.host(parent).live_bytes, 1_000_000, "a child's free is not its parent's");
    running.go_on();
    assert_eq!(running.ends().code(), Some(0));
    assert!(place.ledgers().is_empty());
}

#[test]
fn an_executed_program_takes_the_place_of_the_one_before() {
    let place = Place::new();
    let mut running = place.start("exec");
    let child = running.says("child");
    assert_eq!(place.host(child).live_bytes, 2_000_000);
    running.go_on();
    assert_eq!(running.says("once"), child, "the same process");
    let usage = place.host(child);
    assert_eq!((usage.live_bytes, usage.allocated_bytes), (3_000_000, 3_000_000 + EARLY_BYTES));
    running.go_on();
    running.says("parent");
    running.go_on();
    assert_eq!(running.ends().code(), Some(0));
    assert!(place.ledgers().is_empty());
}

#[test]
fn the_program_sees_nothing_of_the_library() {
    let place = Place::new();
    let mut running = place.start("unnoticed");
    let pid = running.says("after");
    assert_eq!(place.host(pid).live_bytes, 2_000_000, "recorded after all descriptors were closed");
    assert_eq!(place.ledgers()[0].1.writer_lock(), WriterLock::Held, "the map has the lock");
    running.go_on();
    assert_eq!(running.ends().code(), Some(0));
}

#[test]
fn exit_statuses_and_signals_are_the_programs_own() {
    let place = Place::new();
    let status = place.start("leave").ends();
    assert_eq!(status.code(), Some(9));
    assert!(place.ledgers().is_empty(), "exit removes the ledger");
    let status = place.start("die").ends();
    assert_eq!(status.signal(), Some(9));
    let mut left = place.ledgers();
    let [(_, ledger)] = left.as_mut_slice() else { panic!("{left:?}") };
    assert_eq!(ledger.writer_lock(), WriterLock::Free, "a killed process leaves what it last had");
    let usage = ledger.read().unwrap().usage[0].2;
    let all: u64 = churned(0).iter().sum();
    assert_eq!(usage.allocated_bytes, all * ROUNDS + 9_000_000 + EARLY_BYTES);
    assert_eq!(usage.live_bytes, 9_000_000);
}

#[test]
fn a_block_from_a_signal_handler_counts() {
    let place = Place::new();
    let mut running = place.start("signal");
    let pid = running.says("signal");
    assert_eq!(place.host(pid).live_bytes, 5_000_000);
    running.go_on();
    assert!(running.ends().success());
}

#[test]
fn a_process_without_large_blocks_has_no_ledger() {
    let place = Place::new();
    let mut command = place.command(&*WORKLOAD);
    // Larger than what its constructor has.
    command.arg("small").env("TELLTALE_RUN_THRESHOLD", "100000000");
    let mut running = Running::start(&mut command);
    running.says("small");
    assert!(place.ledgers().is_empty());
    running.go_on();
    assert!(running.ends().success());
}

#[test]
fn every_program_of_a_pipeline_is_recorded_and_prints_what_it_always_prints() {
    let place = Place::new();
    let list = |preload: bool| {
        let mut command = Command::new("sh");
        command.args(["-c", "ls -l /usr/bin | sort -r | head -50; echo $((6 * 7)); exit 3"]);
        if preload {
            let all = place.command("sh");
            command.envs(all.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("TELLTALE_RUN_THRESHOLD", "1");
        }
        command.output().unwrap()
    };
    assert_eq!(list(true), list(false));
    wait_until("all ledgers to be gone", std::time::Duration::from_secs(10), || {
        place.ledgers().iter().all(|(_, ledger)| ledger.writer_lock() != WriterLock::Held)
    });
}

#[test]
fn without_the_variables_or_where_nothing_can_be_recorded_it_only_passes_on() {
    let place = Place::new();
    let run = |change: &dyn Fn(&mut Command)| {
        let mut command = place.command(&*WORKLOAD);
        command.arg("leave");
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(9), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(run(&|command| _ = command.env_remove("TELLTALE_RUN_THRESHOLD")), "");
    let silent = [
        ("TELLTALE_DISABLED", "1"),
        ("TELLTALE_RUN_THRESHOLD", "many"),
        ("TT_METRICS_SOCKET_DIR", "/nowhere"),
    ];
    for (name, value) in silent {
        assert_eq!(run(&|command| _ = command.env(name, value)), "", "{name}");
    }
    assert!(place.ledgers().is_empty());
    // Only the process that `telltale run` became may say so, and once.
    let script = "TELLTALE_RUN_PID=$$ LD_PRELOAD=\"$LIBRARY\" exec \"$WORKLOAD\" leave";
    let mut command = place.command("sh");
    command.args(["-c", script]).env("LIBRARY", &*LIBRARY).env("WORKLOAD", &*WORKLOAD);
    command.env("TT_METRICS_SOCKET_DIR", "/nowhere").env_remove("LD_PRELOAD");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(
        reported.starts_with("telltale: nothing is recorded: ") && reported.lines().count() == 1,
        "{reported}"
    );
}
