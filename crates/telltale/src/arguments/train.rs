//! The arguments of `telltale train`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use telltale_cluster::node::HostAddress;
use telltale_cluster::policy::job_name;

use super::seconds;
use super::torchrun::OtherOptions;

/// What it does.
pub(super) const TRAIN_ABOUT: &str = "Run a training script in several processes, as torchrun does, and report failures, hangs and stragglers";

/// What follows the options.
pub(super) const TRAIN_HELP: &str = "\
Coordinator and agent in one process. The workers get torchrun's environment. If one fails, all are
stopped and restarted, up to --max-restarts times; the script resumes from its latest checkpoint.
SCRIPT that ends in .py, or a module (-m), is run with $PYTHON_EXEC, or the python3 of this
program's virtual environment or of PATH; anything else is a program. Arguments after SCRIPT are
passed to it.

Options of torchrun are understood, also with underscores and as PET_* variables, or refused with
what to write instead (docs/cluster.md).

If something went wrong, a report follows on standard error: each failure with its rank, exit code
or signal and exception; hangs, with the rank that did not enter the collective; slow ranks. Ctrl-C
and SIGTERM stop the workers (SIGKILL after the timeout); a second Ctrl-C kills them at once.

Exit status: 0 finished; that of the worker that failed first in the last attempt, or 128 and its
signal; 130 after Ctrl-C, 143 after SIGTERM; 1 the job was lost; 2 it cannot run; 64 usage error.

Examples:
  telltale train --nproc 4 -- train.py --batch 32
  telltale train --nproc gpu --max-restarts 3 train.py
  telltale train --nproc 2 --tee 3 --log-dir logs -m package.train --epochs 5
  telltale train --nnodes 2 --nproc 8 --rdzv-endpoint head:29400 --token-file token \\
    --authority authority.pem --certificate certificate.pem --key key.pem -- train.py";

// As under torchrun, the last of an option that is repeated counts.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct TrainArguments {
    /// Workers on this node: a number, auto, gpu or cpu [default: 1]
    #[arg(long = "nproc-per-node", value_name = "N", aliases = ["nproc_per_node"])]
    #[arg(visible_alias = "nproc", env = "PET_NPROC_PER_NODE", hide_env = true)]
    #[arg(default_value = "1", hide_default_value = true)]
    pub(crate) processes: String,
    /// Nodes: a number, or MIN:MAX [default: 1]
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true)]
    #[arg(env = "PET_NNODES", hide_env = true)]
    pub(crate) nnodes: String,
    /// Restarts of all workers before the job is given up
    #[arg(long, value_name = "N", alias = "max_restarts", default_value_t = 0)]
    #[arg(env = "PET_MAX_RESTARTS", hide_env = true)]
    pub(crate) max_restarts: u32,
    /// Run SCRIPT as a Python module
    #[arg(short, long, env = "PET_MODULE", hide_env = true, value_parser = BoolishValueParser::new())]
    pub(crate) module: bool,
    /// Run SCRIPT as a program, even if it ends in .py
    #[arg(long, alias = "no_python", conflicts_with = "module")]
    #[arg(env = "PET_NO_PYTHON", hide_env = true, value_parser = BoolishValueParser::new())]
    pub(crate) no_python: bool,
    /// Run SCRIPT with Python, whatever its name
    #[arg(long, alias = "run_path")]
    #[arg(env = "PET_RUN_PATH", hide_env = true, value_parser = BoolishValueParser::new())]
    pub(crate) run_path: bool,
    /// Keep the output of each worker in DIR/RUN/epoch-N/RANK.log
    #[arg(long, value_name = "DIR", alias = "log_dir", env = "PET_LOG_DIR", hide_env = true)]
    pub(crate) log_dir: Option<PathBuf>,
    /// Write streams to --log-dir only: 1 stdout, 2 stderr, 3 both, or RANK:N,...
    #[arg(short, long, value_name = "N", default_value = "0", hide_default_value = true)]
    #[arg(env = "PET_REDIRECTS", hide_env = true)]
    pub(crate) redirects: String,
    /// Show streams with [ROLE RANK] in front, and keep them: as --redirects
    #[arg(short, long, value_name = "N", default_value = "0", hide_default_value = true)]
    #[arg(env = "PET_TEE", hide_env = true)]
    pub(crate) tee: String,
    /// Show only the output of these local ranks: 0,1
    #[arg(long, value_name = "RANKS", alias = "local_ranks_filter", default_value = "")]
    #[arg(hide_default_value = true, env = "PET_LOCAL_RANKS_FILTER", hide_env = true)]
    pub(crate) local_ranks_filter: String,
    /// Role of the workers, in ROLE_NAME
    #[arg(long, value_name = "NAME", default_value = "default")]
    #[arg(env = "PET_ROLE", hide_env = true)]
    pub(crate) role: String,
    /// Seconds between SIGTERM and SIGKILL for workers [default: 15]
    #[arg(long, value_name = "SECONDS", aliases = ["shutdown_timeout", "stop-grace"])]
    #[arg(env = "PET_SHUTDOWN_TIMEOUT", hide_env = true, value_parser = seconds)]
    pub(crate) shutdown_timeout: Option<Duration>,
    /// Start Python workers ahead with all imports [default: with PyTorch and the like, if restarts
    /// are allowed and memory is free]
    #[arg(long, overrides_with = "no_warm")]
    pub(crate) warm: bool,
    /// Start no workers ahead
    #[arg(long)]
    pub(crate) no_warm: bool,
    /// Do not report PyTorch's collectives; hangs and slow ranks are not found then
    #[arg(long)]
    pub(crate) no_shim: bool,
    /// Report a hang after this time without progress, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) hang_after: Duration,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Also log what coordinator and agent do; twice: everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) nodes: NodesArguments,
    #[command(flatten)]
    pub(crate) others: OtherOptions,
    /// End when the process with this pid, which started this one, ends
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) end_with_parent: Option<i32>,
    /// Script, module or program, with its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "SCRIPT")]
    pub(crate) script: Vec<OsString>,
}

