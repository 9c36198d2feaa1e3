//! The arguments of `telltale record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{HardwareArguments, LocationArguments, seconds};

pub(super) const RECORD_HELP: &str = "\
Each snapshot is written in one piece, so that a crash or a full disk costs the last one at most. A
FILE that is a recording already is added to. `zcat FILE` prints the snapshots as JSON, one a line.

Exit status: 0 it was ended or its time is over, 1 the file has all that it may have, 2 it could not
begin or a snapshot could not be written, 64 wrong usage.

Examples:
  telltale record run.tt                     until Ctrl-C
  telltale record run.tt --every 10 --for 3600
  telltale smi --replay run.tt --at '5m ago'";

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// The file; it is made for this user alone
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// Record every SECONDS
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) every: Duration,
    /// End after SECONDS [default: at Ctrl-C]
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// End when the file has N MiB
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) max_mebibytes: u64,
}
