//! The coordinator's program: the machine with sockets, a store, a clock and detection around it.
//!
//! One task holds the machine ([`engine`]); connections, questions and reports come to it by one queue.
//! Nothing here decides which node runs what. Authorization is in [`access`].

mod access;
mod answers;
mod api;
mod clock;
pub mod configuration;
mod counters;
mod decisions;
mod detecting;
mod engine;
mod examination;
mod gauges;
mod grpc;
mod hook;
mod http;
mod incidents;
mod keeper;
mod mailbox;
mod metrics;
mod moderation;
mod page;
mod peer;
mod roster;
mod standing;

use std::future::Future;
use std::io;
use std::sync::Arc;

use telltale_server::door::{Door, Socket};
use telltale_server::hosts::Hosts;
use telltale_server::listen::{Address, BindError, Listener, SocketFile};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::store::{self, StoreLocation};
use telltale_cluster::coordinator::OtherJob;
use telltale_cluster::detection::DetectionSettings;
use telltale_cluster::policy::{Job, Policy, PolicyError};

pub use access::{AccessError, AccessFiles};
pub use incidents::Incidents;
pub use mailbox::{Mailbox, MailboxError};
pub use moderation::Moderation;
pub use page::report as report_page;

use access::Access;
use counters::Counters;
use engine::Engine;
use grpc::{Gate, Serving};
use http::Web;
use keeper::CoordinatorKeeper;
use standing::Standing;

/// Events that may wait for the coordinator's task.
const MAX_EVENTS: usize = 4096;
/// Connections of agents and operators at a time, unless a plan says otherwise.
pub const DEFAULT_CONNECTIONS: usize = 16_384;

/// Everything a coordinator needs to know before it begins.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The job.
    pub job: Job,
    /// How it acts.
    pub policy: Policy,
    /// How faults are found.
    pub detection: DetectionSettings,
    /// Where decisions are kept.
    pub store: StoreLocation,
    /// Where agents and operators call, by gRPC.
    pub grpc: Vec<Address>,
    /// Where metrics, probes and the page are asked for, by HTTP; nowhere when it is empty.
    pub http: Vec<Address>,
    /// More names under which HTTP is answered, besides this machine's own.
    pub names: Vec<String>,
    /// How callers prove who they are.
    pub access: AccessFiles,
    /// Connections at a time.
    pub connections: usize,
    /// Whether another job that is stored must be ended, and this one to begin in its place.
    pub resets_other_job: bool,
}

