//! Prints the functions that `telltale serve` and `telltale top` execute, in the order in which they are
//! to lie in the program: `telltale-record-order TELLTALE > target/functions.order`. Needs valgrind.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use telltale_bench::order;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("telltale-record-order: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let telltale = std::env::args_os().nth(1).map(PathBuf::from);
    let telltale = telltale.ok_or("which program? telltale-record-order TELLTALE")?;
    let worker = std::env::current_exe()?.with_file_name("telltale-bench-worker");
    let names = order::record(&worker, &telltale)?;
    let mut text = names.join("\n");
    text.push('\n');
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
