//! Runs the suite of jobs of training steps, and scores the shipped detector or another one (`docs/straggler-suite.md`).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use flate2::read::MultiGzDecoder;
use telltale_cluster_simulation::faults::steps::outside::{Error, Outside};
use telltale_cluster_simulation::faults::steps::trace::Trace;
use telltale_cluster_simulation::faults::steps::{
    Case, CaseGroup, Score, cases, detect, groups, score, score_outside, table, write, write_truth,
};

/// Cases that went wrong and are printed of each group.
const MAX_NOTES: usize = 5;

/// Jobs of training steps with slow nodes, links, stages and data: who finds them, and blames no other.
#[derive(Debug, Parser)]
#[command(name = "straggler-suite", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    what: SuiteCommand,
}

const EXAMPLES: &str = "\
Examples:
  straggler-suite score --runs 4                          the shipped detector, and the usual rules
  straggler-suite score --only ring-4 -- ./detector.py    another one
  straggler-suite job ring-4.node.1000000                 a job, as a detector reads it
  straggler-suite truth ring-4.node.1000000               what is wrong with it
  straggler-suite trace AR.csv.gz | straggler-suite detect";

#[derive(Debug, Subcommand)]
enum SuiteCommand {
    /// Run the jobs and print the scores: of the shipped detector, or of the program after --
    Score(ScoreArguments),
    /// Print the names of the jobs that `score` runs
    List(Which),
    /// Print a job as a detector reads it
    Job {
        /// Its name, as `list` has it
        job: String,
    },
    /// Print what is wrong with a job, and what of it must be named
    Truth {
        /// Its name, as `list` has it
        job: String,
    },
    /// Read a job, and print who is slow: the shipped detector
    Detect,
    /// Print a published trace as a job
    Trace {
        /// The trace: .csv or .csv.gz
        file: PathBuf,
        /// Ranks of one node
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
        workers: u32,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Jobs of each kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u64,
    /// The number of the first
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    seed: u64,
    /// Only kinds with TEXT in their names
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

#[derive(Debug, clap::Args)]
struct ScoreArguments {
    #[command(flatten)]
    which: Which,
    /// How long the program may take for a job
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// A program that reads a job and prints who is slow, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("straggler-suite: {failure}");
            ExitCode::FAILURE
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn run(what: &SuiteCommand) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let done = match what {
        SuiteCommand::Score(arguments) => return scored(arguments, &mut out),
        SuiteCommand::List(which) => which
            .cases()?
            .iter()
            .try_for_each(|(_, cases)| cases.iter().try_for_each(|case| writeln!(out, "{case}"))),
        SuiteCommand::Job { job } => write(&case(job)?, &mut out),
        SuiteCommand::Truth { job } => write_truth(&case(job)?, &mut out),
        SuiteCommand::Detect => detect(io::stdin().lock(), &mut out),
        SuiteCommand::Trace { file, workers } => {
            let because = |error| format!("cannot read {}: {error}", file.display());
            let trace = read(file, *workers).map_err(because)?;
            trace.write(&file.display().to_string(), &mut out)
        }
    };
    match done.and_then(|()| out.flush()) {
        // Who reads it has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

fn case(name: &str) -> Result<Case, String> {
    Case::named(name)
        .ok_or_else(|| format!("no job is called {name}; `straggler-suite list` has them"))
}

fn read(file: &Path, workers: u32) -> io::Result<Trace> {
    let opened = File::open(file)?;
    let is_packed = file.extension().is_some_and(|extension| extension == "gz");
    let plain: Box<dyn Read> =
        if is_packed { Box::new(MultiGzDecoder::new(opened)) } else { Box::new(opened) };
    Trace::read(BufReader::new(plain), workers)
}

impl Which {
    fn cases(&self) -> Result<Vec<(CaseGroup, Vec<Case>)>, String> {
        let all = groups(u32::MAX).into_iter();
        let chosen: Vec<(CaseGroup, Vec<Case>)> = all
            .filter(|group| group.to_string().contains(&self.only))
            .map(|group| (group, cases(group, self.seed..self.seed.saturating_add(self.runs))))
            .collect();
        if chosen.is_empty() {
            return Err(format!(
                "no kind of job has {} in its name; see `straggler-suite list`",
                self.only
            ));
        }
        Ok(chosen)
    }
}

fn scored(arguments: &ScoreArguments, out: &mut impl Write) -> Result<(), Failure> {
    let timeout = Duration::from_secs(arguments.timeout);
    let outside = Outside { command: arguments.command.clone(), timeout };
    let chosen = arguments.which.cases()?;
    let shows_progress = io::stderr().is_terminal();
    let (mut all, mut sum) = (Vec::new(), Score::default());
    for (place, (group, cases)) in chosen.iter().enumerate() {
        if shows_progress {
            eprint!("\r{} of {}: {group}\x1b[K", place + 1, chosen.len());
        }
        let one: Result<Score, Error> = match arguments.command.is_empty() {
            true => Ok(score(cases)),
            false => score_outside(cases, &outside),
        };
        let one = one?;
        for note in one.notes.iter().take(MAX_NOTES) {
            writeln!(out, "{note}")?;
        }
        sum.add(&one);
        all.push((group.to_string(), one));
    }
    if shows_progress {
        eprint!("\r\x1b[K");
    }
    let confidence = sum.confidence.clone();
    all.push(("all".to_owned(), sum));
    writeln!(out, "{}", table(&all))?;
    for (tenth, (said, right)) in confidence {
        let from = f64::from(tenth) / 10.0;
        writeln!(out, "confidence from {from:.1}: {right} of {said} right")?;
    }
    Ok(out.flush()?)
}
