//! The arguments of the full-screen view.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_control_plane::reach::CoordinatorAddress;
use telltale_query::Query;

use super::{HardwareArguments, HistoryPlace, HostsArguments, LocationArguments, query, seconds};

/// What the command does, in a line of its help.
pub(super) const TOP_ABOUT: &str =
    "Watch devices and processes full-screen, with history, tree, filter and signals";

/// What follows the options.
pub(super) const TOP_HELP: &str = "\
Uses the service of this host if it answers, and collects otherwise. h shows the keys; see
docs/smi.md. Settings are kept in $XDG_CONFIG_HOME/telltale/top.toml.

Exit status: 0 ended, 2 failure, 64 usage error.

Examples:
  telltale top
  telltale top --filter 'dram > 2GiB and user == root'
  telltale top --hosts node1,node2,@rack3
  telltale top --replay FILE   play a recording: p pauses, [ ] { } step
  telltale top --readonly --theme colour-blind";

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    /// Time between snapshots, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) watch: Duration,
    /// Show matching rows only (fields: docs/query.md)
    #[arg(short, long, value_name = "QUERY", value_parser = query)]
    pub(crate) filter: Option<Query>,
    #[command(flatten)]
    pub(crate) hosts: HostsArguments,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
    /// Play what `telltale record` wrote to FILE, a snapshot every --watch SECONDS
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["items", "root", "runtime_dir", "state_dir", "no_nvml"])]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    #[command(flatten)]
    pub(crate) screen: ScreenArguments,
}

/// What the full-screen view takes wherever it is opened from.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScreenArguments {
    /// In the full-screen view, refuse to send signals
    #[arg(long)]
    pub(crate) readonly: bool,
    /// The colours of the full-screen view, this time: default, colour-blind or monochrome [default:
    /// that of the settings; monochrome with NO_COLOR]
    #[arg(long, value_name = "THEME", value_parser = ["default", "colour-blind", "monochrome"])]
    pub(crate) theme: Option<String>,
    /// In the full-screen view, show the job of the coordinator at ADDRESS; again or with commas for
    /// each of several
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', env = "TELLTALE_COORDINATOR")]
    #[arg(value_parser = super::cluster::coordinator_address)]
    pub(crate) coordinator: Vec<CoordinatorAddress>,
    /// The file with the coordinator's token
    #[arg(long, value_name = "FILE", env = "TELLTALE_COORDINATOR_TOKEN_FILE")]
    pub(crate) coordinator_token_file: Option<PathBuf>,
    /// Ask the coordinator by TLS; its certificate must descend from the authority in FILE (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) coordinator_authority: Option<PathBuf>,
    /// In the full-screen view, show the end of this capture of debug events (`telltale events`)
    #[arg(long, value_name = "CAPTURE", env = "NEURON_RT_DEBUG_OUTPUT_DIR")]
    pub(crate) events: Option<PathBuf>,
}
