//! A Rust program's debug events are in files however it ends, and it ends as it would have without.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use crate::runtime::roles::{program, role};
use rustix::process::{Signal, getpid, kill_process};
use telltale_debug_stream::{Published, TensorEvent, cores};
use telltale_harness::Scratch;
use telltale_runtime::debug_output;

const EVENTS: u32 = 200;
const SEVERAL: u32 = 3;

/// Publishes on several cores, and ends in this way.
pub(crate) fn print_and_end(end: &str) {
    cores::ensure(SEVERAL);
    assert!(debug_output::start(), "the environment asks for it");
    for number in 0..EVENTS {
        let core = number % SEVERAL;
        let data = number.to_le_bytes();
        let event = TensorEvent { prefix: "x", dtype: "uint32", shape: &[], data: &data, pipe: 0 };
        let publisher = cores::stream(core).expect("it was asked for").publisher();
        assert_eq!(publisher.tensor(&event), Published::Queued);
    }
    match end {
        "return" => {}
        "drain" => {
            assert!(debug_output::drain(Duration::MAX), "nobody is in the way");
            // No destructor and no hook runs.
            kill_process(getpid(), Signal::KILL).expect("it is our own");
        }
        "stop" => {
            debug_output::stop();
            let stream = cores::stream(0).expect("it was asked for");
            assert!(!stream.is_connected(), "nobody reads any more");
            kill_process(getpid(), Signal::KILL).expect("it is our own");
        }
        "abort" => std::process::abort(),
        "terminate" => {
            kill_process(getpid(), Signal::TERM).expect("it is our own");
            std::thread::park();
        }
        "overflow" => assert_eq!(deep(1), 0),
        other => panic!("no end {other}"),
    }
}

/// Uses up the stack.
fn deep(level: u64) -> u64 {
    let block = std::hint::black_box([level; 64]);
    if level == 0 { 0 } else { deep(level + 1) + std::hint::black_box(block)[0] }
}

fn saved(directory: &Path) -> u32 {
    let of_core = |core: u32| {
        let place = directory.join(format!("x/core_{core}"));
        let entries = std::fs::read_dir(place).expect("the core printed");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names.filter(|name| name.to_string_lossy().parse::<u64>().is_ok()).count()
    };
    (0..SEVERAL).map(of_core).map(|count| u32::try_from(count).expect("a few")).sum()
}

#[test]
fn events_are_in_files_however_a_program_ends() {
    let scratch = Scratch::new();
    let program = program(&scratch);
    for (end, code, signal, reported) in [
        ("return", Some(0), None, ""),
        ("drain", None, Some(9), ""),
        ("stop", None, Some(9), ""),
        ("abort", None, Some(6), ""),
        ("terminate", None, Some(15), ""),
        // The standard library's own handler says so and aborts.
        ("overflow", None, Some(6), "has overflowed its stack"),
    ] {
        let directory = scratch.join(end);
        let mut command = role(&program, &format!("print and {end}"), scratch.path());
        command.env("NEURON_RT_DEBUG_OUTPUT_DIR", &directory);
        command.env_remove("NEURON_RT_DEBUG_SAVE_BINARY").env_remove("TELLTALE_DEBUG_FILTER");
        let output = command.output().expect("it can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), output.status.signal()),
            (code, signal),
            "{end} {errors}"
        );
        assert!(errors.contains(reported), "{end}: {errors}");
        assert_eq!(saved(&directory), EVENTS, "{end}");
    }
}
