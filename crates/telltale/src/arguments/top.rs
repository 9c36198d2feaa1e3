//! The arguments of the full-screen view.

use std::time::Duration;

use clap::Args;
use telltale_query::Query;

use super::{HistoryPlace, HostsArguments, Place, query, seconds};

pub(super) const TOP_HELP: &str = "\
Snapshots come from the service of this machine where there is one, else they are made here. h shows
the keys; docs/smi.md says more. Settings are kept in $XDG_CONFIG_HOME/telltale/top.toml.

Exit status: 0 it was ended, 2 it could not begin, 64 wrong usage.

Examples:
  telltale top
  telltale top --filter 'dram > 2GiB and user == root'
  telltale top --hosts node1,node2,@rack3
  telltale top --readonly --theme colour-blind";

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Look every SECONDS
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) watch: Duration,
    /// Show only what matches (docs/query.md has the fields)
    #[arg(short, long, value_name = "QUERY", value_parser = query)]
    pub(crate) filter: Option<Query>,
    #[command(flatten)]
    pub(crate) hosts: HostsArguments,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
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
}
