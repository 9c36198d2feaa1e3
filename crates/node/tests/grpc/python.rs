//! The program in docs/grpc.md, as it stands there: a client that has nothing but reflection.

use std::path::Path;
use std::process::Stdio;

use telltale_harness::python_with;

use crate::grpc::machine::machine;
use crate::grpc::serving::Served;

/// The one block of Python in the document.
fn program() -> String {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grpc.md");
    let text = std::fs::read_to_string(document).expect("docs/grpc.md is there");
    let mut parts = text.split("```python\n");
    let block = parts.nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    assert_eq!(parts.next(), None, "which of the blocks is meant?");
    block.to_owned()
}

#[test]
fn the_documented_client_works_by_reflection_alone() {
    let test = "node::the_documented_client_works_by_reflection_alone";
    let Some(mut python) = python_with(test, "grpc, grpc_reflection") else {
        return;
    };
    let served = Served::of(machine(2, 3));
    let address = format!("unix:{}", served.socket().display());
    python.arg("-c").arg(program()).args([&address, "--once"]).stderr(Stdio::inherit());
    let output = python.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let held = |pid: u64| 8 * (pid << 20);
    let expected = format!(
        "state 1, 0 left out\n\
         251732000: 51.5 °C, 31 W, fan (ABSENCE_REASON_UNSUPPORTED)\n\
         251732001: 51.5 °C, 31 W, fan (ABSENCE_REASON_UNSUPPORTED)\n\
         100 train-alice: {} bytes\n\
         101 train-bob: {} bytes\n\
         102 train-alice: {} bytes\n",
        held(100),
        held(101),
        held(102),
    );
    assert_eq!(text, expected);
}
