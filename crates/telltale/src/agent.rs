//! `telltale agent`: supervises a node's workers as a coordinator orders.

mod health;
mod init;

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::warn;

use telltale_cluster::agent::Identity;
use telltale_cluster::message::JobOutcome;
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::vitals::NodeHealth;
use telltale_control_plane::attend::{AgentEnding, AgentPlan, Signals, attend};
use telltale_control_plane::intake::server::ServerOptions;
use telltale_control_plane::reach::{CoordinatorAddress, Keyring};
use telltale_control_plane::readers::Format;
use telltale_control_plane::supervisor::{WorkerSettings, can_be_run, can_be_warm, can_have_shim};
use telltale_server::listen::{Address, Listener, SocketFile};
use telltale_server::log;
use telltale_server::token::Token;
use tokio::sync::watch;

use crate::arguments::{AgentArguments, LocationArguments, NodeService};
use crate::exit::{Failure, Status};
use crate::parent;
use crate::sockets::sockets;

/// The variable by which workers know where to post.
const LOG_CCL: &str = "TELLTALE_LOG_CCL";
/// The agent's socket in its state directory.
pub(crate) const SOCKET: &str = "agent.sock";
/// What the name of a state directory begins with, before that of the node.
pub(crate) const STATE_PREFIX: &str = "telltale-agent-";
/// How long after coordinators' names could not be resolved that is tried again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(arguments: AgentArguments) -> Result<Status, Failure> {
    if arguments.end_with_parent.is_some_and(|parent| !parent::tie_to(parent)) {
        return Ok(Status::Fine);
    }
    if init::is_needed() {
        return init::run();
    }
    log::start(arguments.log_level, arguments.log_format);
    can_be_run(&arguments.command).map_err(|error| Failure::because(&error))?;
    if arguments.warm {
        can_be_warm(&arguments.command).map_err(|error| Failure::because(&error))?;
    }
    if arguments.shim {
        can_have_shim(&arguments.command).map_err(|error| Failure::because(&error))?;
    }
    // One thread: a worker ends with the thread that started it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .build()
        .map_err(|error| Failure::because(&error))?;
    let ending = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| Failure::because(&error))?;
        let address = match arguments.address.clone() {
            Some(address) => address,
            None => tokio::select! {
                address = own_address(&arguments.coordinator) => address?,
                () = signals.next() => return Ok(AgentEnding::Asked),
            },
        };
        let (plan, _files) = plan(arguments, address)?;
        attend(plan, signals).await.map_err(|error| Failure::because(&error))
    })?;
    match ending {
        AgentEnding::Over(JobOutcome::GivenUp) => Ok(Status::Partial),
        AgentEnding::Over(JobOutcome::Finished) | AgentEnding::Asked | AgentEnding::AtOnce => {
            Ok(Status::Fine)
        }
        AgentEnding::CannotRun(reason) => {
            Err(Failure::Message(format!("this node cannot run the job: {reason}")))
        }
    }
}

/// Everything that the agent needs, and the socket files that are its own.
fn plan(
    arguments: AgentArguments,
    address: HostAddress,
) -> Result<(AgentPlan, Vec<SocketFile>), Failure> {
    let policy = arguments.policy();
    let tls = arguments.trust.http_tls();
    let keyring = Keyring::load(arguments.trust.access());
    let keyring = keyring.map_err(|error| Failure::because(&error))?;
    let token = arguments.trust.http_token_file.as_deref().map(Token::read).transpose();
    let token = token.map_err(|error| Failure::because(&error))?;
    let node = match arguments.node {
        Some(node) => node,
        None => host_name()?,
    };
    let state = arguments.state.map_or_else(|| usual_state(&node), Ok)?;
    let state = std::path::absolute(state).map_err(|error| Failure::because(&error))?;
    let incarnation = incarnation();
    // Several agents of one host have a colon and more behind its name.
    let host = node.as_str().split(':').next().unwrap_or_default().to_owned();
    let socket = Address::Unix(state.join(SOCKET));
    let (listeners, files) = listen(&state, &socket, &arguments.listen)?;
    let workers = arguments.workers;
    let readers = readers(arguments.inspector, arguments.flight_recorder)?;
    let mut environment = vec![(LOG_CCL.into(), socket.to_string().into())];
    environment.extend(variables(&readers));
    environment.extend(as_under_torchrun(workers.get()));
    let plan = AgentPlan {
        identity: Identity {
            node: node.clone(),
            incarnation,
            planned_since: None,
            address,
            workers,
        },
        job: arguments.job,
        policy,
        supervision: WorkerSettings {
            node,
            incarnation,
            // Also right when the file at that path is replaced by another version meanwhile.
            program: PathBuf::from("/proc/self/exe"),
            state,
            command: arguments.command,
            environment,
            output_bytes: arguments.output_bytes,
            warm: if arguments.warm { workers.get() } else { 0 },
            shim: arguments.shim,
        },
        coordinators: arguments.coordinator,
        keyring,
        listeners,
        http: ServerOptions { token, tls, hosts: vec![host] },
        readers,
        health: health(arguments.node_service),
        stays: arguments.stay,
    };
    Ok((plan, files))
}

