//! Turns the recorder's raw file into a trace, and says what is in it.
//!
//! The addresses of the raw file end here. It reads one file and writes one file.

#![forbid(unsafe_code)]

mod conversion;
#[path = "../../raw.rs"]
mod raw;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use conversion::Outcome;

/// Convert a raw recording to a trace.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// File that the recorder wrote (TELLTALE_RECORD_FILE)
    raw: PathBuf,
    /// Trace to write
    trace: PathBuf,
    /// How the recording was made, for people
    #[arg(long, value_name = "TEXT")]
    made_with: String,
    /// Command line to store instead of the recorded one
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(outcome) => {
            print(&outcome);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("telltale-trace-convert: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<Outcome, Box<dyn Error>> {
    let raw = File::open(&arguments.raw)
        .map_err(|error| format!("cannot open {}: {error}", arguments.raw.display()))?;
    let trace = File::create(&arguments.trace)
        .map_err(|error| format!("cannot create {}: {error}", arguments.trace.display()))?;
    let outcome = conversion::convert(
        BufReader::new(raw),
        BufWriter::new(trace),
        arguments.made_with,
        arguments.command,
    );
    if outcome.is_err() {
        // Half a trace would only be refused later.
        fs::remove_file(&arguments.trace)
            .map_err(|error| format!("cannot remove {}: {error}", arguments.trace.display()))?;
    }
    Ok(outcome?)
}

fn print(outcome: &Outcome) {
    let summary = &outcome.summary;
    println!("records        {}", summary.records);
    println!("allocations    {}", summary.allocations);
    println!("frees          {}", summary.frees);
    println!("threads        {}", summary.threads);
    println!("peak live      {} bytes", summary.peak_live_bytes);
    println!("live at end    {} bytes", summary.live_bytes_at_end);
    println!("duration       {} ns", summary.duration_ns);
    for (count, what) in [
        (outcome.unfinished, "records unfinished when the program died"),
        (outcome.orphan_frees, "frees without an allocation, left out"),
        (outcome.hidden_frees, "frees not seen, put in before the address was reused"),
        (outcome.beyond_limit, "records left out at the limit of a trace"),
        (outcome.dropped, "events found the recording full"),
        (outcome.overflowed, "allocations found the address table full"),
    ] {
        if count > 0 {
            println!("note           {count} {what}");
        }
    }
}
