//! What an agent is started with, by whatever command, and the plan that follows from it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use telltale_cluster::agent::Identity;
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::policy::AgentPolicy;
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::vitals::NodeHealth;
use telltale_control_plane::attend::AgentPlan;
use telltale_control_plane::intake::server::ServerOptions;
use telltale_control_plane::reach::{ClientFiles, CoordinatorAddress, Keyring};
use telltale_control_plane::readers::Format;
use telltale_control_plane::supervisor::{Echo, WorkerSettings};
use telltale_server::door::TlsFiles;
use telltale_server::listen::{Address, Listener, SocketFile};
use telltale_server::token::Token;
use tokio::sync::watch;

use super::SOCKET;
use crate::exit::Failure;

/// The variable by which workers know where to post.
const LOG_CCL: &str = "TELLTALE_LOG_CCL";

/// What an agent is started with.
#[derive(Debug)]
pub(crate) struct AgentSettings {
    pub(crate) node: NodeName,
    /// Where other nodes' workers reach this one's.
    pub(crate) address: HostAddress,
    pub(crate) workers: WorkersPerNode,
    /// The job that it is for; without a name, whichever its coordinator runs.
    pub(crate) job: Option<String>,
    pub(crate) policy: AgentPolicy,
    /// Its own directory, by its whole path.
    pub(crate) state: PathBuf,
    pub(crate) coordinators: Vec<CoordinatorAddress>,
    pub(crate) access: ClientFiles,
    /// Where it listens beside the socket in its directory.
    pub(crate) listen: Vec<Address>,
    pub(crate) http_token_file: Option<PathBuf>,
    pub(crate) http_tls: Option<TlsFiles>,
    /// What other tools write about collectives, and where.
    pub(crate) readers: Vec<(Format, PathBuf)>,
    pub(crate) health: watch::Receiver<NodeHealth>,
    /// Whether it stays when the job is over.
    pub(crate) stays: bool,
    /// Whether a Ctrl-C reaches workers as such, and not as `SIGTERM`.
    pub(crate) passes_interrupt: bool,
    pub(crate) command: Vec<OsString>,
    /// Variables for workers beside the usual ones, or in their place.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where their output is kept, if it is.
    pub(crate) logs: Option<PathBuf>,
    pub(crate) output_bytes: u64,
    pub(crate) echo: Echo,
    pub(crate) warm: bool,
    pub(crate) shim: bool,
    /// A directory that is removed if the agent is killed.
    pub(crate) remove_if_killed: Option<PathBuf>,
}

// === impl AgentSettings ===

impl AgentSettings {
    /// Everything that the agent needs, and the socket files that are its own.
    pub(crate) fn plan(self) -> Result<(AgentPlan, Vec<SocketFile>), Failure> {
        let keyring = Keyring::load(self.access).map_err(|error| Failure::because(&error))?;
        let token = self.http_token_file.as_deref().map(Token::read).transpose();
        let token = token.map_err(|error| Failure::because(&error))?;
        let incarnation = incarnation();
        // Several agents of one host have a colon and more behind its name.
        let host = self.node.as_str().split(':').next().unwrap_or_default().to_owned();
        let socket = Address::Unix(self.state.join(SOCKET));
        let (listeners, files) = listen(&self.state, &socket, &self.listen)?;
        let mut environment = vec![(LOG_CCL.into(), socket.to_string().into())];
        environment.extend(variables(&self.readers));
        environment.extend(as_under_torchrun(self.workers.get()));
        environment.extend(self.environment);
        let identity = Identity {
            node: self.node.clone(),
            incarnation,
            planned_since: None,
            address: self.address,
            workers: self.workers,
        };
        let supervision = WorkerSettings {
            node: self.node,
            incarnation,
            // Also right when the file at that path is replaced by another version meanwhile.
            program: PathBuf::from("/proc/self/exe"),
            state: self.state,
            command: self.command,
            environment,
            logs: self.logs,
            output_bytes: self.output_bytes,
            echo: self.echo,
            remove_if_killed: self.remove_if_killed,
            warm: if self.warm { self.workers.get() } else { 0 },
            shim: self.shim,
        };
        let plan = AgentPlan {
            identity,
            job: self.job,
            policy: self.policy,
            supervision,
            coordinators: self.coordinators,
            keyring,
            listeners,
            http: ServerOptions { token, tls: self.http_tls, hosts: vec![host] },
            readers: self.readers,
            health: self.health,
            stays: self.stays,
            passes_interrupt: self.passes_interrupt,
        };
        Ok((plan, files))
    }
}

/// The variables by which tools write there, but for those that are set already.
fn variables(readers: &[(Format, PathBuf)]) -> impl Iterator<Item = (OsString, OsString)> {
    let all = readers.iter().flat_map(|(format, path)| format.variables(path));
    let missing = all.filter(|(name, _)| std::env::var_os(name).is_none());
    missing.map(|(name, value)| (name.into(), value))
}

/// What torchrun sets for each worker where nothing else does (`torch/distributed/run.py` and
/// `elastic/agent/server/local_elastic_agent.py`): a thread for each of several workers, and that a collective
/// which failed ends its process. The latter has another name up to PyTorch 2.1.
fn as_under_torchrun(workers: u32) -> impl Iterator<Item = (OsString, OsString)> {
    let nccl = ["TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"];
    let threads = (workers > 1).then_some("OMP_NUM_THREADS");
    let missing = nccl.into_iter().chain(threads).filter(|name| std::env::var_os(name).is_none());
    missing.map(|name| (name.into(), "1".into()))
}

/// Listens in the state directory, and wherever else it was said.
fn listen(
    state: &Path,
    socket: &Address,
    more: &[Address],
) -> Result<(Vec<Listener>, Vec<SocketFile>), Failure> {
    let made = std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
        .recursive(true)
        .create(state);
    made.map_err(|error| {
        let state = state.display();
        Failure::Message(format!(
            "the directory {state} cannot be made: {error}; give another --state"
        ))
    })?;
    let mut listeners = Vec::new();
    let mut files = Vec::new();
    for address in std::iter::once(socket).chain(more) {
        let bound = Listener::bind(address, Some(state));
        let (listener, file) = bound.map_err(|error| Failure::because(&error))?;
        listeners.push(listener);
        files.extend(file);
    }
    Ok((listeners, files))
}

/// Larger at each start than at all before, as long as the clock is not set back by more than the
/// agent was away; a coordinator that knows better says so.
fn incarnation() -> Incarnation {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Incarnation::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