/// Where other tools write, made if it is not there yet.
fn readers(
    inspector: Option<PathBuf>,
    flight_recorder: Option<PathBuf>,
) -> Result<Vec<(Format, PathBuf)>, Failure> {
    let inspector = inspector.map(|path| (Format::Inspector, path));
    let flight_recorder = flight_recorder.map(|path| (Format::FlightRecorder, path));
    let absolute = |(format, path): (Format, PathBuf)| {
        let path = std::path::absolute(path).map_err(|error| Failure::because(&error))?;
        std::fs::create_dir_all(&path).map_err(|error| {
            let path = path.display();
            Failure::Message(format!(
                "the directory {path}, which is to be read, cannot be made: {error}; give another"
            ))
        })?;
        Ok((format, path))
    };
    inspector.into_iter().chain(flight_recorder).map(absolute).collect()
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

/// The node's health, of the service that is named or of the one where services are.
fn health(service: Option<NodeService>) -> watch::Receiver<NodeHealth> {
    match service {
        Some(NodeService::Off) => watch::channel(NodeHealth::default()).1,
        Some(NodeService::Socket(path)) => health::follow(vec![path]),
        None => health::follow(sockets(&LocationArguments { root: None, runtime_dir: None })),
    }
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

fn host_name() -> Result<NodeName, Failure> {
    let name = rustix::system::uname();
    NodeName::new(&name.nodename().to_string_lossy()).map_err(|error| {
        Failure::Message(format!(
            "the host's name is no node's name: {error}; give one with --node"
        ))
    })
}

/// The address by which this machine reaches the first coordinator: nothing is sent for that. Names
/// that cannot be resolved may be later, as a coordinator that is not reached may be.
async fn own_address(coordinators: &[CoordinatorAddress]) -> Result<HostAddress, Failure> {
    let mut reported = None;
    loop {
        let mut unresolved = Vec::new();
        for coordinator in coordinators {
            let CoordinatorAddress::Port(port) = coordinator else { continue };
            match tokio::net::lookup_host(port).await {
                Ok(mut found) => {
                    if let Some(own) = found.find_map(towards) {
                        return Ok(own);
                    }
                }
                Err(error) => unresolved.push(format!("cannot resolve {port}: {error}")),
            }
        }
        if unresolved.is_empty() {
            return Err(Failure::Message(String::from(
                "this machine's own address cannot be found out; say with --address where other \
                 nodes reach it",
            )));
        }
        let text = unresolved.join("; ") + "; tries again";
        if reported.as_ref() != Some(&text) {
            warn!("{text}");
            reported = Some(text);
        }
        tokio::time::sleep(RESOLVE_AGAIN).await;
    }
}

/// The address that packets to `there` come from.
fn towards(there: SocketAddr) -> Option<HostAddress> {
    let any: SocketAddr = match there {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(there).ok()?;
    HostAddress::new(&socket.local_addr().ok()?.ip().to_string()).ok()
}

fn usual_state(node: &NodeName) -> Result<PathBuf, Failure> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let is_root = rustix::process::geteuid().is_root();
    let parent = variable("XDG_STATE_HOME")
        .or_else(|| is_root.then(|| PathBuf::from("/var/lib")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    let parent = parent.ok_or_else(|| {
        Failure::Message(String::from("neither $HOME nor $XDG_STATE_HOME is set; give a --state"))
    })?;
    // PYTHONPATH, in which it comes to be, separates places by colons.
    Ok(parent.join(format!("{STATE_PREFIX}{}", node.as_str().replace(':', "%3A"))))
}

/// Where agents of this machine may have their state: that of this user, and that of root.
pub(crate) fn state_parents() -> Vec<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = variable("XDG_STATE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    let mut parents: Vec<PathBuf> = own.into_iter().chain([PathBuf::from("/var/lib")]).collect();
    parents.dedup();
    parents
}

/// Larger at each start than at all before, as long as the clock is not set back by more than the
/// agent was away; a coordinator that knows better says so.
fn incarnation() -> Incarnation {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Incarnation::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
