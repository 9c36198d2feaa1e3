//! The arguments of `telltale agent`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use telltale_cluster::node::{HostAddress, NodeName};
use telltale_cluster::policy::{AgentPolicy, job_name};
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::tracking::windows::{LEAST_WINDOW_SAMPLES, MAX_WINDOW_SAMPLES, WindowLength};
use telltale_control_plane::reach::{ClientFiles, CoordinatorAddress};
use telltale_control_plane::supervisor::MIN_OUTPUT_BYTES;
use telltale_server::door::TlsFiles;
use telltale_server::listen::Address;
use telltale_server::log::{Format, Level};

use super::seconds;

/// What it does.
pub(super) const AGENT_ABOUT: &str =
    "Run the agent of a node: start and stop workers as the coordinator orders";

/// What follows the options.
pub(super) const AGENT_HELP: &str = "\
Each worker runs COMMAND with torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
MASTER_PORT and others), TELLTALE_EPOCH, and TELLTALE_LOG_CCL, the address for /log_ccl. Output
appears with [RANK] in front, and in DIR/logs/epoch-N/RANK.log. Processes that a worker starts end
with it, except those of other services and users (docs/cluster.md).

A COMMAND that cannot be executed ends the agent. Workers that repeatedly exit within 10 seconds are
started with increasing delays, up to 16 seconds.

Without a coordinator, workers continue and the agent retries. SIGTERM, Ctrl-C and SIGHUP end
workers (SIGTERM, SIGKILL after the grace), then the agent. A second Ctrl-C, or a SIGTERM at least
a second later, kills workers at once.

Exit status: 0 every rank has finished, or ended by a signal; 1 the job was given up; 2 the agent or
COMMAND cannot run; 64 usage error.

Examples:
  telltale agent --coordinator head:9440 --workers 8 -- python3 train.py --batch 32
  telltale agent --coordinator a:9440 --coordinator b:9440 --authority ca.pem -- ./run.sh
  telltale agent --coordinator unix:/run/job.sock --warm -- python3 -u train.py
  telltale agent --coordinator head:9440 --workers 8 --shim -- python3 train.py";

