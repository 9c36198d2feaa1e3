//! `telltale-coordinator`: `telltale coordinator` alone, as units and images run the coordinator of a job.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    telltale_commands::standalone::coordinator()
}
