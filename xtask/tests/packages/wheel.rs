//! The wheel, in a virtual environment with nothing else.

use std::path::Path;

use telltale_harness::{cargo_library_directory, python, python_with, skip};

use super::made::{is_tried, made, root};
use super::system::{System, printed, scratch};

/// What the module's own tests import.
const TESTED_WITH: &str =
    "pytest, numpy, pandas, ml_dtypes, torch, lightning, transformers, nbclient, nvitop";

#[test]
fn it_is_installed_into_a_bare_environment_and_goes_again() {
    if !is_tried("wheel::it_is_installed_into_a_bare_environment_and_goes_again") {
        return;
    }
    let system = System::debian("bookworm", &["python3-venv"]);
    let wheel = system.put(&made("telltale-", "_x86_64.whl"), "/packages");
    system.ok("python3 -m venv /venv");
    let before = system.files();
    system.ok(&format!("/venv/bin/pip install --no-index {wheel} && /venv/bin/telltale smi"));
    let version = system.ok("/venv/bin/telltale --version");
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    let metadata = system.ok("cat /venv/lib/python3*/site-packages/telltale-*.dist-info/METADATA");
    assert!(metadata.contains("\nLicense-Expression: Apache-2.0\n"), "{metadata}");
    // `run` finds the library that it preloads in the environment.
    let recorded = system.ok("/venv/bin/telltale run -- sh -c 'echo $LD_PRELOAD'");
    assert!(recorded.contains("/venv/lib/telltale/libtelltale_preload.so"), "{recorded}");
    // The modules are there, need nothing else, and export what allocates for PyTorch.
    let program = r#"import ctypes, telltale, telltale_ccl, telltale.torch
ctypes.CDLL(telltale._telltale.__file__).telltale_torch_alloc
print(telltale.snapshot().to_json())"#;
    let module = system.ok(&format!("/venv/bin/python -W error -c '{program}'"));
    assert!(module.contains("schema_version"), "{module}");
    // Threads that are in the module when the interpreter ends are ended by the C library.
    let program = r#"import telltale, threading, time
def collect():
    while True: telltale.snapshot()
for _ in range(4): threading.Thread(target=collect, daemon=True).start()
time.sleep(0.5)"#;
    system.ok(&format!("/venv/bin/python -W error -c '{program}'"));
    let demo = system.ok("/venv/bin/pip check && /venv/bin/telltale demo --seconds 2");
    assert!(demo.contains("At the end:"), "{demo}");
    system.ok("/venv/bin/pip uninstall --yes telltale");
    let after = system.files();
    // Python compiles pip as it runs, and pip leaves the directories above those of a package's files.
    let is_directory = |file: &str| file.starts_with("/venv/share") && file.contains(" d ");
    let is_pips = |file: &str| file.contains("__pycache__") || is_directory(file);
    let differs = |file: &&String| !before.contains(file) && !is_pips(file);
    assert_eq!(after.iter().filter(differs).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// The module's own tests, of which cargo's build is asked otherwise. `TELLTALE_PYTHON` has their packages.
#[test]
fn the_module_passes_its_tests_as_it_is_installed() {
    let test = "wheel::the_module_passes_its_tests_as_it_is_installed";
    if !is_tried(test) {
        return;
    }
    let Some(mut pip) = python_with(&format!("packages::{test}"), TESTED_WITH) else { return };
    let installed = scratch();
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--target"]);
    pip.arg(installed.path());
    printed("pip", &pip.arg(made("telltale-", "_x86_64.whl")).output().unwrap());
    let debug_stream = cargo_library_directory("telltale-nrt", "telltale_nrt");
    let with_module = || {
        let mut python = python();
        python
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", installed.path())
            .env("TELLTALE", installed.join("bin/telltale"))
            .env("TELLTALE_NRT", debug_stream.join("libtelltale_nrt.so"));
        python
    };
    let mut place = with_module();
    place.args(["-c", "import telltale; print(telltale._telltale.__file__)"]);
    let place = printed("import telltale", &place.output().unwrap());
    assert!(Path::new(place.trim()).starts_with(installed.path()), "{place}");
    let mut pytest = with_module();
    pytest.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]);
    pytest.arg(root().join("crates/python/tests"));
    let said = printed("pytest", &pytest.output().unwrap());
    for reason in said.lines().filter(|line| line.starts_with("SKIPPED [")) {
        skip(&format!("packages::{test}"), reason);
    }
}
