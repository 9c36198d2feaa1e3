//! The client of docs/debug-stream.md compiles and prints what the page says.

use std::fs;
use std::process::Command;

use telltale_harness::{Scratch, code_blocks};

use crate::c_programs::installed::{install, program};

const PAGE: &str = include_str!("../../../../docs/debug-stream.md");

#[test]
fn the_client_prints_what_the_page_shows() {
    let scratch = Scratch::new();
    let programs = code_blocks(PAGE, "c");
    let client = programs.iter().find(|text| text.contains("int main")).expect("there is a client");
    let source = scratch.join("client.c");
    fs::write(&source, client).unwrap();
    let client = program(source.to_str().unwrap(), &install(&scratch));
    let mut command = Command::new(client);
    for name in ["NEURON_RT_VISIBLE_CORES", "NEURON_RT_NUM_CORES", "TELLTALE_DEBUG_FILTER"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let [shown] = code_blocks(PAGE, "console")[..] else { panic!("one output is shown") };
    let (_, expected) = shown.split_once('\n').expect("the command, then what it prints");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), expected);
    assert!(output.status.success());
}
