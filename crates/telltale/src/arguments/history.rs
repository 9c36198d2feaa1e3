//! The arguments of `telltale history` and `telltale report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_schema::history::ProcessChoice;
use telltale_schema::moment::Moment;
use telltale_sources::PastPlace;

use super::{LocationArguments, seconds};

/// What follows the options of `history`.
pub(super) const HISTORY_HELP: &str = "\
Shows min, mean and max of each series, how much it changed from the first step to the last, and
on a terminal a line of bars. The process whose memory grew most is first. A moment is `3m ago`,
`2h`, `1d 12h ago`, `now`, or a date with or without a time (2026-11-21T10:00:00Z; default UTC).
docs/history.md lists what is kept, and for how long.

Exit status: 0 success, 2 no history, or no such device, process or metric, 64 usage error.

Examples:
  telltale history                                     the last hour
  telltale history --device 251732099 --since 1d       one device over a day
  telltale history --process python3 --metric live_bytes --since 10m --step 1
  telltale history --faults --since 1d                 what was wrong, and for how long
  telltale history --since 2026-11-21 --until 2026-11-22 --csv > day.csv";

/// What follows the options of `report`.
pub(super) const REPORT_HELP: &str = "\
PROCESS is a pid, a name, a pid with its start (4242@1234567), or an identity from --json.

Exit status: 0 found, 1 several found and listed, 2 none found or no history, 64 usage error.

Examples:
  telltale report 4242
  telltale report train.py --json | jq .usage";

/// Where a history is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HistoryPlace {
    /// Directory of the history [default: of this user's service, then of root's, then ask the
    /// service]
    #[arg(long, value_name = "DIR", env = "TELLTALE_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

impl HistoryPlace {
    /// The history of the host at this place.
    pub(crate) fn of(&self, place: &LocationArguments) -> PastPlace {
        PastPlace {
            state_dir: self.state_dir.clone(),
            root: place.root.clone(),
            sockets: place.sockets(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Device; repeatable
    #[arg(long, value_name = "ID")]
    pub(crate) device: Vec<String>,
    /// Process: pid, pid@start, name or identity; repeatable
    #[arg(long, value_name = "PROCESS")]
    pub(crate) process: Vec<ProcessChoice>,
    /// Metric: name, part of it, or label (power, memory_used, aiclk); repeatable [default:
    /// temperature, power, AI clock, memory by space]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Show what was wrong with devices, parts of the machine and sources instead of series: since
    /// when, for how long, and its cause
    #[arg(long, conflicts_with_all = ["process", "metric", "step"])]
    pub(crate) faults: bool,
    /// Start of the time span
    #[arg(long, value_name = "MOMENT", default_value = "1h ago")]
    pub(crate) since: Moment,
    /// End of the time span
    #[arg(long, value_name = "MOMENT", default_value = "now")]
    pub(crate) until: Moment,
    /// Length of a step, in seconds [default: for about a hundred steps]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) step: Option<Duration>,
    /// Print JSON, one object
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print CSV, one row per series and step, or per fault
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
    /// Print JSON: one object, or a list if several processes match
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
}
