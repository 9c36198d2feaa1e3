//! The Python module as its users have it: in a real interpreter, with the library that was just built.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_harness::{
    ChildGuard, Scratch, cargo_bin, cargo_library_directory, code_blocks, long,
    needs_pid_namespaces, python, python_module, python_with, skip,
};

const PAGES: [&str; 2] =
    [include_str!("../../../docs/python.md"), include_str!("../../../docs/program-cache.md")];

/// The tests in Python.
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// What the pages show is tried on this machine.
const MACHINE: &str = "n300";

/// Python with the module.
fn with_module(mut python: Command) -> Command {
    python.env("PYTHONPATH", python_module()).env("PYTHONDONTWRITEBYTECODE", "1");
    python.env("TELLTALE", cargo_bin("telltale"));
    let debug_stream = cargo_library_directory("telltale-nrt", "telltale_nrt");
    python.env("TELLTALE_NRT", debug_stream.join("libtelltale_nrt.so"));
    python
}

/// What a command prints, which succeeds.
#[track_caller]
fn succeeds(command: &mut Command, what: &str) -> String {
    let output = command.output().expect("python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}\n{text}\n{errors}");
    text.into_owned()
}

/// Runs pytest. What it skips is recorded as skipped here.
#[track_caller]
fn pytest(test: &str, python: Command, arguments: &[&str]) {
    let mut python = with_module(python);
    python.args(["-m", "pytest", "-q", "-rs"]).args(arguments);
    let text = succeeds(&mut python, "pytest");
    for reason in skips(&text) {
        skip(test, reason);
    }
}

/// What pytest says of each skip with `-rs`.
fn skips(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("SKIPPED [")).collect()
}

#[test]
fn the_module_does_what_its_tests_say() {
    let test = "the_module_does_what_its_tests_say";
    let Some(python) = python_with(test, "pytest, numpy") else { return };
    let ignored = ["trainers", "notebooks", "tasks"].map(|name| format!("--ignore={TESTS}/{name}"));
    let [trainers, notebooks, tasks] = ignored.each_ref().map(String::as_str);
    pytest(test, python, &[trainers, notebooks, tasks, "--ignore-glob=*/test_debug*.py", TESTS]);
}

#[test]
fn debug_events_are_what_other_packages_take_them_for() {
    let test = "debug_events_are_what_other_packages_take_them_for";
    let Some(python) = python_with(test, "pytest, numpy, ml_dtypes, torch") else { return };
    let files = ["test_debug.py", "test_debug_streams.py", "test_debug_tasks.py"]
        .map(|file| format!("{TESTS}/{file}"));
    pytest(test, python, &files.each_ref().map(String::as_str));
}

#[test]
fn trainers_log_what_each_step_costs() {
    let test = "trainers_log_what_each_step_costs";
    if !long() {
        return skip(test, "needs packages of gigabytes; TELLTALE_LONG_TESTS=1 runs it");
    }
    let packages = "pytest, lightning.pytorch, transformers, accelerate";
    let Some(python) = python_with(test, packages) else { return };
    pytest(test, python, &[&format!("{TESTS}/trainers")]);
}

#[test]
fn the_notebooks_run() {
    let test = "the_notebooks_run";
    let packages = "pytest, nbclient, nbformat, ipykernel, pandas";
    let Some(python) = python_with(test, packages) else { return };
    pytest(test, python, &[&format!("{TESTS}/notebooks")]);
}

#[test]
fn the_eight_tasks_are_as_short_as_the_page_says() {
    let test = "the_eight_tasks_are_as_short_as_the_page_says";
    if !needs_pid_namespaces(test) {
        return;
    }
    let Some(python) = python_with(test, "pytest, nvitop, pynvml, pandas, numpy") else { return };
    pytest(test, python, &[&format!("{TESTS}/tasks")]);
}

#[test]
fn what_pytest_skips_is_found_in_what_it_prints() {
    let test = "what_pytest_skips_is_found_in_what_it_prints";
    let Some(mut python) = python_with(test, "pytest") else { return };
    let scratch = Scratch::new();
    let file = scratch.join("test_skips.py");
    let text = "import pytest\ndef test_skips():\n    pytest.skip('needs a cable')\ndef test_runs(): pass\n";
    fs::write(&file, text).expect("it is ours");
    python.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]).arg(file);
    let text = succeeds(python.env("PYTHONDONTWRITEBYTECODE", "1"), "pytest");
    let found = skips(&text);
    assert!(found.len() == 1 && found[0].ends_with("test_skips.py:3: needs a cable"), "{text}");
}

