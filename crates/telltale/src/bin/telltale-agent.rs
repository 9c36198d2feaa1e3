//! `telltale-agent`: `telltale agent` alone, as units and images run the agent of a node.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    telltale_commands::standalone::agent()
}
