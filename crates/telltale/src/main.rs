//! The `telltale` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    telltale_commands::command()
}
