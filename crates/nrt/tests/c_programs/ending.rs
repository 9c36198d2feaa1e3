//! The default consumer: what was published is in its files however the process ends, and the
//! process ends as it would have without.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use crate::c_programs::installed::{install, program};
use telltale_harness::{Scratch, needs_pid_namespaces, needs_root, wait_until};

const EVENTS: u64 = 300;
const DIRECTORY: &str = "NEURON_RT_DEBUG_OUTPUT_DIR";
/// Signals that end a process, by the number that Linux gives them on all machines we build for.
const SIGNALS: [i32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 15];
const TERMINATED: i32 = 15;
/// What would change what the programs do.
const VARIABLES: [&str; 4] = [
    "NEURON_RT_VISIBLE_CORES",
    "NEURON_RT_NUM_CORES",
    "NEURON_RT_DEBUG_SAVE_BINARY",
    "TELLTALE_DEBUG_FILTER",
];
const TIMEOUT: Duration = Duration::from_secs(60);

/// The program, built once.
fn ending() -> &'static Path {
    static BUILT: OnceLock<(Scratch, PathBuf)> = OnceLock::new();
    let build = || {
        let scratch = Scratch::new();
        let built = program("ending.c", &install(&scratch));
        (scratch, built)
    };
    &BUILT.get_or_init(build).1
}

/// The program with a default consumer that writes below `directory`.
fn command(directory: &Path, events: u64, way: &str, signal: i32) -> Command {
    let mut command = Command::new(ending());
    for name in VARIABLES {
        command.env_remove(name);
    }
    // More than are published by those that do not publish for ever.
    command.env("NEURON_RT_DEBUG_STREAM_BUFFER_SIZE", "1000");
    command.env(DIRECTORY, directory).args([&events.to_string(), way, &signal.to_string()]);
    command
}

fn ended(way: &str, signal: i32) -> (Scratch, Output) {
    let scratch = Scratch::new();
    let output = command(scratch.path(), EVENTS, way, signal).output().unwrap();
    (scratch, output)
}

