//! Compiled kernels on disk: shared by processes, whole or not there, run only if they are ours.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use telltale_emulator::{Accelerator, AcceleratorOptions, KernelCacheError, OpenAcceleratorError};
use telltale_harness::ChildGuard;
use telltale_runtime::{Options, Runtime};

use crate::accelerator::bench::Bench;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A compiler that notes each compilation and then waits to be let go on.
struct SlowCompiler {
    script: PathBuf,
    log: PathBuf,
    gate: PathBuf,
}

impl SlowCompiler {
    fn new(bench: &Bench) -> Self {
        let path = |name: &str| bench.scratch.join(name);
        let (script, log, gate) = (path("slow-cc"), path("compilations"), path("gate"));
        mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in *-shared*) echo one >>{}; read -r line <{};; esac\n\
             exec cc \"$@\"\n",
            log.display(),
            gate.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o700)).unwrap();
        Self { script, log, gate }
    }

    /// Lets the compilation that has begun, or begins next, go on.
    fn let_go_on(&self) {
        let mut gate = OpenOptions::new().write(true).open(&self.gate).unwrap();
        gate.write_all(b"go on\n").unwrap();
    }

    fn compilations(&self) -> usize {
        fs::read_to_string(&self.log).unwrap_or_default().lines().count()
    }
}

/// The program of `examples/kernel_cache.rs`; returns once it has the device open.
fn workload(
    bench: &Bench,
    compiler: Option<&SlowCompiler>,
) -> (ChildGuard, BufReader<ChildStdout>) {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/kernel_cache");
    assert!(program.exists(), "{} is built by `cargo test` without --test", program.display());
    let mut command = Command::new(program);
    command.arg(bench.emulator.root()).arg(cache(bench)).stdout(Stdio::piped());
    // The same command in every process, or their kernels would not be the same.
    let compiler = compiler.map_or("cc".as_ref(), |compiler| compiler.script.as_path());
    command.env("CC", compiler).env_remove("TELLTALE_KERNEL_CACHE");
    let mut child = ChildGuard::spawn(&mut command);
    let mut output = BufReader::new(child.child().stdout.take().unwrap());
    assert_eq!(next_line(&mut output), "open\n");
    (child, output)
}

fn next_line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

/// Where the workloads keep their kernels.
fn cache(bench: &Bench) -> PathBuf {
    bench.scratch.join("shared-kernels")
}

fn ends_well((mut child, mut output): (ChildGuard, BufReader<ChildStdout>)) -> String {
    let line = next_line(&mut output);
    assert!(child.wait_within("the workload to end", TIMEOUT).success());
    line
}

#[test]
fn processes_that_are_cold_at_the_same_time_compile_once() {
    let bench = Bench::new();
    let compiler = SlowCompiler::new(&bench);
    let workloads = [(); 3].map(|()| workload(&bench, Some(&compiler)));
    compiler.let_go_on();
    let mut lines = workloads.map(ends_well);
    lines.sort();
    assert_eq!(lines, ["compiled 0 found 1\n", "compiled 0 found 1\n", "compiled 1 found 0\n"]);
    assert_eq!(compiler.compilations(), 1);
}

#[test]
fn a_process_killed_while_it_compiles_leaves_a_cache_that_works() {
    let bench = Bench::new();
    let compiler = SlowCompiler::new(&bench);
    let (mut killed, _output) = workload(&bench, Some(&compiler));
    // Opening the gate waits for the compilation to have begun.
    let mut gate = OpenOptions::new().write(true).open(&compiler.gate).unwrap();
    killed.kill();
    let next = workload(&bench, Some(&compiler));
    // One line for each: the killed process's compiler goes on as well, in the same directory.
    gate.write_all(b"go on\ngo on\n").unwrap();
    assert_eq!(ends_well(next), "compiled 1 found 0\n");
    assert_eq!(ends_well(workload(&bench, Some(&compiler))), "compiled 0 found 1\n");
    assert_eq!(compiler.compilations(), 2);
}

#[test]
fn a_damaged_entry_is_made_again() {
    let bench = Bench::new();
    assert_eq!(ends_well(workload(&bench, None)), "compiled 1 found 0\n");
    let entries = || {
        let entries = fs::read_dir(cache(&bench)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "so")).collect::<Vec<_>>()
    };
    let entry = entries().pop().unwrap();
    let whole = fs::read(&entry).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &whole[1..], &flipped, &[]] {
        fs::write(&entry, damaged).unwrap();
        assert_eq!(ends_well(workload(&bench, None)), "compiled 1 found 0\n");
        assert_eq!(ends_well(workload(&bench, None)), "compiled 0 found 1\n");
    }
    assert_eq!(entries(), [entry]);
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let bench = Bench::new();
    let shared = bench.scratch.join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    let file = bench.scratch.join("file");
    File::create(&file).unwrap();
    let runtime = Runtime::start(Options::new("a test"));
    let open = |kernel_cache| {
        let root = Some(bench.emulator.root().to_path_buf());
        let options = AcceleratorOptions { root, kernel_cache, ..Default::default() };
        Accelerator::open(&options, &runtime)
    };
    let error = open(Some(shared)).unwrap_err();
    let is_refused =
        matches!(error, OpenAcceleratorError::KernelCache(KernelCacheError::NotPrivate { .. }));
    assert!(is_refused, "{error}");
    let error = open(Some(file)).unwrap_err();
    let is_unusable =
        matches!(error, OpenAcceleratorError::KernelCache(KernelCacheError::Unusable { .. }));
    assert!(is_unusable, "{error}");
    let none = open(Some("off".into())).unwrap();
    let directory = none.kernel_cache().to_path_buf();
    assert!(directory.exists());
    drop(none);
    assert!(!directory.exists(), "nothing is kept");
}
