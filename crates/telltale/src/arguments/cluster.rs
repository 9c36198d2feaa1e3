//! The arguments of `telltale cluster`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use telltale_client::AddressError;
use telltale_control_plane::reach::{ClientFiles, CoordinatorAddress};
use telltale_control_plane::view;
use telltale_wire::cluster::message::Mode;

use super::seconds;
use crate::exit::Failure;

/// What follows the options.
pub(super) const CLUSTER_HELP: &str = "\
If several coordinators share a job, name them all (or set TELLTALE_COORDINATOR); the leader is
found.

Exit status: 0 healthy, or the order was accepted; 1 the job has a problem, an incident is open,
nothing was found, or the order was refused; 2 no coordinator reached; 64 usage error.

Examples:
  telltale cluster status
  telltale cluster nodes --watch
  telltale cluster explain              the newest incident, with the latency matrix
  telltale cluster explain --journal /var/lib/telltale/coordinator   after its end
  telltale cluster report               slow ranks, links, stages and data
  telltale cluster report --page r.html   the same as a page in one file
  telltale cluster drain node-7
  telltale cluster restart --wait 60    until it runs again
  telltale cluster status --coordinator a:9440,b:9440 --authority ca.pem --json";

#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct ClusterArguments {
    #[command(flatten)]
    pub(crate) whom: Whom,
    /// Print JSON: one object, or an array
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

/// Whom to ask, and by what right.
#[derive(Debug, Args)]
pub(crate) struct Whom {
    /// Addresses of coordinators: unix:PATH, ADDRESS:PORT or NAME:PORT, separated by commas
    #[arg(long, value_name = "ADDRESS", global = true, value_delimiter = ',')]
    #[arg(env = "TELLTALE_COORDINATOR", default_value = "127.0.0.1:9440")]
    #[arg(value_parser = coordinator_address)]
    pub(crate) coordinator: Vec<CoordinatorAddress>,
    /// File with the coordinator's token
    #[arg(long, value_name = "FILE", global = true, env = "TELLTALE_COORDINATOR_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Use TLS and verify the coordinator against the authority in FILE (PEM)
    #[arg(long, value_name = "FILE", global = true)]
    authority: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", global = true)]
    certificate: Option<PathBuf>,
    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", global = true)]
    key: Option<PathBuf>,
    /// Timeout per coordinator, in seconds
    #[arg(long, value_name = "SECONDS", global = true, default_value = "5")]
    #[arg(value_parser = seconds)]
    pub(crate) timeout: Duration,
}

/// What to ask or order.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the state of the job
    Status(WatchArguments),
    /// List nodes, their slots, ranks and workers
    Nodes(WatchArguments),
    /// List the latest incidents, newest first
    Incidents(IncidentsArguments),
    /// Show an incident: events, verdicts, evidence, and the latency matrix
    Explain(ExplainArguments),
    /// Report where the time of training steps goes, and which ranks cause it
    Report(ReportArguments),
    /// Restart the job with its present nodes; also a finished job
    Restart(RestartArguments),
    /// Remove a node as soon as a spare can take its slot
    Drain(NodeArguments),
    /// Remove a node now, with or without a spare
    Remove(NodeArguments),
    /// Allow a node to get slots again, and forget its failures
    Readmit(NodeArguments),
    /// Set how much the coordinator does by itself
    Mode(ModeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// Repeat every SECONDS [default: 1] until Ctrl-C
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(value_parser = seconds)]
    pub(crate) watch: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub(crate) again: WatchArguments,
    /// Write the report as one HTML file; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    pub(crate) page: Option<PathBuf>,
    /// Write the latest steps as a trace for ui.perfetto.dev; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "page"])]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct IncidentsArguments {
    #[command(flatten)]
    pub(crate) again: WatchArguments,
    /// Maximum number [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Read the journal in DIRECTORY instead of asking the coordinator, which may have ended
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "watch")]
    pub(crate) journal: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Number of the incident [default: the newest]
    #[arg(value_name = "INCIDENT", value_parser = incident_number)]
    pub(crate) incident: Option<String>,
    /// Read the journal in DIRECTORY instead of asking the coordinator, which may have ended
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) journal: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArguments {
    /// Wait until the job runs again, at most SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) wait: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// Name of the node
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
}

#[derive(Debug, Args)]
pub(crate) struct ModeArguments {
    /// `observe`: start the job, then only report. `recover`: also restart a failed job and replace
    /// unreachable nodes. `act`: also replace suspected nodes
    #[arg(value_name = "MODE", value_parser = modes())]
    pub(crate) mode: Mode,
}

/// Parses where a coordinator is.
pub(super) fn coordinator_address(text: &str) -> Result<CoordinatorAddress, String> {
    text.parse().map_err(|error| match error {
        AddressError::Form(_) => {
            String::from("write NAME:9440, 127.0.0.1:9440, [::1]:9440 or unix:PATH")
        }
        error => error.to_string(),
    })
}

/// Parses the number of an incident: two numbers with a hyphen between them.
fn incident_number(text: &str) -> Result<String, String> {
    let is_number = |part: &str| part.parse::<u64>().is_ok();
    match text.split_once('-') {
        Some((term, number)) if is_number(term) && is_number(number) => Ok(text.to_owned()),
        _ => Err(String::from("an incident's number is like 1-2; `incidents` lists them")),
    }
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new([Mode::Observe, Mode::Recover, Mode::Act].map(view::mode))
        .map(|word| view::mode_of(&word).expect("one of the words above"))
}

// === impl Whom ===

impl Whom {
    /// The files by which one proves who one is.
    pub(crate) fn access(&self) -> Result<ClientFiles, Failure> {
        let identity = match (&self.certificate, &self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            _ => {
                let text = "--certificate and --key belong together; give both or neither";
                return Err(Failure::Message(String::from(text)));
            }
        };
        let (authority, token_file) = (self.authority.clone(), self.token_file.clone());
        Ok(ClientFiles { authority, identity, token_file })
    }
}
