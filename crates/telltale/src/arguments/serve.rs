//! The arguments of `telltale serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_node::log::Level;

use super::{Place, seconds};

/// What follows the options.
pub(super) const HELP: &str = "\
Collects until SIGTERM or Ctrl-C, and answers whoever may ask. docs/serve.md has the configuration.

Exit status: 0 it was asked to end, 2 it could not begin or go on, 64 wrong usage.

Examples:
  telltale serve                      for this machine
  telltale serve --root /tmp/n300     for one that telltale emulate runs";

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Where history and other state are kept [default: $STATE_DIRECTORY; for root
    /// /var/lib/telltale; else $XDG_STATE_HOME/telltale or ~/.local/state/telltale]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Collect each SECONDS [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) interval: Option<Duration>,
    /// What is logged: error, warn, info or debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<Level>,
}
