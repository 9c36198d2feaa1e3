//! The arguments of what `telltale agent` starts for itself. Nothing else may run these.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct HoldArguments {
    /// The agent's process
    #[arg(long, value_name = "PID")]
    pub(crate) agent: u32,
    /// Where the worker writes itself down
    #[arg(long, value_name = "FILE")]
    pub(crate) record: PathBuf,
    /// Let the command's Python wait for its environment
    #[arg(long)]
    pub(crate) gate: bool,
    /// The command that the worker becomes
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct GuardArguments {
    /// The agent's record of its workers
    #[arg(long, value_name = "FILE")]
    pub(crate) record: PathBuf,
    /// How the marks of this life of the agent begin
    #[arg(long, value_name = "TEXT")]
    pub(crate) whose: String,
    /// A directory to remove if the agent was killed
    #[arg(long, value_name = "DIR")]
    pub(crate) remove_if_killed: Option<PathBuf>,
}
