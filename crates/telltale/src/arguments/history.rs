//! The arguments of `telltale history` and `telltale report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_schema::history::ProcessChoice;
use telltale_schema::moment::Moment;

use super::{LocationArguments, seconds};

/// What follows the options of `history`.
pub(super) const HISTORY_HELP: &str = "\
Shows what a running `telltale serve` has recorded, as least, mean and greatest value of each
series and, on a terminal, a line of bars. A moment is `3m ago`, `2h`, `1d 12h ago`, `now`, or a
date with or without a time (2026-11-21T10:00:00Z; UTC unless it says otherwise). docs/history.md
says what is kept for how long.

Exit status: 0 it was read, 2 there is no history, it cannot be read, or it has no such device,
process or metric, 64 wrong usage.

Examples:
  telltale history                                     the last hour
  telltale history --device 251732099 --since 1d       one device over a day
  telltale history --process python3 --metric live_bytes --since 10m --step 1
  telltale history --since 2026-11-21 --until 2026-11-22 --csv > day.csv";

/// What follows the options of `report`.
pub(super) const REPORT_HELP: &str = "\
PROCESS is a pid, a name, a pid with its start (4242@1234567, as the list of several that had one
pid shows), or an identity as --json gives it.

Exit status: 0 it was found, 1 several were found and are listed, 2 none was found or there is no
history, 64 wrong usage.

Examples:
  telltale report 4242
  telltale report train.py --json | jq .usage";

/// Where a history is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HistoryPlace {
    /// Read the history in DIR, where a service with this --state-dir writes it [default: that of
    /// a service of this user, then of root; then the service on this machine is asked]
    #[arg(long, value_name = "DIR", env = "TELLTALE_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Only this device, and what processes had there; repeatable
    #[arg(long, value_name = "ID")]
    pub(crate) device: Vec<String>,
    /// Only this process, by pid, pid@start, name or identity; repeatable
    #[arg(long, value_name = "PROCESS")]
    pub(crate) process: Vec<ProcessChoice>,
    /// Only this metric, by name, part of its name or label (power, memory_used, aiclk); repeatable
    /// [default: temperature, power, AI clock, memory by space]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// From this moment on
    #[arg(long, value_name = "MOMENT", default_value = "1h ago")]
    pub(crate) since: Moment,
    /// Up to this moment
    #[arg(long, value_name = "MOMENT", default_value = "now")]
    pub(crate) until: Moment,
    /// The length of a step, in seconds [default: a round one that gives about a hundred steps]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) step: Option<Duration>,
    /// Print JSON, one object
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print CSV, a row a series and step
    #[arg(long)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The process
    #[arg(value_name = "PROCESS")]
    pub(crate) process: ProcessChoice,
    /// Print JSON, one object; a list of them where several processes are meant
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
}
