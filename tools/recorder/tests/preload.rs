//! A C program under the recorder, and what the trace says it did, to the byte.
#![expect(clippy::unwrap_used, reason = "the shared pieces of these tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use telltale_harness::{Scratch, compile_c, needs_pid_namespaces, needs_root, skip};
use telltale_trace::{Trace, TraceEvent};

/// Rounds and threads of `allocators.h`.
const ROUNDS: u64 = 50;
const THREADS: u64 = 4;

/// The preload library, built once.
static RECORDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "telltale-recorder", "--lib"])
        .args(["--target-dir".as_ref(), target().parent().unwrap().as_os_str()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success());
    target().parent().unwrap().join("debug/libtelltale_recorder.so")
});

/// The C program, compiled once.
static WORKLOAD: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workload.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorder-workload");
    // -fno-builtin, or the compiler removes pairs of malloc and free.
    compile_c(&source, &program, &["-O1", "-fno-builtin", "-pthread"])
});

/// The folder of this profile's binaries.
fn target() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_telltale-trace-convert")).parent().unwrap()
}

fn recorded(folder: &Scratch, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", &*RECORDER)
        .env("TELLTALE_RECORD_FILE", folder.join("raw"))
        .env("TELLTALE_RECORD_THRESHOLD", "65536")
        // Enough for every test, and no 128 MiB left behind by each.
        .env("TELLTALE_RECORD_LIMIT", "20000");
    command
}

fn convert(raw: &Path) -> (Output, PathBuf) {
    let trace = raw.with_added_extension("trace");
    let output = Command::new(env!("CARGO_BIN_EXE_telltale-trace-convert"))
        .args([raw, &trace])
        .args(["--made-with", "a test"])
        .output()
        .unwrap();
    (output, trace)
}

/// Converts what must convert without anything left out.
fn trace(raw: &Path) -> Trace {
    let (output, trace) = convert(raw);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !text.contains("note"), "{text}");
    Trace::read(File::open(trace).unwrap()).unwrap()
}

/// How often each size was allocated.
fn sizes(trace: &Trace) -> BTreeMap<u64, u64> {
    let mut sizes = BTreeMap::new();
    for record in trace.records() {
        if let TraceEvent::Allocate { size_bytes, .. } = record.event {
            *sizes.entry(size_bytes).or_default() += 1;
        }
    }
    sizes
}

/// What one thread of `churn` allocates in each round, at or above the threshold; `valloc` is not
/// recorded.
fn churned(thread: u64) -> [u64; 7] {
    let plain = [100_000, 300_000, 400_000, 500_000].map(|size| size + thread);
    let [a, b, c, d] = plain;
    [a, 10 * (20_000 + thread), 4096 * (40 + thread), b, c, d, 6 * (100_000 + thread)]
}

#[test]
fn four_threads_are_recorded_to_the_byte() {
    let folder = Scratch::new();
    let output = recorded(&folder, &WORKLOAD).arg("threads").output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, b"done\n");
    let trace = trace(&folder.join("raw"));

    let mut expected: BTreeMap<u64, u64> =
        (0..THREADS).flat_map(|thread| churned(thread).map(|size| (size, ROUNDS))).collect();
    // Once as allocated, once more when its reallocation failed.
    expected.insert(7_000_000, 2);
    assert_eq!(sizes(&trace), expected);

    let summary = trace.summary();
    assert_eq!(summary.live_bytes_at_end, 7_000_000);
    assert_eq!(summary.live_allocations_at_end, 1);
    let threads = u32::try_from(THREADS).unwrap();
    assert_eq!(summary.threads, threads + 1, "four threads and the main one at the end");
    let total: u64 = expected.iter().map(|(size, count)| size * count).sum();
    assert_eq!(summary.allocated_bytes, total);
    let header = trace.header();
    assert_eq!(header.description.threshold_bytes, 65_536);
    assert_eq!(header.description.command, format!("{} threads", WORKLOAD.display()));
}

#[test]
fn what_was_recorded_survives_a_kill() {
    let folder = Scratch::new();
    let output = recorded(&folder, &WORKLOAD).arg("die").output().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(9));
    let trace = trace(&folder.join("raw"));
    let mut expected: BTreeMap<u64, u64> = churned(0).map(|size| (size, ROUNDS)).into();
    expected.insert(9_000_000, 1);
    assert_eq!(sizes(&trace), expected);
    assert_eq!(trace.summary().live_bytes_at_end, 9_000_000);
}

#[test]
fn a_forked_child_does_not_record() {
    let folder = Scratch::new();
    assert!(recorded(&folder, &WORKLOAD).arg("fork").status().unwrap().success());
    let trace = trace(&folder.join("raw"));
    assert_eq!(sizes(&trace), BTreeMap::from([(1_000_000, 1)]));
    assert_eq!(trace.summary().records, 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the raw file and the trace");
}

#[test]
fn an_executed_program_has_its_own_file() {
    let folder = Scratch::new();
    assert!(recorded(&folder, &WORKLOAD).args(["fork", "exec"]).status().unwrap().success());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        found.push(sizes(&trace(&entry.unwrap().path())));
    }
    found.sort();
    assert_eq!(found, [BTreeMap::from([(1_000_000, 1)]), BTreeMap::from([(3_000_000, 1)])]);
}

