//! `telltale-top`: `telltale top` alone, with less code resident.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    telltale_commands::standalone::top()
}
