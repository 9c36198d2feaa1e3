//! The arguments of `telltale doctor`.

use clap::Args;

use super::{HardwareArguments, HistoryPlace, LocationArguments};

/// What follows the options.
pub(super) const DOCTOR_HELP: &str = "\
Checks devices, processes, the runtime directory, the kernel, the service, its history and its
configuration. Changes nothing and opens no device.

Exit status: 0 all that is present works, 1 something works in part, 2 something does not work,
64 usage error.

Examples:
  telltale doctor
  telltale doctor --json | jq '.findings[] | select(.verdict == \"broken\")'";

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
