//! Programs that use the library as it is meant to be used.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::installed::{Linked, install, program};
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
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let source = crate::installed::here().join("examples/allocator.cpp");
    compile_cpp(&source, &prefix.join("by-pkg-config"), &flags);
}