/// Which nodes, and how they find one another.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several nodes")]
pub(crate) struct NodesArguments {
    /// Where the coordinator listens, on the node with this address: HOST:PORT [port: 29400]
    #[arg(long, value_name = "HOST:PORT", alias = "rdzv_endpoint", default_value = "")]
    #[arg(hide_default_value = true, env = "PET_RDZV_ENDPOINT", hide_env = true)]
    pub(crate) rdzv_endpoint: String,
    /// Name of the job, in TORCHELASTIC_RUN_ID
    #[arg(long, value_name = "NAME", alias = "rdzv_id", env = "PET_RDZV_ID", hide_env = true)]
    #[arg(value_parser = job_name)]
    pub(crate) rdzv_id: Option<String>,
    /// static or c10d, which are the same here
    #[arg(long, value_name = "NAME", alias = "rdzv_backend", default_value = "static")]
    #[arg(hide_default_value = true, env = "PET_RDZV_BACKEND", hide_env = true)]
    pub(crate) rdzv_backend: String,
    /// KEY=VALUE,...: is_host, last_call_timeout, join_timeout; others change nothing
    #[arg(long, value_name = "CONF", alias = "rdzv_conf", default_value = "")]
    #[arg(hide_default_value = true, env = "PET_RDZV_CONF", hide_env = true)]
    pub(crate) rdzv_conf: String,
    /// One node; this is the default
    #[arg(long, env = "PET_STANDALONE", hide_env = true, value_parser = BoolishValueParser::new())]
    pub(crate) standalone: bool,
    /// 0 for the node that runs the coordinator, another number for the others; ranks come as nodes do
    #[arg(long, value_name = "N", alias = "node_rank", env = "PET_NODE_RANK", hide_env = true)]
    pub(crate) node_rank: Option<u32>,
    /// HOST of --rdzv-endpoint
    #[arg(long, value_name = "HOST", alias = "master_addr", env = "PET_MASTER_ADDR")]
    #[arg(hide_env = true)]
    pub(crate) master_addr: Option<String>,
    /// PORT of --rdzv-endpoint; rank 0 listens on one of the 17 ports from it on, or after it
    #[arg(long, value_name = "PORT", alias = "master_port", env = "PET_MASTER_PORT")]
    #[arg(hide_env = true)]
    pub(crate) master_port: Option<NonZeroU16>,
    /// Address of this node for other nodes' workers [default: the one towards the coordinator]
    #[arg(long, value_name = "HOST", alias = "local_addr", env = "PET_LOCAL_ADDR")]
    #[arg(hide_env = true, value_parser = HostAddress::new)]
    pub(crate) local_addr: Option<HostAddress>,
    /// End this node's workers when its coordinator was not reached for this time, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) lost_after: Duration,
    /// File with the token that nodes prove to the coordinator
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Authority of the certificates (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) authority: Option<PathBuf>,
    /// Certificate of the node (PEM): of the coordinator, or without a token of each node
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
}

/// Whether an address is this machine's alone.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
