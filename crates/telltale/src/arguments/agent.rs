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
    "Supervise a node's workers, as the coordinator of a training job orders";

/// What follows the options.
pub(super) const AGENT_HELP: &str = "\
Each worker runs COMMAND with the variables that torchrun would set (RANK, WORLD_SIZE, LOCAL_RANK,
MASTER_ADDR, MASTER_PORT and the others), TELLTALE_EPOCH, and TELLTALE_LOG_CCL, which says where to
post to /log_ccl. What a worker has started is ended with it, at the latest by SIGKILL; what other
services start for it, or what runs as another user, can be left (docs/cluster.md). What workers
print goes to the agent's own output with [RANK] in front, and to DIR/logs/epoch-N/RANK.log.

A COMMAND that cannot be executed ends the agent at once. Workers that end by themselves within ten
seconds, again and again, are started ever later, up to 16 seconds.

When the way to the coordinator is lost, workers go on and the agent tries again. SIGTERM, Ctrl-C
and SIGHUP stop the workers, then the agent: each worker gets SIGTERM, and SIGKILL after the grace.
A second Ctrl-C, or a SIGTERM at least a second after the first signal, kills them at once.

Exit status: 0 every rank has finished, or a signal ended the agent; 1 the job was given up,
restarted too often; 2 the agent cannot run, or not the command; 64 wrong usage.

Examples:
  telltale agent --coordinator head:9440 --workers 8 -- python3 train.py --batch 32
  telltale agent --coordinator a:9440 --coordinator b:9440 --authority ca.pem -- ./run.sh
  telltale agent --coordinator unix:/run/job.sock --warm -- python3 -u train.py
  telltale agent --coordinator head:9440 --workers 8 --shim -- python3 train.py";

#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// Where a coordinator is: HOST:PORT or unix:PATH; again for each of several
    #[arg(long, value_name = "ADDRESS", required = true, env = "TELLTALE_COORDINATOR")]
    #[arg(value_delimiter = ',', value_parser = super::cluster::coordinator_address)]
    pub(crate) coordinator: Vec<CoordinatorAddress>,
    /// This node's name [default: the host's]
    #[arg(long, value_name = "NAME", value_parser = NodeName::new)]
    pub(crate) node: Option<NodeName>,
    /// Where other nodes reach this one's workers [default: the address by which this machine
    /// reaches the coordinator]
    #[arg(long, value_name = "HOST", value_parser = HostAddress::new)]
    pub(crate) address: Option<HostAddress>,
    /// How many workers to run
    #[arg(long, value_name = "N", default_value = "1", value_parser = workers)]
    pub(crate) workers: WorkersPerNode,
    /// Serve only a coordinator whose job has this name [default: whichever job it runs]
    #[arg(long, value_name = "NAME", value_parser = job_name)]
    pub(crate) job: Option<String>,
    /// Where the record of workers, their output and the agent's socket are kept; for one agent at a
    /// time [default: telltale-agent-NODE in $XDG_STATE_HOME, /var/lib (root) or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Also listen for /log_ccl and /metrics here: ADDRESS:PORT or unix:PATH [default: agent.sock in
    /// the state directory alone]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<Address>,
    /// Start workers ahead, so that a restart need not wait for imports; COMMAND must be a Python
    #[arg(long)]
    pub(crate) warm: bool,
    /// Have Python workers tell of PyTorch's collectives, with the module that this program carries
    #[arg(long)]
    pub(crate) shim: bool,
    /// Read what the NCCL Inspector writes into DIR; workers get NCCL_INSPECTOR_ENABLE,
    /// NCCL_INSPECTOR_DUMP_DIR and its interval, unless they are set
    #[arg(long, value_name = "DIR")]
    pub(crate) inspector: Option<PathBuf>,
    /// Read dumps of PyTorch's Flight Recorder as JSON in DIR; workers get TORCH_FR_DUMP_TEMP_FILE,
    /// unless it is set
    #[arg(long, value_name = "DIR")]
    pub(crate) flight_recorder: Option<PathBuf>,
    /// The socket of the node service that is asked how accelerators are: unix:PATH, or off [default:
    /// where `telltale serve` has it]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) node_service: Option<NodeService>,
    /// Stay when the job is over, for an operator who may restart it
    #[arg(long)]
    pub(crate) stay: bool,
    /// Bytes of output that are kept of one worker and epoch
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_OUTPUT_BYTES..))]
    pub(crate) output_bytes: u64,
    /// How long a worker may take to end after SIGTERM, before SIGKILL
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    stop_grace: Option<Duration>,
    /// How often to report
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    report_interval: Option<Duration>,
    /// How many of the latest latencies to each peer, by direction and size, a report's figures are of
    #[arg(long, value_name = "N", default_value = "100", value_parser = window)]
    window: WindowLength,
    /// How often workers may be started without an epoch that lasted ten minutes; a planned epoch
    /// begins a new count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    restart_budget: Option<u32>,
    /// What is logged: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: Level,
    /// What its lines look like: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: Format,
    /// End when the process with this pid, which started this one, ends
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) end_with_parent: Option<i32>,
    #[command(flatten)]
    pub(crate) trust: TrustArguments,
    /// The command that each worker runs, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// By what right the agent attends, and who may order it about.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Use TLS; the coordinator's certificate must descend from the authority in FILE (PEM)
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// Our own certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// The key of our certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// The file with the coordinator's token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The file with the token that /activate, /remove and /restart need on a port; posts that
    /// carry it are evidence
    #[arg(long, value_name = "FILE")]
    pub(crate) http_token_file: Option<PathBuf>,
    /// Use TLS on ports that other machines reach, with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "http_key")]
    http_certificate: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "http_certificate")]
    http_key: Option<PathBuf>,
    /// On those ports callers must have a certificate of the authority in FILE (PEM)
    #[arg(long, value_name = "FILE", requires = "http_certificate")]
    http_client_authority: Option<PathBuf>,
}

/// Who is asked how accelerators are.
#[derive(Debug, Clone)]
pub(crate) enum NodeService {
    /// Nobody.
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
