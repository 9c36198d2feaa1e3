//! The arguments of `telltale record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{HardwareArguments, LocationArguments, seconds};

pub(super) const RECORD_HELP: &str = "\
Snapshots are written atomically: a crash or a full disk costs at most the last one. An existing
recording is appended to. `zcat FILE` prints the snapshots as JSON lines.

Exit status: 0 ended, 1 the file has reached its limit, 2 failure, 64 usage error.

Examples:
  telltale record run.tt                     until Ctrl-C
  telltale record run.tt --every 10 --for 3600
  telltale smi --replay run.tt --at '5m ago'";

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// File, created with mode 0600
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// Time between snapshots, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) every: Duration,
    /// Duration in seconds [default: until Ctrl-C]
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// Maximum size of the file, in MiB
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) max_mebibytes: u64,
}
