//! The command line of the repository's chores: `cargo xtask <chore>`.
//!
//! Exit status: 0 fine, 1 the chore found something or failed, 2 usage.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{generate, repository};

/// Repository chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Write the files that are made from others: metric definitions, protobuf messages
    Generate {
        /// Write nothing; fail when a file is stale
        #[arg(long)]
        check: bool,
    },
}

/// Whether the chore found nothing to complain about.
type Outcome = Result<bool, Box<dyn Error>>;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Generate { check } => run_generate(check),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(next) = cause {
                eprintln!("  because: {next}");
                cause = next.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run_generate(check: bool) -> Outcome {
    let root = repository::root();
    let outputs = generate::outputs(&root)?;
    if check {
        let stale = generate::stale(&root, &outputs);
        for path in &stale {
            println!("{path} is stale: run `cargo xtask generate`");
        }
        return Ok(stale.is_empty());
    }
    for path in generate::write(&root, &outputs)? {
        println!("wrote {path}");
    }
    Ok(true)
}
