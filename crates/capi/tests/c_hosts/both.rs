//! libtelltale and libtelltale_nrt in one process: one endpoint, which shows the debug streams.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::c_hosts::asked::ask;
use crate::c_hosts::installed::{here, install};
use telltale_harness::{ChildGuard, Scratch, cargo_library_directory, compile_c};
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_schema::snapshot::MetricValue;

const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn the_endpoint_shows_the_streams_of_the_other_library() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let neuron = cargo_library_directory("telltale-nrt", "telltale_nrt");
    let mut installer = Command::new(here().join("../nrt/install.sh"));
    let installed = installer.arg(&prefix).arg(neuron).env_remove("DESTDIR").output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let flags = [
        format!("-I{}", prefix.join("include").display()),
        format!("-L{}", prefix.join("lib").display()),
        format!("-Wl,-rpath,{}", prefix.join("lib").display()),
        "-ltelltale".to_owned(),
        "-ltelltale_nrt".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compile_c(&here().join("tests/c/both.c"), &scratch.join("both"), &flags);

    let directory = scratch.join("run");
    std::fs::create_dir(&directory).unwrap();
    let mut command = Command::new(program);
    command.arg(&directory).env("NEURON_RT_NUM_CORES", "2").env_remove("TELLTALE_DISABLED");
    for name in ["NEURON_RT_VISIBLE_CORES", "NEURON_RT_DEBUG_OUTPUT_DIR", "TELLTALE_DEBUG_FILTER"] {
        command.env_remove(name);
    }
    let mut child = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut line = String::new();
    let output = child.child().stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");

    let listing = RuntimeDirectory::open(&directory, Purpose::Reading).unwrap().list().unwrap();
    assert_eq!((listing.ledgers.len(), listing.endpoints.len()), (1, 1));
    let report = ask(&directory.join(&listing.endpoints[0].name));
    let of = |name: &str| -> Vec<(&str, &MetricValue)> {
        let full = format!("telltale_process_debug_{name}");
        let found = report.metrics.iter().filter(|one| one.name == full);
        found.map(|one| (one.labels[0].1.as_str(), &one.value)).collect()
    };
    for (name, expected) in [
        ("connected", MetricValue::Gauge(1.0)),
        ("events_published_total", MetricValue::Counter(3)),
        ("events_delivered_total", MetricValue::Counter(1)),
        ("events_waiting", MetricValue::Gauge(2.0)),
    ] {
        assert_eq!(of(name), [("1", &expected)], "{name}");
    }
    drop(child.child().stdin.take());
    assert!(child.wait_within("the program to end", TIMEOUT).success());
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}
