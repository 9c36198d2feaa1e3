//! Programs that use the library as it is meant to be used.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::c_hosts::installed::{Linked, here, install, installer, program};
use telltale_harness::{ChildGuard, Scratch, compile_cpp, skip};
use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};

const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn every_call_works_from_c_and_refuses_null() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    for linked in [Linked::Shared, Linked::Static] {
        let directory = scratch.join(format!("run-{linked:?}"));
        std::fs::create_dir(&directory).unwrap();
        let output = Command::new(program("tests/c/calls.c", &prefix, linked))
            .arg(&directory)
            .env_remove("TELLTALE_DISABLED")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }
}

#[test]
fn the_allocator_example_is_seen_with_exactly_what_it_holds() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    for linked in [Linked::Shared, Linked::Static] {
        let directory = scratch.join(format!("run-{linked:?}"));
        std::fs::create_dir(&directory).unwrap();
        let mut command = Command::new(program("examples/allocator.cpp", &prefix, linked));
        command.arg(&directory).env_remove("TELLTALE_DISABLED");
        let mut child = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        let output = child.child().stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let live: u64 = line.trim().parse().unwrap();

        let opened = RuntimeDirectory::open(&directory, Purpose::Reading).unwrap();
        let listing = opened.list().unwrap();
        assert_eq!((listing.ledgers.len(), listing.endpoints.len()), (1, 1));
        let mut reader = LedgerReader::open_at(&opened, &listing.ledgers[0].name).unwrap();
        let reading = reader.read().unwrap();
        assert_eq!(reading.runtime, "allocator example 1");
        assert_eq!(reading.usage[0].2.live_bytes, live);
        assert_eq!(reading.usage[0].2.failed_allocations, 1);
        assert_eq!(reading.devices[0].dram_capacity_bytes, Some(12 << 30));

        drop(child.child().stdin.take());
        assert!(child.wait_within("the example to end", TIMEOUT).success());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }
}

/// What pkg-config says of the library described in `place`; none where there is no pkg-config.
fn pkg_config(test: &str, place: &Path, sysroot: &Path) -> Option<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", place).env("PKG_CONFIG_SYSROOT_DIR", sysroot);
    let Ok(output) = command.args(["--cflags", "--libs", "telltale"]).output() else {
        skip(&format!("capi::{test}"), "needs pkg-config");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("flags are text"))
}

/// Builds the example with `flags` and the library in `library`, and runs it so far that it needs
/// the library.
fn build_and_run(flags: &str, library: &Path, out: &Path) {
    let rpath = format!("-Wl,-rpath,{}", library.display());
    let flags: Vec<&str> = flags.split_whitespace().chain([rpath.as_str()]).collect();
    let example = compile_cpp(&here().join("examples/allocator.cpp"), out, &flags);
    // Without arguments it tells its usage, which it can only once the library is found.
    let output = Command::new(example).env_remove("LD_LIBRARY_PATH").output();
    let output = output.expect("what was just built can be started");
    assert_eq!(output.status.code(), Some(64), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn pkg_config_reports_how_to_compile() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let place = prefix.join("lib/pkgconfig");
    let test = "pkg_config_reports_how_to_compile";
    let Some(flags) = pkg_config(test, &place, Path::new("")) else { return };
    build_and_run(&flags, &prefix.join("lib"), &prefix.join("by-pkg-config"));
}

#[test]
fn an_installation_for_a_package_lies_below_destdir_and_names_its_prefix() {
    let scratch = Scratch::new();
    let stage = scratch.join("stage");
    let output = installer("/opt/tell&tale").env("DESTDIR", &stage).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let prefix = stage.join("opt/tell&tale");
    let place = prefix.join("lib/pkgconfig");
    let described = std::fs::read_to_string(place.join("telltale.pc")).unwrap();
    assert!(described.contains("\nprefix=/opt/tell&tale\n"), "{described}");
    assert!(!described.contains("stage") && !described.contains('@'), "{described}");
    let test = "an_installation_for_a_package_lies_below_destdir_and_names_its_prefix";
    let Some(flags) = pkg_config(test, &place, &stage) else { return };
    // It escapes for a shell, which is not used here.
    let flags = flags.replace('\\', "");
    build_and_run(&flags, &prefix.join("lib"), &scratch.join("staged"));
}

#[test]
fn a_relative_prefix_becomes_an_absolute_one() {
    let scratch = Scratch::new();
    let place = scratch.join("here/lib/pkgconfig");
    let output = installer("here").current_dir(scratch.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let test = "a_relative_prefix_becomes_an_absolute_one";
    let Some(flags) = pkg_config(test, &place, Path::new("")) else { return };
    build_and_run(&flags, &scratch.join("here/lib"), &scratch.join("relative"));

    let mut command = installer("here");
    let output = command.current_dir(scratch.path()).env("DESTDIR", "stage").output().unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && reported.contains("must begin with a slash"), "{reported}");
    assert!(!scratch.join("stage").exists() && !scratch.join("stagehere").exists());
}

#[test]
fn a_program_linked_statically_runs_without_the_shared_library() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let example = program("examples/allocator.cpp", &prefix, Linked::Static);
    for name in ["libtelltale.so", "libtelltale.so.0"] {
        std::fs::remove_file(prefix.join("lib").join(name)).unwrap();
    }
    let output = Command::new(example).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_installation_without_built_libraries_reports_it_and_makes_nothing() {
    let scratch = Scratch::new();
    let (prefix, empty) = (scratch.join("prefix"), scratch.join("target"));
    let mut command = Command::new(here().join("install.sh"));
    let output = command.arg(&prefix).env("CARGO_TARGET_DIR", &empty).output().unwrap();
    assert!(!output.status.success());
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(reported.contains("build first: cargo build --release -p telltale-capi"), "{reported}");
    assert!(reported.contains(&*empty.join("release").to_string_lossy()), "{reported}");
    assert!(!prefix.exists());
}
