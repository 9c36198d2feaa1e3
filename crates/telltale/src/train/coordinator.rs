//! The job's coordinator, on a thread of this process.

use std::io;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use telltale_cluster::policy::Policy;
use telltale_control_plane::attend::Stop;
use telltale_control_plane::server::configuration::{
    AccessOptions, Configuration, JobOptions, ListenOptions, StoreOptions,
};
use telltale_control_plane::server::{Plan, ServeError, Server};
use telltale_schema::text::with_causes;
use telltale_server::listen::{Address, BindError};
use tokio::sync::oneshot;

use super::nodes::{Place, SOCKET, ports};
use super::{TrainPlan, no_thread};
use crate::arguments::{TrainArguments, is_loopback};
use crate::exit::Failure;

/// For as long as no one can have meant: a job's restarts are counted over all of its time.
const ALWAYS: Duration = Duration::from_secs(1_000_000_000);
/// How long the node of a job of one may not be heard: it is this process, which a busy machine may hold up.
const KEEP_ALIVE_ALONE: Duration = Duration::from_secs(60);
/// What a node needs to get ready beyond what its workers may take to stop.
const PREPARATION: Duration = Duration::from_secs(15);

/// A coordinator that runs.
#[derive(Debug)]
pub(super) struct JobCoordinator {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), ServeError>>,
}

// === impl JobCoordinator ===

impl JobCoordinator {
    /// Starts it where this node is to run it, and says what the node is then. If it ends by itself, `agent` is asked to.
    pub(super) fn start(
        plan: &TrainPlan,
        arguments: &TrainArguments,
        directory: &Path,
        agent: Stop,
    ) -> Result<(Option<Self>, Place), Failure> {
        if let Place::Joins { .. } = plan.place {
            return Ok((None, plan.place.clone()));
        }
        let server = match Server::bind(server_plan(plan, arguments, directory)?) {
            Err(error) if is_taken(&error) => match plan.place.as_joining() {
                Some(joins) => return Ok((None, joins)),
                None => return Err(Failure::because(&error)),
            },
            bound => bound.map_err(|error| Failure::because(&error))?,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| no_thread(&error))?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let served = runtime.block_on(server.serve(async move {
                let _ = stopped.await;
            }));
            if served.is_err() {
                agent.ask();
            }
            served
        };
        let thread = thread::Builder::new().name("coordinator".to_owned()).spawn(serve);
        let thread = thread.map_err(|error| no_thread(&error))?;
        Ok((Some(Self { stop, thread }), plan.place.clone()))
    }

    /// Ends it; why it has ended by itself, if it had.
    pub(super) fn end(self) -> Result<(), Failure> {
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(served) => served.map_err(|error| {
                let causes = with_causes(&error);
                Failure::Message(format!("the coordinator in this process ended: {causes}"))
            }),
            Err(_) => Err(Failure::Message(String::from(
                "the coordinator in this process ended by an error of the program; report it",
            ))),
        }
    }
}

/// What the coordinator is to do.
fn server_plan(
    plan: &TrainPlan,
    arguments: &TrainArguments,
    directory: &Path,
) -> Result<Plan, Failure> {
    let mut configuration = Configuration {
        job: JobOptions {
            name: plan.job.clone(),
            nodes: Some(plan.nodes.most),
            workers: plan.workers.get(),
            resets_other: false,
        },
        listen: ListenOptions {
            grpc: vec![Address::Unix(directory.join(SOCKET))],
            http: Vec::new(),
            ..ListenOptions::default()
        },
        store: StoreOptions { journal: Some(directory.join("journal")), ..StoreOptions::default() },
        ..Configuration::default()
    };
    let usual = Policy::default();
    configuration.detection.hang_after_seconds = arguments.hang_after.as_secs_f64();
    let policy = &mut configuration.policy;
    policy.restart_budget = arguments.max_restarts;
    policy.budget_window_seconds = ALWAYS.as_secs_f64();
    policy.prepare_deadline_seconds =
        usual.prepare_deadline.max(plan.grace + PREPARATION).as_secs_f64();
    // There is no spare for a node that fails: it is the job's own restarts that are counted.
    (policy.failures_to_quarantine, policy.eviction_budget) = (u32::MAX, u32::MAX);
    match plan.place {
        Place::Head { listen, .. } => {
            configuration.listen.grpc.push(Address::Tcp(listen));
            configuration.access = access(arguments, listen)?;
            if plan.nodes.is_elastic() {
                policy.shrink_to_nodes = Some(plan.nodes.least);
                policy.shrink_after_seconds = plan.conf.last_call.as_secs_f64();
            }
        }
        _ => policy.keep_alive_seconds = KEEP_ALIVE_ALONE.as_secs_f64(),
    }
    if let Some((least, greatest)) = ports(&arguments.nodes, &plan.place)? {
        (policy.least_port, policy.greatest_port) = (least, greatest);
    }
    let mut made = configuration.plan().map_err(|error| Failure::because(&error))?;
    // As often as it was said, however it fails.
    made.policy.max_failed_starts = u32::MAX;
    made.policy.starts_short = true;
    Ok(made)
}

/// How other nodes prove who they are.
fn access(
    arguments: &TrainArguments,
    listen: std::net::SocketAddr,
) -> Result<AccessOptions, Failure> {
    let nodes = &arguments.nodes;
    let is_enough =
        nodes.certificate.is_some() && (nodes.token_file.is_some() || nodes.authority.is_some());
    if !is_loopback(listen.ip()) && !is_enough {
        return Err(Failure::Usage(format!(
            "the coordinator would listen on {listen}, which other hosts can reach; write on every node \
             `--authority authority.pem --token-file token`, on this one also `--certificate \
             certificate.pem --key key.pem` (docs/cluster-deploy.md, Certificates and a token, has the \
             commands that make them)"
        )));
    }
    let client_authority = nodes.authority.clone().filter(|_| nodes.token_file.is_none());
    Ok(AccessOptions {
        token_file: nodes.token_file.clone(),
        certificate: nodes.certificate.clone(),
        key: nodes.key.clone(),
        client_authority: client_authority.filter(|_| nodes.certificate.is_some()),
        node_domain: None,
        // All nodes with a certificate of this authority are the job's.
        any_node: true,
    })
}

/// Whether another process listens there already.
fn is_taken(error: &ServeError) -> bool {
    matches!(error, ServeError::Bind(BindError::Tcp { source, .. }) if source.kind() == io::ErrorKind::AddrInUse)
}
