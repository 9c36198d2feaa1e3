//! `telltale-serve`: `telltale serve` alone, as units and images run the node service.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    telltale_commands::standalone::serve()
}
