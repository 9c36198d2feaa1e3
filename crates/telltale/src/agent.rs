//! `telltale agent`: supervises a node's workers as a coordinator orders.

mod health;
pub(crate) mod init;
pub(crate) mod plan;

use std::future::ready;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;
use tracing::warn;

use telltale_cluster::message::JobOutcome;
use telltale_cluster::node::{HostAddress, NodeName};
use telltale_cluster::vitals::NodeHealth;
use telltale_control_plane::attend::{AgentEnding, Signals, attend};
use telltale_control_plane::reach::CoordinatorAddress;
use telltale_control_plane::readers::Format;
use telltale_control_plane::supervisor::{Echo, can_be_run, can_be_warm, can_have_shim};
use telltale_server::log;
use tokio::sync::watch;

use crate::arguments::{AgentArguments, LocationArguments, NodeService};
use crate::exit::{Failure, Status};
use crate::parent;

use plan::AgentSettings;

/// By what its events are known in the log.
pub(crate) const MODULE: &str = module_path!();
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
        return init::run().and_then(init::as_agent);
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
        let (plan, _files) = settings(arguments, address)?.plan()?;
        attend(plan, &mut signals, ready(())).await.map_err(|error| Failure::because(&error))
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

/// What the agent is started with.
fn settings(arguments: AgentArguments, address: HostAddress) -> Result<AgentSettings, Failure> {
    let policy = arguments.policy();
    let node = match arguments.node {
        Some(node) => node,
        None => host_name()?,
    };
    let state = arguments.state.map_or_else(|| usual_state(&node), Ok)?;
    let state = std::path::absolute(state).map_err(|error| Failure::because(&error))?;
    Ok(AgentSettings {
        address,
        workers: arguments.workers,
        job: arguments.job,
        policy,
        coordinators: arguments.coordinator,
        access: arguments.trust.access(),
        listen: arguments.listen,
        http_token_file: arguments.trust.http_token_file.clone(),
        http_tls: arguments.trust.http_tls(),
        readers: readers(arguments.inspector, arguments.flight_recorder)?,
        health: health(arguments.node_service),
        stays: arguments.stay,
        passes_interrupt: false,
        command: arguments.command,
        environment: Vec::new(),
        logs: Some(state.join("logs")),
        output_bytes: arguments.output_bytes,
        echo: Echo::Ranks,
        warm: arguments.warm,
        shim: arguments.shim,
        remove_if_killed: None,
        node,
        state,
    })
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

/// The node's health, of the service that is named or of the one where services are.
fn health(service: Option<NodeService>) -> watch::Receiver<NodeHealth> {
    match service {
        Some(NodeService::Off) => watch::channel(NodeHealth::default()).1,
        Some(NodeService::Socket(path)) => health::follow(vec![path]),
        None => health::follow(LocationArguments::default().sockets()),
    }
}

pub(crate) fn host_name() -> Result<NodeName, Failure> {
    let name = rustix::system::uname();
    NodeName::new(&name.nodename().to_string_lossy()).map_err(|error| {
        Failure::Message(format!(
            "the host's name is no node's name: {error}; give one with --node"
        ))
    })
}

/// The address by which this machine reaches the first coordinator: nothing is sent for that. Names
/// that cannot be resolved may be later, as a coordinator that is not reached may be.
pub(crate) async fn own_address(
    coordinators: &[CoordinatorAddress],
) -> Result<HostAddress, Failure> {
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