/// Most systems have no `libpython`: the interpreter has all of it.
#[test]
fn it_is_linked_to_no_interpreter() {
    let mut readelf = Command::new("readelf");
    readelf.arg("-d").arg(python_module().join("telltale/_telltale.abi3.so"));
    let output = readelf.output().expect("it is installed with the compiler");
    let needed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && needed.contains("libc.so"), "{needed}");
    assert!(!needed.contains("libpython"), "{needed}");
}

/// One library is for each CPython from 3.10 on.
#[test]
fn each_python_that_is_here_takes_the_module() {
    let is_here = |name: &String| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let names: Vec<String> = (10..=15).map(|minor| format!("python3.{minor}")).collect();
    let here: Vec<&String> = names.iter().filter(|name| is_here(name)).collect();
    if here.is_empty() {
        return skip("each_python_that_is_here_takes_the_module", "needs CPython 3.10 or later");
    }
    let program = "import telltale\nwith telltale.track('x'): print(telltale.snapshot())";
    for name in here {
        let mut python = with_module(Command::new(name));
        succeeds(python.args(["-W", "error", "-c", program]), name);
    }
}

/// The types of sources and tests, and of what the page shows, as a strict checker sees them.
#[test]
fn types_are_strict() {
    let Some(mut python) = python_with("types_are_strict", "basedpyright") else { return };
    let interpreter = python.get_program().to_owned();
    let scratch = Scratch::new();
    let examples = PAGES.iter().flat_map(|page| code_blocks(page, "python"));
    for (number, example) in examples.enumerate() {
        fs::write(scratch.join(format!("example_{number}.py")), example).expect("it is ours");
    }
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/python");
    let notebooks = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/notebooks/run.py");
    let settings = serde_json::json!({
        "include": [sources, TESTS, notebooks, scratch.path()],
        "extraPaths": [sources, TESTS],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.10",
    });
    let project = scratch.join("pyrightconfig.json");
    fs::write(&project, settings.to_string()).expect("it is ours");
    python.args(["-m", "basedpyright", "--pythonpath"]).arg(interpreter);
    succeeds(python.arg("--project").arg(project), "basedpyright");
}

#[test]
fn each_example_of_the_pages_runs() {
    let test = "each_example_of_the_pages_runs";
    if python_with(test, "numpy").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let mut emulator = Command::new(cargo_bin("telltale"));
    emulator.args(["emulate", "--machine", MACHINE, "--root"]).arg(&root);
    let mut machine = ChildGuard::spawn(emulator.stderr(Stdio::piped()));
    let mut ready = String::new();
    let errors = machine.child().stderr.take().expect("it is a pipe");
    BufReader::new(errors).read_line(&mut ready).expect("it says that its files are there");
    make_files(&scratch, &root);
    let kernels = scratch.join("kernels");
    for example in PAGES.iter().flat_map(|page| code_blocks(page, "python")) {
        let mut python = with_module(python());
        python
            .args(["-W", "error", "-c", example])
            .current_dir(scratch.path())
            .env("TELLTALE_ROOT", &root)
            .env("TELLTALE_KERNEL_CACHE", &kernels);
        let printed = succeeds(python.env("TT_METRICS_SOCKET_DIR", scratch.path()), example);
        let prints = example.contains("print(event.prefix");
        assert!(!prints || printed.contains("act.1 0 (2,) 1.5"), "{example}\n{printed}");
    }
}

/// The files that examples name: a capture with one event, and a recording.
fn make_files(scratch: &Scratch, root: &Path) {
    let event = scratch.join("dumps/act.1/core_0/0");
    fs::create_dir_all(&event).expect("it is ours");
    let facts = "dtype = float32\nshape = (2)\ndata_size = 8\nkind = tensor\ntype = 1\nprefix = act.1\n\
                 core = 0\npipe = 0\ntime_ns = 1000\niteration = 0\n";
    fs::write(event.join("metadata.txt"), facts).expect("it is ours");
    let data: Vec<u8> = [1_f32, 2.0].into_iter().flat_map(f32::to_le_bytes).collect();
    fs::write(event.join("tensor_data.bin"), data).expect("it is ours");
    let mut record = Command::new(cargo_bin("telltale"));
    record.args(["record", "--every", "0.1", "--for", "0.3", "--root"]).arg(root);
    succeeds(record.arg(scratch.join("night.tt")), "telltale record");
}
