//! What docs/endpoint.md tells about the endpoint is so.

use std::process::Command;

use crate::runtime::asking::{endpoints, numbered, started};
use telltale_harness::{Scratch, skip};
use telltale_runtime::MemoryKind;
use telltale_wire::QueryKind;
use telltale_wire::limits::{MAX_DEVICES, MAX_FRAME_BYTES, MAX_METRICS, MAX_QUERY_BYTES};

const PAGE: &str = include_str!("../../../../docs/endpoint.md");

#[test]
fn the_example_asks_a_real_endpoint() {
    let (_, example) = PAGE.split_once("```python\n").expect("the page has an example");
    let (example, _) = example.split_once("```").expect("which ends");
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.args(arguments).output()
    };
    let new_enough = "import socket; socket.recv_fds";
    if !python(&["-c", new_enough]).is_ok_and(|output| output.status.success()) {
        skip("runtime::documented::the_example_asks_a_real_endpoint", "needs python3 (3.9)");
        return;
    }
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let devices = [7, 0].map(|logical_id| runtime.open_device(numbered(logical_id)));
    devices[0].allocate(MemoryKind::Dram, 64, 1 << 40);
    devices[1].allocate(MemoryKind::SystemMemory, 64, 300);
    let socket = scratch.join(&endpoints(&scratch)[0]);
    let output = python(&["-c", example, &socket.to_string_lossy()]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "runtime: test 1\n\
         device 7: dram 1099511627776 bytes\n\
         device 0: system_memory 300 bytes\n\
         ledger: TELLTALE\n"
    );
}

#[test]
fn numbers_are_those_of_the_code() {
    let limits = [
        ("bytes of a query", MAX_QUERY_BYTES),
        ("bytes of an answer", MAX_FRAME_BYTES),
        ("devices in an answer", MAX_DEVICES),
        ("metric series in an answer", MAX_METRICS),
    ];
    for (what, limit) in limits {
        assert!(PAGE.contains(&format!("\n| {what} | {limit} |\n")), "{what}: {limit}");
    }
    for kind in QueryKind::ALL {
        let name = format!("{kind:?}").to_uppercase();
        assert!(PAGE.contains(&format!("\n| {name} | {} |", kind as i32)), "{name}");
    }
    for kind in MemoryKind::ALL {
        assert!(PAGE.contains(&format!("\"{}\"", kind.name())), "{}", kind.name());
    }
}