fn reported(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The numbers that the events under `directory` hold, by iteration; each must be whole.
fn saved(directory: &Path) -> Vec<(u64, u32)> {
    let place = directory.join("number/core_0");
    let Ok(entries) = std::fs::read_dir(&place) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let iterations = names.filter_map(|name| name.parse().ok());
    let mut found: Vec<(u64, u32)> = iterations
        .map(|iteration: u64| {
            let event = place.join(iteration.to_string());
            let data = std::fs::read(event.join("tensor_data.bin")).unwrap();
            let metadata = std::fs::read_to_string(event.join("metadata.txt")).unwrap();
            assert!(metadata.contains("dtype = uint32\n"), "{metadata}");
            assert!(metadata.ends_with(&format!("iteration = {iteration}\n")), "{metadata}");
            (iteration, u32::from_ne_bytes(data.try_into().unwrap()))
        })
        .collect();
    found.sort_unstable();
    found
}

fn check_all_saved(directory: &Path, context: &str) {
    let expected: Vec<_> = (0..EVENTS).map(|event| (event, event as u32)).collect();
    assert_eq!(saved(directory), expected, "{context}");
}

#[test]
fn everything_is_written_when_the_process_ends_by_itself() {
    for (way, code) in [("return", 7), ("exit", 8), ("close", 0), ("drain", 0), ("fork", 0)] {
        let (scratch, output) = ended(way, 0);
        assert_eq!(output.status.code(), Some(code), "{way}: {}", reported(&output));
        check_all_saved(scratch.path(), way);
        let lines = String::from_utf8(output.stdout).unwrap();
        let printed = lines.lines().filter(|line| line.starts_with("[core 0] number#")).count();
        assert_eq!(printed as u64, EVENTS, "{way}");
        assert_eq!(lines.lines().next(), Some(FIRST_LINE), "{way}");
    }
}

const FIRST_LINE: &str =
    "[core 0] number#0: uint32 (1), min 0, max 0, mean 0, std 0, 0 nan, 0 inf, 1 zero";

#[test]
fn underscore_exit_loses_what_waits_and_leaves_what_is_there_whole() {
    let (scratch, output) = ended("_exit", 0);
    assert_eq!(output.status.code(), Some(9));
    let saved = saved(scratch.path());
    assert!(saved.len() as u64 <= EVENTS, "{}", saved.len());
}

#[test]
fn everything_is_written_before_each_signal_ends_the_process() {
    for signal in SIGNALS {
        let (scratch, output) = ended("raise", signal);
        assert_eq!(output.status.signal(), Some(signal), "{}", reported(&output));
        check_all_saved(scratch.path(), &format!("signal {signal}"));
    }
    let faults = [("fault", 11), ("fault in a thread", 11), ("bad tensor", 11)];
    for (way, signal) in faults.into_iter().chain([("abort", 6)]) {
        let (scratch, output) = ended(way, 0);
        assert_eq!(output.status.signal(), Some(signal), "{way}: {}", reported(&output));
        check_all_saved(scratch.path(), way);
    }
}

#[test]
fn handlers_that_were_there_before_run_and_decide() {
    for signal in [2, 10, 15] {
        let (_, output) = ended("plain", signal);
        assert_eq!((output.status.code(), reported(&output)), (Some(3), "plain\n".to_owned()));
        let (scratch, output) = ended("detailed", signal);
        let expected = (Some(signal), "detailed, from ourselves\n".to_owned());
        assert_eq!((output.status.signal(), reported(&output)), expected);
        if signal != 10 {
            check_all_saved(scratch.path(), &format!("handled signal {signal}"));
        }
        let (_, output) = ended("once", signal);
        let expected = (Some(signal), "plain\n".to_owned());
        assert_eq!((output.status.signal(), reported(&output)), expected, "the second one ends it");
        let (_, output) = ended("ignored", signal);
        assert_eq!((output.status.code(), reported(&output)), (Some(3), String::new()));
        let (_, output) = ended("late", signal);
        assert_eq!((output.status.code(), reported(&output)), (Some(3), "plain\n".to_owned()));
    }
}

#[test]
fn a_producer_that_never_stops_does_not_keep_the_process_alive() {
    let (scratch, output) = ended("busy", TERMINATED);
    assert_eq!(output.status.signal(), Some(TERMINATED), "{}", reported(&output));
    assert!(saved(scratch.path()).len() as u64 >= EVENTS);
}

#[test]
fn a_killed_process_leaves_whole_events_and_the_next_one_goes_on() {
    let scratch = Scratch::new();
    let mut killed = command(scratch.path(), 0, "endless", 0);
    killed.stdout(std::process::Stdio::null());
    let mut child = killed.spawn().unwrap();
    let has_some = || scratch.join("number/core_0/3").exists();
    wait_until("some events are there", TIMEOUT, has_some);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = saved(scratch.path());
    let output = command(scratch.path(), EVENTS, "return", 0).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let after = saved(scratch.path());
    assert_eq!(after[..before.len()], before[..], "what was there is left alone");
    assert_eq!(after.len(), before.len() + EVENTS as usize);
    let iterations: BTreeSet<u64> = after.iter().map(|(iteration, _)| *iteration).collect();
    assert_eq!(iterations, (0..after.len() as u64).collect());
}

#[test]
fn the_default_consumer_steps_aside_for_a_client_and_comes_back() {
    let (scratch, output) = ended("client", 0);
    assert!(output.status.success(), "{}", reported(&output));
    let saved = saved(scratch.path());
    let values: Vec<u32> = saved.into_iter().map(|(_, value)| value).collect();
    let expected: Vec<u32> = (0..EVENTS as u32).chain([78]).collect();
    assert_eq!(values, expected, "77 went to the client");
}

#[test]
fn closing_ends_it_and_beginning_again_begins_it_again() {
    let (scratch, output) = ended("close and begin", 0);
    assert!(output.status.success(), "{}", reported(&output));
    assert_eq!(saved(scratch.path()).len() as u64, EVENTS + 1);
}

#[test]
fn what_cannot_be_saved_is_reported_once_and_ends_nothing() {
    let scratch = Scratch::new();
    let file = scratch.join("file");
    std::fs::write(&file, "in the way").unwrap();
    let output = command(&file, EVENTS, "return", 0).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let reported = reported(&output);
    assert!(reported.starts_with("telltale: cannot save a debug event in "), "{reported}");
    assert!(reported.contains("another directory with NEURON_RT_DEBUG_OUTPUT_DIR"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "in the way");
    let printed = String::from_utf8_lossy(&output.stdout).lines().count();
    assert_eq!(printed as u64, 2 * EVENTS, "each event is printed");
}

#[test]
fn a_full_disk_is_reported_once_and_what_fits_is_whole() {
    const NAME: &str = "nrt::a_full_disk_is_reported_once_and_what_fits_is_whole";
    if !needs_root(NAME) || !needs_pid_namespaces(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let [full, copy] = ["full", "copy"].map(|name| scratch.join(name));
    std::fs::create_dir(&full).unwrap();
    let inner = command(&full, EVENTS, "return", 0);
    let script = "mount -t tmpfs -o size=256k none \"$0\" || exit 99; copy=$1; shift; \
                  \"$@\"; code=$?; cp -r \"$0\" \"$copy\"; exit $code";
    let mut outer = Command::new("unshare");
    outer.args(["--mount", "sh", "-c", script]).arg(&full).arg(&copy);
    outer.arg(inner.get_program()).args(inner.get_args()).env(DIRECTORY, &full);
    let output = outer.output().unwrap();
    let reported = reported(&output);
    assert_eq!(output.status.code(), Some(7), "{reported}");
    assert!(reported.contains("No space left on device"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
    let saved = saved(&copy);
    assert!(!saved.is_empty() && (saved.len() as u64) < EVENTS, "{}", saved.len());
    for (iteration, value) in saved {
        assert_eq!(iteration, u64::from(value), "a number that could not be saved is left out");
    }
}

#[test]
fn hostile_prefixes_make_one_directory_inside() {
    let long = "x/".repeat(255) + "x";
    for prefix in ["/etc/passwd", "../../up", "..", ".", "a/b", "\x1b[31m\n", "", &long, "\u{202e}"]
    {
        let scratch = Scratch::new();
        let inside = scratch.join("inside");
        let mut publish = command(&inside, 2, "prefix", 0);
        let output = publish.arg(prefix).output().unwrap();
        assert!(output.status.success(), "{prefix:?}: {}", reported(&output));
        let names = |directory: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(directory).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        assert_eq!(names(scratch.path()), ["inside"], "{prefix:?}");
        let found = names(&inside);
        assert_eq!(found.len(), 1, "{prefix:?}: {found:?}");
        assert!(found[0].chars().all(|one| one.is_ascii_graphic()), "{prefix:?}: {found:?}");
        let place = inside.join(&found[0]).join("core_0");
        let iterations: BTreeSet<String> = names(&place).into_iter().collect();
        assert_eq!(iterations, ["0", "1"].map(str::to_owned).into(), "{prefix:?}");
        assert!(output.stdout.is_empty(), "its pipe is standard error");
        let steers = |one: char| one.is_control() && one != '\n' || one == '\u{202e}';
        assert!(!reported(&output).contains(steers), "{prefix:?}: {:?}", reported(&output));
    }
}

#[test]
fn the_umask_and_the_wish_for_bytes_alone_are_respected() {
    use std::os::unix::fs::PermissionsExt;
    for (umask, directories, files) in [("077", 0o700, 0o600), ("022", 0o755, 0o644)] {
        let scratch = Scratch::new();
        let inside = scratch.join("new/inside");
        let inner = command(&inside, 1, "return", 0);
        let mut outer = Command::new("sh");
        outer.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
        outer.arg(inner.get_program()).args(inner.get_args());
        outer.env(DIRECTORY, &inside).env("NEURON_RT_DEBUG_SAVE_BINARY", "1");
        assert_eq!(outer.output().unwrap().status.code(), Some(7));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let event = inside.join("number/core_0/0");
        assert_eq!([mode(&inside), mode(&event)], [directories; 2], "{umask}");
        assert_eq!(mode(&event.join("tensor_data.bin")), files, "{umask}");
        assert!(event.join("metadata.txt").exists());
        assert!(!event.join("formatted_tensor.txt").exists());
    }
}

#[test]
fn a_filter_of_the_environment_holds_for_programs_in_c() {
    for (filter, expected, reported_lines) in [
        ("every=100", &[0, 100, 200][..], 0),
        ("prefix=nothing*;core=0", &[], 0),
        ("core=zero", &[0, 1, 2], 1),
    ] {
        let scratch = Scratch::new();
        let events = if reported_lines > 0 { 3 } else { EVENTS };
        let mut filtered = command(scratch.path(), events, "return", 0);
        let output = filtered.env("TELLTALE_DEBUG_FILTER", filter).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{filter}: {}", reported(&output));
        assert_eq!(reported(&output).lines().count(), reported_lines, "{filter}");
        let values: Vec<u32> = saved(scratch.path()).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, expected, "{filter}");
    }
}

#[test]
fn nothing_is_written_or_printed_unless_asked_for() {
    let mut plain = command(Path::new(""), 0, "return", 0);
    let output = plain.output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0));
}
