//! The arguments of `telltale alerts`.

use std::path::PathBuf;

use clap::Args;

use super::{HardwareArguments, LocationArguments};

/// What follows the options.
pub(super) const ALERTS_HELP: &str = "\
Asks the service of this host, which shows each user what they may see. Without a service the host
is sampled once: durations are ignored, and leaks and idle processes are not found. docs/alerts.md
describes the rules.

Exit status: 0 nothing is wrong; 1 a warning or critical alert fires or is pending, or with --replay
any fired; 2 no data, or a service that does not answer; 64 usage error.";

#[derive(Debug, Args)]
pub(crate) struct AlertsArguments {
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// Ask the service alone: fail where none answers, instead of sampling the host
    #[arg(long, conflicts_with_all = ["rules", "replay", "config"])]
    pub(crate) service: bool,
    /// List the configured rules and their origin
    #[arg(long, conflicts_with = "no_nvml")]
    pub(crate) rules: bool,
    /// Evaluate the rules on a recording, and list what would have fired
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["rules", "root", "runtime_dir", "no_nvml"])]
    pub(crate) replay: Option<PathBuf>,
    /// Configuration file for the rules, if no service is asked [default: the service's]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON: alerts and withheld_alerts, notices, or rules
    #[arg(long)]
    pub(crate) json: bool,
}