/// Why a coordinator cannot begin, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The job and the policy do not fit together.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The token, certificates and addresses do not protect the coordinator.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// There is nowhere to listen.
    #[error("no address to listen on; give one, such as 127.0.0.1:9440")]
    Nowhere,
    /// An address cannot be had.
    #[error("an address cannot be listened on")]
    Bind(#[from] BindError),
    /// A socket cannot be used.
    #[error("a socket cannot be listened on")]
    Listen(#[source] io::Error),
    /// No thread for detection.
    #[error("the thread of detection cannot be started; allow this user more threads")]
    Thread(#[source] io::Error),
    /// Another job is stored.
    #[error("the {store} holds another job than this; nothing was changed, and what runs goes on")]
    OtherJob {
        /// Where.
        store: String,
        /// What is stored, what was asked for, and what to do.
        #[source]
        source: OtherJob,
    },
    /// A part that must not end has.
    #[error("{0} has ended; the lines above say why")]
    Ended(&'static str),
}

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketPurpose {
    Grpc,
    Http,
}

/// A coordinator on its sockets; no request is answered yet.
#[derive(Debug)]
pub struct Server {
    plan: Plan,
    access: Arc<Access>,
    listeners: Vec<(SocketPurpose, Listener)>,
    files: Vec<SocketFile>,
}

// === impl Plan ===

impl Plan {
    /// Where decisions are kept, for a person.
    fn store_name(&self) -> String {
        match &self.store {
            StoreLocation::Journal(journal) => {
                format!("journal in {}", journal.directory.display())
            }
            StoreLocation::Etcd(_) => String::from("etcd"),
        }
    }
}

// === impl Server ===

impl Server {
    /// Checks a plan, reads the files that it names, and listens.
    ///
    /// # Errors
    /// When the plan cannot be carried out; the text says what to do.
    pub fn bind(plan: Plan) -> Result<Self, ServeError> {
        plan.policy.check(&plan.job)?;
        if plan.grpc.is_empty() {
            return Err(ServeError::Nowhere);
        }
        let access = Access::read(&plan.access, plan.grpc.iter().chain(&plan.http))?;
        let mut listeners = Vec::new();
        let mut files = Vec::new();
        let grpc = plan.grpc.iter().map(|address| (SocketPurpose::Grpc, address));
        let http = plan.http.iter().map(|address| (SocketPurpose::Http, address));
        for (service, address) in grpc.chain(http) {
            let (listener, file) = Listener::bind(address, None)?;
            listeners.push((service, listener));
            files.extend(file);
        }
        Ok(Self { plan, access, listeners, files })
    }

    /// Where agents and operators reach it by gRPC.
    #[must_use]
    pub fn grpc_addresses(&self) -> Vec<Address> {
        self.addresses(SocketPurpose::Grpc)
    }

    /// Where it answers by HTTP.
    #[must_use]
    pub fn http_addresses(&self) -> Vec<Address> {
        self.addresses(SocketPurpose::Http)
    }

    fn addresses(&self, service: SocketPurpose) -> Vec<Address> {
        let listeners = self.listeners.iter().filter(|(one, _)| *one == service);
        listeners.filter_map(|(_, listener)| listener.address()).collect()
    }

    /// Serves until `stop` ends; then ends streams and gives leadership up. Needs a Tokio runtime with
    /// I/O and time.
    ///
    /// # Errors
    /// When a socket cannot be used, or a part that must not end has.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { plan, access, listeners, files } = self;
        let counters = Arc::new(Counters::default());
        let (to_engine, events) = mpsc::channel(MAX_EVENTS);
        let mailbox = Mailbox::new(to_engine);
        let (stands, standing) = watch::channel(Standing::default());
        let (stopping, stopped) = watch::channel(false);
        let store = store::open(plan.store.clone());
        let engine = Engine::new(&plan, store, Arc::clone(&counters), stands)?;
        let serving = Serving {
            mailbox: mailbox.clone(),
            access: Arc::clone(&access),
            counters: Arc::clone(&counters),
            gate: Arc::new(Gate::default()),
            job: plan.job.name.as_str().into(),
        };
        let web = Web {
            mailbox,
            access: Arc::clone(&access),
            counters: Arc::clone(&counters),
            hosts: Arc::new(Hosts::new(&plan.names)),
            stands: standing.clone(),
        };
        let room = Arc::new(Semaphore::new(plan.connections));
        let keeper = CoordinatorKeeper { access: Arc::clone(&access), counters, room };
        let (keeper, tls) = (Arc::new(keeper), Arc::clone(&access.tls));
        let routes = grpc::routes(serving, standing);
        let web = http::router(web);
        let mut doors = JoinSet::new();
        for (service, listener) in listeners {
            let (limits, router) = match service {
                SocketPurpose::Http => (http::LIMITS, web.clone()),
                SocketPurpose::Grpc => (grpc::LIMITS, routes.clone()),
            };
            let door = Door { limits, tls: Arc::clone(&tls), keeper: keeper.clone(), router };
            let socket = Socket::new(listener).map_err(ServeError::Listen)?;
            doors.spawn(door.serve(socket, stopped.clone()));
        }
        tokio::spawn(async move { tls.renew(stopped).await });
        let outcome = engine.run(events, stop).await;
        stopping.send_replace(true);
        while doors.join_next().await.is_some() {}
        drop(files);
        outcome
    }
}
