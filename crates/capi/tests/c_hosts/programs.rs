//! Programs that use the library as it is meant to be used.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::installed::{Linked, here, install, program};
use telltale_harness::{ChildGuard, Scratch, compile_cpp, skip};
use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};

const PATIENCE: Duration = Duration::from_secs(60);

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
        assert!(child.wait_within("the example to end", PATIENCE).success());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }
}

#[test]
fn pkg_config_tells_how_to_compile() {
    const NAME: &str = "capi::pkg_config_tells_how_to_compile";
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let Ok(output) = command.args(["--cflags", "--libs", "telltale"]).output() else {
        return skip(NAME, "needs pkg-config");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let flags = String::from_utf8(output.stdout).unwrap();
    let rpath = format!("-Wl,-rpath,{}", prefix.join("lib").display());
    let flags: Vec<&str> = flags.split_whitespace().chain([rpath.as_str()]).collect();
    let example =
        compile_cpp(&here().join("examples/allocator.cpp"), &prefix.join("by-pkg-config"), &flags);
    // Without arguments it tells its usage, which it can only once the library is found.
    let output = Command::new(example).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{}", String::from_utf8_lossy(&output.stderr));
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
fn an_installation_without_built_libraries_says_so_and_makes_nothing() {
    let scratch = Scratch::new();
    let (prefix, empty) = (scratch.join("prefix"), scratch.join("target"));
    let mut command = Command::new(here().join("install.sh"));
    let output = command.arg(&prefix).env("CARGO_TARGET_DIR", &empty).output().unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("build first: cargo build --release -p telltale-capi"), "{told}");
    assert!(told.contains(&*empty.join("release").to_string_lossy()), "{told}");
    assert!(!prefix.exists());
}
