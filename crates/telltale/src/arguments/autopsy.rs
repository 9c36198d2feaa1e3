//! The arguments of `telltale autopsy`, and of the process that it starts to take evidence.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};

use super::seconds;

/// What it does, in a line.
pub(super) const AUTOPSY_ABOUT: &str = "Explain why processes hang, from their stacks";

/// What follows the options.
pub(super) const AUTOPSY_HELP: &str = "\
Takes Python and native stacks, system calls, wait channels and connections of each process twice,
without its help, and says in one sentence who waits for what. Works with torchrun, vLLM, Ray and
any other launcher. A process is stopped for less than a millisecond a thread, and goes on.

Needs the permission to trace: the same user, or root; with Yama (kernel.yama.ptrace_scope 1) root.
Environment variables are an allow-list, command lines are redacted, no data are read.

Exit status: 0 found and explained, 1 not permitted, in whole or in part (the remedy is printed),
2 nothing stands still, or failure, 64 usage error.

Examples:
  telltale autopsy 4242
  telltale autopsy --children $(pgrep -f torchrun)
  telltale autopsy --job 1234 --json
  telltale autopsy --children 4242 --output hang.html";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whom").required(true))]
pub(crate) struct AutopsyArguments {
    /// Processes to explain
    #[arg(value_name = "PID", group = "whom")]
    pub(crate) pids: Vec<u32>,
    /// Explain the ranks below this process, such as torchrun's
    #[arg(long, value_name = "PID", group = "whom")]
    pub(crate) children: Option<u32>,
    /// Explain the ranks of this Slurm job on this host
    #[arg(long, value_name = "JOB", group = "whom")]
    pub(crate) job: Option<u32>,
    /// Time between the two samples, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) pause: Duration,
    /// Print JSON: the explanation and all evidence
    #[arg(long)]
    pub(crate) json: bool,
    /// Write everything to FILE as well, to attach to an issue: a page (.html), JSON (.json) or text
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TakeArguments {
    /// Samples of each process
    #[arg(long, value_name = "N")]
    pub(crate) samples: usize,
    /// Time between two samples, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = any_seconds)]
    pub(crate) pause: Duration,
    /// The processes
    #[arg(required = true, value_name = "PID")]
    pub(crate) pids: Vec<u32>,
}

fn any_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
