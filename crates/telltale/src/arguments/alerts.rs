//! The arguments of `telltale alerts`.

use std::path::PathBuf;

use clap::Args;

use super::{HardwareArguments, LocationArguments};

/// What follows the options.
pub(super) const ALERTS_HELP: &str = "\
Asks the service of this machine, which shows each user what they may see. Where none runs, the
machine is looked at once: what must hold for a time counts at once then, and leaks and idle
processes, which take time to see, are not found. docs/alerts.md tells what is looked for.

Exit status: 0 no alert fires, 1 some fire or fired, 2 the service, the machine or the recording
cannot be read, 64 wrong usage.";

#[derive(Debug, Args)]
pub(crate) struct AlertsArguments {
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// List the rules of the configuration, and where each comes from
    #[arg(long, conflicts_with = "no_nvml")]
    pub(crate) rules: bool,
    /// Try the rules of the configuration on what `telltale record` wrote, and list what would have
    /// fired and when
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["rules", "root", "runtime_dir", "no_nvml"])]
    pub(crate) replay: Option<PathBuf>,
    /// The service's configuration file, for the rules where no service is asked [default: those
    /// that the service reads]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON: an object with alerts and withheld_alerts, or with notices, or an array of rules
    #[arg(long)]
    pub(crate) json: bool,
}