#[test]
fn without_the_variable_a_program_is_as_before() {
    let folder = Scratch::new();
    let list = |preload: bool| {
        let mut command = Command::new("ls");
        command.arg("-l").arg(env!("CARGO_MANIFEST_DIR"));
        if preload {
            command.env("LD_PRELOAD", &*RECORDER);
        }
        command.output().unwrap()
    };
    assert_eq!(list(true), list(false));
    let output =
        Command::new(&*WORKLOAD).arg("threads").env("LD_PRELOAD", &*RECORDER).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_full_recording_counts_and_lets_the_program_live() {
    let folder = Scratch::new();
    let output = recorded(&folder, &WORKLOAD)
        .arg("threads")
        .env("TELLTALE_RECORD_LIMIT", "200")
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    let (output, file) = convert(&folder.join("raw"));
    let text = String::from_utf8(output.stdout).unwrap();
    // Seven blocks a round, each allocated and freed, then the last three events.
    let dropped = ROUNDS * THREADS * 14 + 3 - 200;
    assert!(text.contains(&format!("{dropped} events found the recording full")), "{text}");
    assert_eq!(Trace::read(File::open(file).unwrap()).unwrap().summary().records, 200);
}

#[test]
fn a_place_too_small_for_the_file_shortens_the_recording() {
    let folder = Scratch::new();
    // The shell's limit counts blocks of 512 or 1024 bytes; either leaves room for some records.
    let limited = |blocks: u32| {
        let mut command = recorded(&folder, Path::new("/bin/sh"));
        command.env_remove("LD_PRELOAD").env("RECORDER", &*RECORDER).arg("-c").arg(format!(
            "ulimit -f {blocks}; LD_PRELOAD=$RECORDER exec '{}' threads",
            WORKLOAD.display()
        ));
        command.output().unwrap()
    };
    let output = limited(40);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let (output, _) = convert(&folder.join("raw"));
    assert!(String::from_utf8(output.stdout).unwrap().contains("found the recording full"));

    fs::remove_file(folder.join("raw")).unwrap();
    let output = limited(4);
    assert!(output.status.success(), "{output:?}");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        complaint,
        "telltale-recorder: nothing is recorded: no space left for TELLTALE_RECORD_FILE\n"
    );
}

#[test]
fn a_full_disk_shortens_the_recording() {
    let test = "a_full_disk_shortens_the_recording";
    if !needs_root(test) || !needs_pid_namespaces(test) {
        return;
    }
    let folder = Scratch::new();
    let disk = folder.join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none '{0}'; \
         TELLTALE_RECORD_FILE='{0}/raw' LD_PRELOAD='{1}' '{2}' threads; cp '{0}/raw' '{3}'",
        disk.display(),
        RECORDER.display(),
        WORKLOAD.display(),
        folder.join("raw").display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &script]).env("TELLTALE_RECORD_THRESHOLD", "65536");
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.stdout, b"done\n");
    let (output, file) = convert(&folder.join("raw"));
    assert!(String::from_utf8(output.stdout).unwrap().contains("found the recording full"));
    let records = Trace::read(File::open(file).unwrap()).unwrap().summary().records;
    assert!((500..1920).contains(&records), "{records} records fit 60 KiB");
}

#[test]
fn a_wrong_number_is_named_and_nothing_is_recorded() {
    let folder = Scratch::new();
    let output = recorded(&folder, &WORKLOAD)
        .arg("once")
        .env("TELLTALE_RECORD_THRESHOLD", "4k")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("take a whole number"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_no_recording_is_refused_and_leaves_no_trace() {
    let folder = Scratch::new();
    let raw = folder.join("raw");
    let mut recording = vec![0u8; 4096 + 32];
    recording[..8].copy_from_slice(b"ttlraw1\n");
    recording[24] = 1; // capacity
    recording[32] = 1; // begun
    recording[4096] = 3; // a kind that does not exist
    let mut cut = recording[..4100].to_vec();
    cut[4096] = 1;
    let mut endless = recording.clone();
    endless[24..40].fill(0xff);
    for (bytes, expected) in [
        (&recording[..100], "cannot read the raw recording"),
        (&[0; 5000][..], "not a raw recording"),
        (&recording, "raw record 0 has the unknown kind 3"),
        (&cut, "cannot read the raw recording"),
        (&endless, "header of the raw recording is damaged"),
    ] {
        fs::write(&raw, bytes).unwrap();
        let (output, trace) = convert(&raw);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && complaint.contains(expected), "{complaint}");
        assert!(!trace.exists());
    }
}

#[test]
fn a_training_run_of_pytorch_gives_back_what_it_took() {
    let python = Path::new("/usr/bin/python3");
    let trial = Command::new(python).args(["-c", "import torch"]).output();
    if !trial.is_ok_and(|output| output.status.success()) {
        let test = "a_training_run_of_pytorch_gives_back_what_it_took";
        return skip(test, "needs Debian's python3-torch");
    }
    let folder = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpt_trace.py");
    let output = recorded(&folder, python)
        .arg(script)
        .args(["train", "--steps", "5", "--layers", "2", "--width", "128"])
        .args(["--context", "128", "--batch", "8"])
        .env("TELLTALE_RECORD_LIMIT", "100000")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("step 5 loss"), "{text}");
    let summary = trace(&folder.join("raw")).summary();
    assert!(summary.allocations > 500, "{summary:?}");
    assert!(summary.peak_live_bytes > 20_000_000, "{summary:?}");
    assert!(summary.live_bytes_at_end < summary.peak_live_bytes / 4, "{summary:?}");
}