#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// Address of a coordinator: HOST:PORT or unix:PATH; repeatable
    #[arg(long, value_name = "ADDRESS", required = true, env = "TELLTALE_COORDINATOR")]
    #[arg(value_delimiter = ',', value_parser = super::cluster::coordinator_address)]
    pub(crate) coordinator: Vec<CoordinatorAddress>,
    /// Name of this node [default: the host's]
    #[arg(long, value_name = "NAME", value_parser = NodeName::new)]
    pub(crate) node: Option<NodeName>,
    /// Address of this node for other nodes' workers [default: the one used towards the
    /// coordinator]
    #[arg(long, value_name = "HOST", value_parser = HostAddress::new)]
    pub(crate) address: Option<HostAddress>,
    /// Number of workers
    #[arg(long, value_name = "N", default_value = "1", value_parser = workers)]
    pub(crate) workers: WorkersPerNode,
    /// Accept only a coordinator of this job [default: any]
    #[arg(long, value_name = "NAME", value_parser = job_name)]
    pub(crate) job: Option<String>,
    /// State directory: record of workers, output, socket [default: telltale-agent-NODE in
    /// $XDG_STATE_HOME, /var/lib (root) or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Also listen for HTTP: ADDRESS:PORT or unix:PATH; repeatable [default: only agent.sock in the
    /// state directory]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<Address>,
    /// Start Python workers ahead, so that restarts skip imports
    #[arg(long)]
    pub(crate) warm: bool,
    /// Report PyTorch's collectives with the built-in Python module
    #[arg(long)]
    pub(crate) shim: bool,
    /// Read NCCL Inspector's files in DIR; sets its variables for workers
    #[arg(long, value_name = "DIR")]
    pub(crate) inspector: Option<PathBuf>,
    /// Read PyTorch's Flight Recorder dumps (JSON) in DIR; sets its variables for workers
    #[arg(long, value_name = "DIR")]
    pub(crate) flight_recorder: Option<PathBuf>,
    /// Socket of the node service for device health: unix:PATH, or off [default: that of
    /// `telltale serve`]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) node_service: Option<NodeService>,
    /// Keep running when the job is over
    #[arg(long)]
    pub(crate) stay: bool,
    /// Bytes of output kept per worker and epoch
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_OUTPUT_BYTES..))]
    pub(crate) output_bytes: u64,
    /// Seconds between SIGTERM and SIGKILL for workers
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    stop_grace: Option<Duration>,
    /// Seconds between reports
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    report_interval: Option<Duration>,
    /// Latencies per peer, direction and size in a report
    #[arg(long, value_name = "N", default_value = "100", value_parser = window)]
    window: WindowLength,
    /// Maximum starts of workers without an epoch of ten minutes; planned epochs reset it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    restart_budget: Option<u32>,
    /// Log level: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: Level,
    /// Log format: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: Format,
    /// End when the process with this pid, which started this one, ends
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) end_with_parent: Option<i32>,
    #[command(flatten)]
    pub(crate) trust: TrustArguments,
    /// Command of each worker, with arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The agent's credentials, and who may send it orders.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Use TLS and verify the coordinator against the authority in FILE (PEM)
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// File with the coordinator's token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with the token for /activate, /remove, /restart, and for posts as evidence
    #[arg(long, value_name = "FILE")]
    pub(crate) http_token_file: Option<PathBuf>,
    /// Server certificate for ports that other hosts can reach (PEM)
    #[arg(long, value_name = "FILE", requires = "http_key")]
    http_certificate: Option<PathBuf>,
    /// Key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "http_certificate")]
    http_key: Option<PathBuf>,
    /// Require client certificates of the authority in FILE on those ports (PEM)
    #[arg(long, value_name = "FILE", requires = "http_certificate")]
    http_client_authority: Option<PathBuf>,
}

/// Who is asked how accelerators are.
#[derive(Debug, Clone)]
pub(crate) enum NodeService {
    /// No one.
    Off,
    /// The service at this socket file.
    Socket(PathBuf),
}

impl FromStr for NodeService {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            Some(path) => Ok(Self::Socket(path.into())),
            None if text == "off" => Ok(Self::Off),
            None => Err(String::from("neither unix:PATH nor off")),
        }
    }
}

// === impl AgentArguments ===

impl AgentArguments {
    /// How the agent is to act.
    pub(crate) fn policy(&self) -> AgentPolicy {
        let usual = AgentPolicy::default();
        AgentPolicy {
            stop_grace: self.stop_grace.unwrap_or(usual.stop_grace),
            report_interval: self.report_interval.unwrap_or(usual.report_interval),
            window: self.window,
            restart_budget: self.restart_budget.unwrap_or(usual.restart_budget),
            ..usual
        }
    }
}

// === impl TrustArguments ===

impl TrustArguments {
    /// The files for the agent's own HTTP.
    pub(crate) fn http_tls(&self) -> Option<TlsFiles> {
        let (certificate, key) = self.http_certificate.clone().zip(self.http_key.clone())?;
        Some(TlsFiles { certificate, key, client_authority: self.http_client_authority.clone() })
    }

    /// The files for the way to the coordinator.
    pub(crate) fn access(&self) -> ClientFiles {
        ClientFiles {
            authority: self.authority.clone(),
            identity: self.certificate.clone().zip(self.key.clone()),
            token_file: self.token_file.clone(),
        }
    }
}

fn window(text: &str) -> Result<WindowLength, String> {
    let length = text.parse().ok().and_then(WindowLength::new);
    length
        .ok_or_else(|| format!("not a number from {LEAST_WINDOW_SAMPLES} to {MAX_WINDOW_SAMPLES}"))
}

fn workers(text: &str) -> Result<WorkersPerNode, String> {
    let number = text.parse().ok().and_then(WorkersPerNode::new);
    number.ok_or_else(|| String::from("not a number from 1 to 1024"))
}
